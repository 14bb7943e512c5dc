import subprocess
import sys

import pytest

from claims.check import check
from claims.inputs import literals, record, recorded, trace
from claims.project import find
from claims.session import Runner
from claims.slices import sliced

SIZES = """\
from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    width: int = 96
    heads: int = 6
    name: str = "small"
    rate: float | None = None

    def __post_init__(self):
        if self.width % self.heads:
            raise ValueError("width must be a multiple of heads")

    @property
    def head_width(self):
        return self.width // self.heads


def weights(sizes):
    return 4 * sizes.width**2


def forgotten(sizes):
    return 36_864
"""
PAGE = """\
```python
from sizes import Sizes, forgotten, weights

import math

layers, context = 12, 512
sizes = Sizes(width=96)
total = layers * weights(sizes)
assert total == 442_368
spare = context * 2
```

In all [442,368](claim:total), one [36,864](claim:weights(sizes)), [36,864](claim:forgotten(sizes)),
[6](claim:sizes.heads), [16](claim:sizes.head_width), [2](<claim:math.ceil(1.5)>), [6](<claim:2 * 3>),
[small](claim:sizes.name), [12](claim:layers).
"""


@pytest.fixture
def traced(project, monkeypatch):
    def make(text):
        root = project('inputs = ["sizes:Sizes"]\ntime_limit = 20', a=text)
        (root / "sizes.py").write_text(SIZES)
        monkeypatch.setenv("PYTHONPATH", str(root))
        with Runner(root, (), 20) as runner:
            report = check(find(root), runner=runner)
            assert report.findings == []
            return report, trace(report, runner)

    return make


def test_what_moves_each_number(traced):
    report, found = traced(PAGE)
    shown = dict(
        zip([claim.expression for claim in report.pages[0].page.claims], found.moves["docs/a.md"], strict=True)
    )
    assert shown == {
        "total": ("Sizes.width", "layers", "width"),
        "weights(sizes)": ("Sizes.width", "width"),
        "forgotten(sizes)": (),
        "sizes.heads": ("Sizes.heads",),
        "sizes.head_width": ("Sizes.width", "Sizes.heads", "width"),
        "math.ceil(1.5)": (),
        "2 * 3": None,
        "sizes.name": None,
        "layers": ("layers",),
    }
    (finding,) = found.findings
    assert (finding.slug, finding.line, finding.message) == ("constant", 13, "no input moves 36,864")


def test_a_constant_may_be_waived_with_a_reason(traced):
    waived = '---\nclaims:\n  constant:\n    "36,864": a figure to forget\n    "7": not on this page\n---\n' + PAGE
    _, found = traced(waived)
    assert [(f.slug, f.line, f.message) for f in found.findings] == [
        ("unused-waiver", 5, "no constant 7 stands on this page")
    ]


def test_what_was_recorded_is_read_until_the_page_or_its_files_change(traced):
    report, found = traced(PAGE)
    assert recorded(report) == {}
    record(report, found)
    shown = [list(names or ()) for names in found.moves["docs/a.md"]]
    assert recorded(report) == {"docs/a.md": shown} and shown[0] == ["Sizes.width", "layers", "width"]
    with open(report.project.root / "sizes.py", "a") as file:
        file.write("\n")
    assert recorded(report) == {}
    assert recorded(traced(PAGE + "\nMore.\n")[0]) == {"docs/a.md": shown}
    assert recorded(traced(PAGE.replace("context * 2", "context * 3"))[0]) == {}
    (report.project.root / report.project.moves).write_text("[")
    assert recorded(report) == {}


def test_a_slice_that_misses_something_is_not_used(traced):
    code = "rows = [11]\nother = rows\n\n\ndef more(values, n):\n    values.append(n)\n\n\ny = more(other, n=12)\n"
    page = f"```python\n{code}```\n\n[23](claim:sum(rows))\n"
    assert traced(page)[1].moves["docs/a.md"] == [("rows", "n")]


def test_literals_are_what_a_page_assigns_or_passes_by_keyword():
    code = "é = 'ü'; x, y = 11, -2.5\nz = f(3, w=4)[5] + len([6, True])\ng(7, k=8)\n\ndef h(a=9):\n    b = 10\n"
    assert [(entry.name, entry.value) for entry in literals([code, "broken ("])] == [
        ("x", 11),
        ("y", 2.5),
        ("w", 4),
        ("z", 3),
        ("z", 6),
        ("k", 8),
    ]


def test_a_slice_holds_what_the_names_rest_on():
    codes = ["import a\nx = 1\ny = []\n", "z = x + 1\ny.append(4)\nw = 3\n", "broken ("]
    assert sliced(codes, ["z"]) == ["x = 1", "z = x + 1", "broken ("]
    assert sliced(codes, ["y"]) == ["y = []", "y.append(4)", "broken ("]
    assert sliced(codes, []) == ["", "", "broken ("]


def test_an_unknown_class_is_one_line(project):
    project('inputs = ["nowhere:Sizes"]', a="```python\nx = 1\n```\n\n[1](claim:x)\n")
    run = subprocess.run([sys.executable, "-m", "claims", "prove", "--inputs"], capture_output=True, text=True)
    assert run.returncode == 2
    assert run.stderr == "claims: tool.claims.inputs: nowhere:Sizes: ModuleNotFoundError: No module named 'nowhere'\n"
