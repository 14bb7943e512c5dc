import json
import subprocess
import sys

import pytest

from claims.check import check
from claims.literal import read
from claims.project import find
from claims.prove import mutants, prove

PAGE = """\
```python
layers, cost, shape, dtype = 24, 98304, (2, 8), "float16"
cost  # = 98,304
```

[98,304](claim:cost) bytes, [96 KiB](claim:cost), [≈ 98.3 kB](claim:cost), [≈ 98,300](claim:cost),
[< 0.1 MB](claim:cost), [twenty four](claim:layers) layers, [(2, 8)](claim:shape), [float16](claim:dtype),
[50%](<claim:layers / 48>), [2^3](claim:shape[1]).

$$ 2 \\cdot 12 = 24, \\quad L = \\claim{24}{layers} $$
"""


@pytest.mark.parametrize(
    "text",
    [
        "98,304",
        "96 KiB",
        "≈ 98.3 kB",
        "≈ 35,600",
        "< 3",
        "twelve",
        "(2, 8)",
        "≈ (1.5, 35,600)",
        "float16",
        "50%",
        "0.998",
        "7B",
        "−3",
        "90",
    ],
)
def test_every_change_is_a_change(text):
    made = mutants(text, frozenset())
    assert made and text not in made and len(set(made)) == len(made)
    if read(text) and read(text).relation == "=" and not read(text).words:
        assert all(read(new) is None or read(new).value != read(text).value for new in made if "(" not in new)


def test_digits_units_and_magnitude_change():
    assert mutants("96 KiB", frozenset()) == ["86 KiB", "97 KiB", "96 kB", "96 MiB", "960 KiB"]
    assert mutants("≈ 35,600", frozenset()) == ["≈ 45,600", "≈ 36,600", "≈ 35,700", "≈ 356,000"]


def test_a_clean_page_has_no_survivor(project):
    root = project(a=PAGE)
    report = check(find(root))
    assert report.findings == []
    proof = prove(report)
    assert proof.survivors == [] and proof.claims == 13 and proof.mutants > 3 * proof.claims


def test_a_claim_that_cannot_fail_is_named(project, monkeypatch):
    from claims import judge

    root = project(a="A [12](claim:12) and a [13](claim:13).\n")
    report = check(find(root))
    strict = judge.agree
    monkeypatch.setattr(judge, "agree", lambda text, *more: None if text.startswith("12") else strict(text, *more))
    found = [(s.place.line, s.place.column, s.old, s.new) for s in prove(report).survivors]
    assert found == [(1, 4, "12", "120")]


def test_command(project):
    project(a=PAGE)
    run = subprocess.run([sys.executable, "-m", "claims", "prove"], capture_output=True, text=True)
    assert run.returncode == 0 and run.stdout.endswith(" changes of 13 literals, 0 unnoticed\n")


def test_prove_inputs_records_what_moves_each_number_and_names_what_nothing_moves(project):
    code = "layers, width = 12, 96\ntotal = layers * width\n\n\ndef cache():\n    return 4_608\n"
    root = project(a=f"```python\n{code}```\n\n[1,152](claim:total), [4,608](claim:cache())\n")

    def prove_inputs(*options):
        command = [sys.executable, "-m", "claims", "prove", "--inputs", *options]
        run = subprocess.run(command, capture_output=True, text=True, cwd=root)
        assert run.returncode == 1 and run.stderr == ""
        return run.stdout.splitlines()

    first = prove_inputs()
    assert first[1:-1] == [
        "docs/a.md:10:24: constant: no input moves 4,608",
        "   10 | [1,152](claim:total), [4,608](claim:cache())",
        "      |                        ^^^^^",
        "   expression  cache()",
        "   raised      layers, width",
        "   hint        compute it from the inputs, or say why it is constant in the front matter",
    ]
    assert first[-1] == "2 computed numbers under 2 inputs raised on 1 page, 0 as recorded; 1 finding"
    assert prove_inputs()[1:] == [*first[1:-1], first[-1].replace("0 as", "1 as")]
    assert prove_inputs("--cold")[1:] == first[1:]
    moves = json.loads((root / "docs/reference/moves.json").read_text())["pages"]["docs/a.md"]["moves"]
    assert moves == {"total": ["layers", "width"], "cache()": []}
