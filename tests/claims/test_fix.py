import os
import subprocess
import sys

import pytest

from claims.fix import rewrite
from claims.values import describe


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("128 KiB", 98304, "96 KiB"),
        ("131,072", 98304, "98,304"),
        ("131072", 98304, "98304"),
        ("131\u202f072", 98304, "98\u202f304"),
        ("128\u00a0KiB", 98304, "96\u00a0KiB"),
        ("≈ 93.8 MiB", 2**20, "≈ 1.0 MiB"),
        ("≈ 0.50", 0.1234, "≈ 0.12"),
        ("12 layers", 7, "7 layers"),
        ("−3", -4, "−4"),
        ("-3", -4, "-4"),
        ("3", -4, "−4"),
        ("25%", 0.5, "50%"),
        ("7B", 8 * 10**9, "8B"),
        ("**12**", 13, "**13**"),
        ("`12`", 13, "`13`"),
        ("4{,}096", 12288, "12{,}288"),
        ("128 KiB", 2**16 + 512, "64.5 KiB"),
        ("float16", "bfloat16", "bfloat16"),
        ("no", True, "True"),
        ("≈ 35,600", 41_234, "≈ 41,200"),
        ("999", 12000, "12,000"),
    ],
)
def test_the_format_is_kept(text, value, expected):
    assert rewrite(text, describe(value), frozenset({"layers"})) == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("128 KiB", 98305),
        ("12", 1 / 3),
        ("twelve", 13),
        ("< 3", 4),
        ("1/3", 0.5),
        ("2^10", 2000),
        ("1e3", 2000),
        ("(1, 2)", (1, 3)),
        ("128 KB", 98304),
        ("12", "twelve"),
        ("12", None),
        ("1.5", 1.25),
        ("half", 0.25),
    ],
)
def test_what_cannot_be_said_exactly_is_refused(text, value):
    assert rewrite(text, describe(value)) is None


def fix(*arguments):
    return subprocess.run([sys.executable, "-m", "claims", "fix", *arguments], capture_output=True, text=True)


PAGE = """\
# A cache

Is it so? One token costs [131,072](claim:cost) bytes, that is [128 KiB](claim:cost), or [≈ 131.1 kB](claim:cost).
Then [32](claim:layers) layers follow. $$ \\claim{131{,}072}{cost} $$ And [4,096 B](<claim:cost // layers>) each;
😀 [131072](claim:cost) once more, [0.5 KiB](claim:odd).

```python
layers = 24
odd = 513
cost = layers * 4096  # = 131,072
```
"""
FIXED = (
    PAGE.replace("131,072", "98,304")
    .replace("128 KiB", "96 KiB")
    .replace("131.1", "98.3")
    .replace("131{,}072", "98{,}304")
)
FIXED = FIXED.replace("[32]", "[24]").replace("131072", "98304")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_exactly_the_literals_change(project, end, mark):
    root = project(a=(mark + PAGE.replace("\n", end)).encode())
    run = fix()
    assert (root / "docs/a.md").read_bytes().decode() == mark + FIXED.replace("\n", end)
    assert run.returncode == 1  # the inexact one stands
    lines = run.stdout.splitlines()
    assert lines[0] == "docs/a.md:3:28: 131,072 is now 98,304"
    assert lines[1].startswith(
        "   read again  One token costs [98,304](claim:cost) bytes, that is [128 KiB](claim:cost)"
    )
    column = PAGE.split("\n")[4].index("0.5 KiB") + 1
    assert f"docs/a.md:5:{column}: not changed: 513 cannot be written exactly in the format of 0.5 KiB" in lines
    assert "7 changed, 1 not changed" in lines
    again = fix()
    assert again.stdout.splitlines()[1] == "0 changed, 1 not changed"


def test_a_clean_page_is_left_alone(project):
    root = project(a="[6](<claim:2 * 3>)\n")
    before = (root / "docs/a.md").stat()
    assert fix().returncode == 0
    assert (root / "docs/a.md").stat().st_mtime_ns == before.st_mtime_ns


def test_a_formula_is_never_guessed(project):
    project(a="$2 \\cdot 3 = 7$\n")
    run = fix()
    assert run.stdout.splitlines()[:2] == [
        "docs/a.md:1:14: not changed: the two sides of a formula disagree, and either may be wrong",
        "0 changed, 1 not changed",
    ]


def test_a_comment_in_a_snippet_is_repaired_in_its_file(project):
    root = project(a='```python\n--8<-- "docs/program.py"\n```\n\n> ```python\n> --8<-- "docs/program.py"\n> ```\n')
    (root / "docs/program.py").write_text("x = 6  # = 7\n")
    assert fix().returncode == 0
    assert (root / "docs/program.py").read_text() == "x = 6  # = 6\n"


def test_a_write_that_fails_leaves_the_file_whole(project, monkeypatch):
    from claims import fix as repairs
    from claims.source import Place

    root = project(a="[7](claim:6)\n")

    def fail(*_):
        raise OSError(28, "No space left on device", "elsewhere")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError) as raised:
        repairs.apply(root, [repairs.Repair(Place("docs/a.md", 1, 2, 3), "7", "6", "")])
    assert raised.value.filename == str(root / "docs/a.md")
    assert (root / "docs/a.md").read_text() == "[7](claim:6)\n"
    assert [path.name for path in (root / "docs").iterdir()] == ["a.md"]
