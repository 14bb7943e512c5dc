"""What mutants.py makes of its mutants. Cosmic Ray, which makes them, is installed by ``make mutants`` alone."""

import importlib.util
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).with_name("mutants.py")
ENTRY = {"module": "a.py", "old": "x < 1", "new": ["x < 2", "x <= 1"], "why": "x is even"}


@pytest.fixture
def module():
    spec = importlib.util.spec_from_file_location("mutants", PATH)
    sys.modules["mutants"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["mutants"]


def test_annotations_that_are_never_evaluated_are_left_alone(module):
    text = "from __future__ import annotations\n\ndef f(x: int | None = 3) -> 2:\n    y: 4 = 5\n"
    assert sorted(module.annotations(text)) == [((3, 9), (3, 19)), ((3, 28), (3, 29)), ((4, 7), (4, 8))]
    assert module.annotations("def f(x: int) -> int: ...") == []


def test_a_mutant_shows_the_lines_that_it_changes(module):
    assert module.difference("a\n  b\nc", "a\n  d\nc") == ("b", "d")
    assert module.difference("@x\na\nb", "a\nb") == ("@x", "")


def test_every_explanation_must_be_needed(module):
    found = module.Explanations([ENTRY])
    mutant = lambda path, new: module.Mutant(path, 3, "", "if x < 1 or y:", new, "")
    assert found.cover(mutant("a.py", "if x < 2 or y:"))
    assert not found.cover(mutant("b.py", "if x < 2 or y:"))
    assert not found.cover(mutant("a.py", "if x < 1 and y:"))
    assert found.idle({"a.py"}) == [("a.py", "x < 1", "x <= 1")] and found.idle({"b.py"}) == []


def test_what_was_killed_is_remembered(module, tmp_path):
    mutant = module.Mutant("a.py", 3, "", "x", "y", "y\n")
    assert mutant not in module.Killed(None)
    module.Killed(tmp_path / "killed").add(mutant)
    assert mutant in module.Killed(tmp_path / "killed")
    assert module.Mutant("b.py", 3, "", "x", "y", "y\n") not in module.Killed(tmp_path / "killed")


@pytest.mark.parametrize(
    ("left", "code", "last"),
    [
        (["if x < 2:", "if x <= 1:"], 0, "9 mutants     7 killed    2 equivalent    0 left  100.0%"),
        (["if x < 2:"], 1, "9 mutants     8 killed    1 equivalent    0 left  100.0%"),  # an idle explanation
        (["if x < 2:", "if x <= 1:", "if 1:"], 1, "9 mutants     6 killed    2 equivalent    1 left  85.7%"),
    ],
)
def test_a_survivor_and_an_idle_explanation_fail(module, monkeypatch, capsys, left, code, last):
    survivors = [module.Mutant("a.py", 3, "", "if x < 1:", new, "") for new in left]
    monkeypatch.setattr(module, "SETTINGS", {"subject": [{"module": "a.py"}], "equivalent": [ENTRY]})
    monkeypatch.setattr(module, "copied", lambda folder: folder)
    monkeypatch.setattr(module, "prepare", lambda copy: None)
    monkeypatch.setattr(module, "survivors", lambda *_: (survivors, 9))
    monkeypatch.setattr(sys, "argv", ["mutants.py"])
    assert module.main() == code
    said = capsys.readouterr().out
    assert said.splitlines()[-1].endswith(last)
    assert ("unexplained: a.py:3: " in said) == (len(left) == 3)
    assert ("a.py: no survivor needs the explanation of 'x < 1' -> 'x <= 1'" in said) == (len(left) == 1)


def test_tests_that_fail_or_hang_notice(module, tmp_path):
    module.SETTINGS["preload"] = []
    (tmp_path / "test_a.py").write_text("def test():\n    pass\n")
    (tmp_path / "test_b.py").write_text("def test():\n    assert 0\n")
    (tmp_path / "test_c.py").write_text("def test():\n    while True: pass\n")
    log = tmp_path / "log"
    answers = [module.tests_pass([str(tmp_path / name)], limit, log) for name, limit in
               (("test_a.py", 60), ("test_b.py", 60), ("test_c.py", 2), ("test_d.py", 60))]  # fmt: skip
    assert answers == [True, False, False, False]
