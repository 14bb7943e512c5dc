"""A small drift drill, and that the drill itself can fail."""

import importlib
import subprocess
import sys
from collections import Counter
from contextlib import nullcontext
from itertools import islice
from pathlib import Path

import pytest

from claims.project import Project, find

FOLDER = Path(__file__).parents[1] / "drill"


@pytest.fixture(autouse=True)
def drill(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    yield importlib.import_module("drill")
    for name in ("drill", "book", "changes", "reasons"):
        sys.modules.pop(name, None)


@pytest.mark.slow
def test_five_changes_are_judged():
    """Which changes a seed makes moves with the pages; that none goes unnoticed is for the whole drill to say."""
    command = [sys.executable, FOLDER / "drill.py", "--changes", "5", "--seed", "2"]
    run = subprocess.run(command, capture_output=True, text=True)
    *rows, last = run.stdout.splitlines()
    verdicts = [row.split()[2] for row in rows[::2]]
    assert len(rows) == 10 and set(verdicts) <= {"noticed", "right", "UNNOTICED"}, run.stdout + run.stderr
    assert run.returncode == ("UNNOTICED" in verdicts) and "noticed" in verdicts
    assert last.startswith("seed 2: ")


def test_a_seed_gives_the_same_changes_in_the_same_shares():
    from changes import SHARES, changes

    one, same, other = (list(islice(changes(find(), seed), sum(SHARES.values()))) for seed in (4, 4, 5))
    assert [str(change) for change in one] == [str(change) for change in same] != [str(change) for change in other]
    assert Counter(change.kind for change in one) == SHARES
    assert all(change.applied() != change.text and change.applied(change.old) == change.text for change in one)


@pytest.mark.parametrize(
    ("path", "text", "number", "why"),
    [
        ("src/decoder/a.py", '"""In 1989."""\n', "1989", "words: a docstring, a message or a source"),
        ("src/decoder/a.py", "x = 3  # from 1989\n", "1989", "a comment"),
        ("src/decoder/a.py", "x = 1989\n", "1989", ""),
        ("src/decoder/released.json", '{"name": "GPT-2", "source": "page 17"}', "17", "words: a source or a remark"),
        ("src/decoder/released.json", '{"name": "GPT-2", "n": 17}', "2", ""),
        ("src/decoder/released.json", '{"name": "GPT-2", "n": 17}', "17", ""),
        ("docs/a.md", "<!-- in 1989 -->\n", "1989", "a comment on a page"),
        ("docs/a.md", '```python static="slow"\nx = 17\n```\n', "17", "a block that is shown and not run"),
        ("docs/a.md", "[here](https://example.org/17)\n", "17", "an address outside the book"),
        ("docs/a.md", "Of [17](claim:x) here.\n", "17", ""),
        ("docs/a.md", "```python\nx = 17\n```\n", "17", ""),
    ],
)
def test_what_cannot_matter(path, text, number, why):
    from changes import Change
    from reasons import beforehand

    at = text.index(number)
    assert beforehand(Change("prose", path, text, at, at + len(number), "5")) == why


@pytest.mark.parametrize(
    ("number", "why"),
    [
        ("3.68", ""),
        ("Table 1", "a fact's where: where its number stands, or what it is"),
        ("of 2021", "a comment on a fact"),
    ],
)
def test_a_fact_is_its_value(number, why):
    from changes import Change
    from reasons import beforehand

    text = '# facts of 2021\n\n[a2021.steps]\nvalue = 3.68\nwhere = "Table 1"\n'
    at = text.index(number) + len(number) - 1
    change = Change("fact", "docs/reference/facts.toml", text, at, at + 1, "5")
    assert beforehand(change) == why and change.fact()[0] == ("" if "comment" in why else "a2021.steps")


@pytest.mark.parametrize(("why", "code"), [("", 1), ("a seed", 0)])
def test_what_goes_unnoticed_fails_unless_a_rule_explains_it(drill, monkeypatch, capsys, why, code):
    class Blind:
        def __init__(self, folder):
            self.project, self.runner = find(), nullcontext()

        def noticed(self, change):
            return "", []

    monkeypatch.setattr(drill, "Book", Blind)
    monkeypatch.setattr(drill, "beforehand", lambda change: "")
    monkeypatch.setattr(drill, "afterwards", lambda book, change, moved: why)
    monkeypatch.setattr(sys, "argv", ["drill.py", "--changes", "3", "--only", "2"])
    assert drill.main() == code
    assert capsys.readouterr().out.splitlines()[-1] == f"seed 1: 1 {'right' if why else 'UNNOTICED'}"


def test_tests_that_do_not_exist_notice_nothing(drill, tmp_path):
    from book import Book
    from changes import Change

    (tmp_path / "tests").mkdir()
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "tests/test_a.py").write_text("def test():\n    assert 'x = 1' in open('a.py').read()\n")
    book = Book.__new__(Book)
    book.project = Project(tmp_path)
    change = Change("code", "a.py", "x = 1\n", 4, 5, "2")
    assert book.tests_fail(change, "tests/test_a.py")
    assert not book.tests_fail(change, "tests/test_b.py")
    assert (tmp_path / "a.py").read_text() == "x = 1\n"


@pytest.mark.parametrize(
    ("number", "why"),
    [
        ("2 here", "structure: a name, a date, a version, a step, or a bare small number"),
        ("17](", ""),
        ("12,", ""),
    ],
)
def test_the_words_of_a_figure_are_words(tmp_path, number, why):
    from book import Book
    from changes import Change
    from reasons import afterwards

    text = '```python alt="GPT-2 here, [17](claim:x)" hl_lines="12,"\nx = 17\n```\n'
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text(text)
    book = Book.__new__(Book)
    book.project = Project(tmp_path)
    at = text.index(number)
    assert afterwards(book, Change("figure", "docs/a.md", text, at, at + 1, "5"), []) == why
