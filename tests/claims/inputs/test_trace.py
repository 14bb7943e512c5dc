import ast
import json
import os
import subprocess
import sys

import pytest

from claims.check import check
from claims.inputs.raising import literals
from claims.inputs.trace import Answer, Moves, Trace, record, recorded, trace
from claims.project import ProjectError, find
from claims.session import Runner

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
from fractions import Fraction

layers, context = 12, 512
sizes = Sizes(width=96)
total = layers * weights(sizes)
assert total == 442_368
spare = context * 2
```

In all [442,368](claim:total), one [36,864](claim:weights(sizes)), [36,864](claim:forgotten(sizes)),
[6](claim:sizes.heads), [16](claim:sizes.head_width), [2](<claim:math.ceil(1.5)>), [half](<claim:Fraction(1, 2)>),
[6](<claim:2 * 3>), [small](claim:sizes.name), [12](claim:layers).
"""


@pytest.fixture
def traced(project, monkeypatch):
    def make(text, sizes=SIZES, **how):
        root = project('inputs = ["sizes:Sizes"]\ntime_limit = 20', a=text)
        (root / "sizes.py").write_text(sizes)
        monkeypatch.setenv("PYTHONPATH", str(root))
        with Runner(root, (), 20) as runner:
            report = check(find(root), runner=runner)
            assert report.findings == []
            return report, trace(report, runner, **how)

    return make


def names(found, page="docs/a.md"):
    return {text: moves.names for text, moves in found.answers[page].moves.items()}


def messages(found):
    return [(finding.slug, finding.line, finding.message) for finding in found.findings]


def test_what_moves_each_number(traced):
    _, found = traced(PAGE)
    assert names(found) == {
        "total": ("Sizes.width", "layers", "width"),
        "weights(sizes)": ("Sizes.width", "width"),
        "forgotten(sizes)": (),
        "sizes.heads": ("Sizes.heads",),
        "sizes.head_width": ("Sizes.width", "Sizes.heads", "width"),
        "math.ceil(1.5)": (),
        "Fraction(1, 2)": (),
        "layers": ("layers",),
    }
    assert messages(found) == [("constant", 14, "no input moves 36,864")]
    assert found.numbers == 8 and not any(moves.open for moves in found.answers["docs/a.md"].moves.values())


def test_a_constant_may_be_waived_with_a_reason(traced):
    waived = '---\nclaims:\n  constant:\n    "36,864": a figure to forget\n    "7": not on this page\n---\n' + PAGE
    assert messages(traced(waived)[1]) == [("unused-waiver", 5, "no constant 7 stands on this page")]


def test_what_takes_too_long_is_said(traced):
    _, found = traced(PAGE, patience=(0, 0))
    missing = "whether an input moves {} was not found out in the time allowed"
    shown = ["442,368", "36,864", "36,864", "6", "16", "12"]
    assert messages(found) == [
        ("constant", 14 + (at > 2) + (at > 4), missing.format(text)) for at, text in enumerate(shown)
    ]
    _, found = traced(PAGE, patience=(0, 60))
    assert names(found)["layers"] == ("layers",)
    assert messages(found) == [("constant", 14, "no input moves 36,864")]


def test_a_number_that_is_another_each_time_is_said(traced):
    page = "```python\nimport os\n\nn = 3\nx = os.getpid() * n\n```\n\n[> 3](claim:x)\n"
    _, found = traced(page)
    assert messages(found) == [("constant", 8, "nothing can move > 3, another run of the page gives another number")]


def test_what_was_recorded_is_read_until_the_page_or_its_files_change(traced):
    report, found = traced(PAGE)
    assert recorded(report) == {} and found.recorded == 0
    record(report, found)
    assert recorded(report) == found.answers
    _, again = traced("Words above.\n\n" + PAGE + "\nMore.\n")
    assert again.recorded == 1 and again.answers == found.answers
    assert messages(again) == [("constant", 16, "no input moves 36,864")]
    assert traced(PAGE, cold=True)[1].recorded == 0
    with open(report.project.root / "sizes.py", "a") as file:
        file.write("\n")
    assert recorded(report) == {}
    assert recorded(traced(PAGE.replace("context * 2", "context * 3"))[0]) == {}
    (report.project.root / report.project.moves).write_text("[")
    assert recorded(report) == {}


def test_a_full_disk_leaves_the_last_record(traced, monkeypatch):
    report, found = traced(PAGE)
    record(report, found)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(ProjectError) as raised:
        record(report, Trace())
    path = report.project.root / report.project.moves
    assert str(raised.value) == f"{path}: No space left on device" and recorded(report) == found.answers


def test_what_was_recorded_of_other_inputs_does_not_count(traced, project):
    report, found = traced(PAGE)
    record(report, found)
    project("inputs = []\ntime_limit = 20", a=PAGE)
    assert recorded(check(find(report.project.root))) == {}


def test_an_answer_survives_json():
    moves = {"a": Moves(("x", "y")), "b": Moves(("x",), open=True), "c": Moves(), "d": Moves(steady=False)}
    answer = Answer(("x", "y"), moves)
    assert Answer.from_json(json.loads(json.dumps(answer.to_json()))) == answer
    assert [str(moves) for moves in moves.values()] == ["x, y", "x, and more that was not tried", "", "not found out"]
    assert str(Moves(open=True)) == "not found out"


def test_a_slice_that_misses_something_is_not_used(traced):
    code = "rows = [11]\nother = rows\n\n\ndef more(values, n):\n    values.append(n)\n\n\ny = more(other, n=12)\n"
    page = f"```python\n{code}```\n\n[23](claim:sum(rows))\n"
    assert names(traced(page)[1]) == {"sum(rows)": ("rows", "n")}


def test_what_hides_behind_a_module_is_found_on_the_whole_page(traced):
    code = "import sizes\n\nsizes.spare = [11]\nx = sizes.spare\n\n\ndef put(n):\n    x[0] = n\n\n\n"
    code += "put(n=12)\ny = sizes.spare[0]\n"
    page = f"```python\n{code}```\n\n[12](claim:y)\n"
    assert names(traced(page)[1]) == {"y": ("n",)}


def test_literals_of_one_name_are_raised_together_and_where_that_moves_nothing_alone(traced):
    code = "a, b = (3, 5), 7\ngap = a[1] - a[0]\nsame = a[0] * 5 == a[1] * 3\n"
    page = f"```python\n{code}```\n\n[2](claim:gap), [1](<claim:int(same)>)\n"
    assert names(traced(page)[1]) == {"gap": ("a",), "int(same)": ("a", "same")}


def test_a_derived_field_is_moved_by_what_it_comes_from(traced):
    code = SIZES.replace("rate: float | None = None", "rate: float | None = None\n    hidden: int = 0").replace(
        "        if self.width", '        object.__setattr__(self, "hidden", 4 * self.width)\n        if self.width'
    )
    page = "```python\nfrom sizes import Sizes\n\nhidden = Sizes().hidden\n```\n\n[384](claim:hidden)\n"
    assert names(traced(page, code)[1]) == {"hidden": ("Sizes.width",)}


def test_only_functions_keep_their_assertions(traced):
    code = "n = 3\n\n\n"
    code += "def holds(m):\n    try:\n        assert m > 9\n    except AssertionError:\n        return 0\n"
    page = f"```python\n{code}\n\nassert n == 3\nx = holds(n) + n\n```\n\n[3](claim:x)\n"
    assert names(traced(page)[1]) == {"x": ("n",)}


def test_a_field_is_doubled_where_one_more_breaks_the_page(traced):
    code = "from sizes import Sizes\n\neven = {48: 96, 96: 192, 192: 384}[Sizes().width]\n"
    page = f"```python\n{code}```\n\n[192](claim:even)\n"
    assert names(traced(page)[1]) == {"even": ("Sizes.width",)}


def test_random_numbers_are_drawn_as_on_the_whole_page(traced):
    code = "import random\n\nspare = [random.random() for _ in range(3)]\nscale, other = 10, 20\n"
    code += "x = random.random() * scale\ny = other + int(x < 0)\n"
    page = f"```python\n{code}```\n\n[≥ 0](claim:x), [20](claim:y)\n"
    assert names(traced(page)[1]) == {"x": ("spare", "scale"), "y": ("other",)}


def test_literals_are_what_a_statement_assigns_or_passes_by_keyword():
    code = "é = 'ü'; x, y = 11, -2.5\nz = f(3, w=4)[5] + len([6, True])\ng(7, k=8)\n\ndef h(a=9):\n    b = 10\n"
    found = [literals(statement) for statement in ast.parse(code).body]
    assert [{name: [node.value for node in nodes] for name, nodes in entry.items()} for entry in found] == [
        {},
        {"x": [11], "y": [2.5]},
        {"w": [4], "z": [3, 6]},
        {"k": [8]},
        {},
    ]


def test_an_unknown_class_is_one_line(project):
    project('inputs = ["nowhere:Sizes"]', a="```python\nx = 1\n```\n\n[1](claim:x)\n")
    run = subprocess.run([sys.executable, "-m", "claims", "prove", "--inputs"], capture_output=True, text=True)
    assert run.returncode == 2
    assert run.stderr == "claims: tool.claims.inputs: nowhere:Sizes: ModuleNotFoundError: No module named 'nowhere'\n"


def test_a_notebook_names_its_constants_in_its_header(page):
    header = '# ---\n# claims:\n#   constant:\n#     "7": a number that was agreed on\n# ---\n\n'
    found = page(header + "# %% [markdown]\n# Of [7](claim:n).\n\n# %%\nn = 7\n", "lab.py")
    assert [(waiver.kind, waiver.text, waiver.reason) for waiver in found.waivers] == [
        ("constant", "7", "a number that was agreed on")
    ]
    assert [claim.literal for claim in found.claims] == ["7"]


def test_what_was_recorded_in_a_file_moves_what_is_read_from_it(traced, tmp_path):
    (tmp_path / "run.json").write_text('{"loss": 2.5, "steps": 40, "good": true, "of": ["a", "b"]}')
    code = "import json\n\nwith open('run.json') as file:\n    run = json.load(file)\n"
    page = f"```python\n{code}```\n\n[2.5](claim:run['loss']), [40](claim:run['steps']), [2](claim:len(run['of'])).\n"
    _, found = traced(page)
    assert names(found) == {"run['loss']": ("recorded data",), "run['steps']": ("recorded data",), "len(run['of'])": ()}
    assert messages(found) == [("constant", 8, "no input moves 2")]
