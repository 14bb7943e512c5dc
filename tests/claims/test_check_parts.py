"""What a check makes of pages before, beside and after it runs them."""

import os

import pytest

from claims.check import check, program
from claims.project import find
from claims.session import Runner

TWO = """\
# Two

```python
x = 12
```

Of [12](claim:x), [13](<claim:x + 1>) and [12](claim:x).

```python raises="ValueError"
--8<-- "snippets/two.py"
```

```python static="slow"
x = 13
```

Again [12](claim:x).
"""


@pytest.fixture
def small(project, monkeypatch):
    """A project of three pages, one of which claims nothing and one of which cites."""
    root = project(two=TWO, words="# Words\n", cites="[3.68](cite:narang2021.steps)\n")
    reference = root / "docs/reference"
    reference.mkdir()
    facts = [
        f'[narang2021.{name}]\nvalue = {value}\nwhere = "Table 1"\n' for name, value in (("steps", 3.68), ("b", 2))
    ]
    (reference / "facts.toml").write_text("\n".join(facts))
    entries = [
        f"@article{{{key},\n  title = {{T}}, author = {{A}}, year = {{2021}}\n}}\n" for key in ("narang2021", "c")
    ]
    (reference / "references.bib").write_text("\n".join(entries))
    (root / "snippets").mkdir()
    (root / "snippets/two.py").write_text("y = 1\nraise ValueError")
    return root


@pytest.fixture(scope="module")
def run():
    """Check with one runner for each root, so that the server starts once."""
    runners: dict = {}

    def checked(root, paths=(), **more):
        runner = runners.setdefault(root, Runner(root, (), 20))
        return check(find(root), [root / path for path in paths], runner=runner, **more)

    yield checked
    for runner in runners.values():
        runner.close()


def test_a_program_says_where_each_line_came_from(small, page):
    found = program(page(path="docs/two.md", root=small))
    assert found.path == "docs/two.md"
    assert [(block.run, block.raises, block.source) for block in found.blocks] == [
        (True, None, "x = 12"),
        (True, "ValueError", "y = 1\nraise ValueError"),
        (False, None, "x = 13"),
    ]
    assert [block.lines for block in found.blocks] == [
        (("docs/two.md", 4),),
        (("snippets/two.py", 1), ("snippets/two.py", 2)),
        (("docs/two.md", 14),),
    ]
    assert {block.name for block in found.blocks} == {"docs/two.md"}
    assert [(each.text, each.after) for each in found.expressions] == [("x", 1), ("x + 1", 1), ("x", 3)]


@pytest.mark.parametrize(
    ("code", "asked"),
    [
        ("x = 1", []),
        ("H = 32", ["H"]),
        ("from math import *", ["H"]),  # it may hold anything
        ("import math", []),
    ],
)
def test_a_side_of_an_equation_is_asked_for_where_the_page_has_its_names(page, code, asked):
    found = program(page(f"```python\n{code}\n```\n\nIt is $H = 32$.\n"))
    assert [each.text for each in found.expressions] == asked


def test_each_page_is_reported_once_and_what_holds_nothing_runs_nothing(small, run):
    seen = []
    report = run(small, progress=lambda page: seen.append(page.path))
    assert sorted(seen) == [page.path for page in report.pages] == ["docs/cites.md", "docs/two.md", "docs/words.md"]
    assert [len(page.result.blocks) for page in report.pages] == [0, 3, 0]
    assert [page.result.files for page in report.pages if page.path == "docs/words.md"] == [()]


def test_what_no_page_cites_is_said_of_the_whole_book_only(small, run):
    found = [(f.path, f.line, f.column, f.end_column, f.slug, f.message) for f in run(small).findings]
    assert found == [
        ("docs/reference/facts.toml", 5, 1, 1, "unused-fact", "no page cites narang2021.b"),
        ("docs/reference/references.bib", 5, 1, 1, "unused-fact", "no page cites c"),
    ]
    assert run(small, ["docs/cites.md"]).findings == []
    (small / "docs/cites.md").write_text("# Nothing\n")
    assert {f.message for f in run(small).findings} == {
        f"no page cites {key}" for key in ("narang2021.steps", "narang2021.b", "narang2021", "c")
    }


def test_an_entry_that_begins_inside_a_line_is_reported_at_the_first(small, run):
    bibliography = small / "docs/reference/references.bib"
    bibliography.write_text("\n\n@misc{narang2021, title={T}} @misc{c, title={T}}\n")
    assert ("docs/reference/references.bib", 1, "no page cites c") in [
        (f.path, f.line, f.message) for f in run(small).findings
    ]


def test_troubles_of_the_facts_are_findings_of_any_check(small, run):
    facts = small / "docs/reference/facts.toml"
    facts.write_text(facts.read_text().replace('where = "Table 1"\n', "", 1))
    report = run(small, ["docs/cites.md"])
    assert [(f.path, f.line, f.column, f.end_column, f.slug) for f in report.findings] == [
        ("docs/reference/facts.toml", 1, 1, 1, "fact-without-place")
    ]


@pytest.mark.parametrize(
    ("ci", "build", "cold", "cached"),
    [
        ("", "", None, True),
        ("false", "", None, True),
        ("true", "", None, False),
        ("TRUE", "", None, False),
        ("true", "", False, True),
        ("", "", True, False),
        ("true", "1", None, False),  # kept by no build
        ("", "1", None, True),
    ],
)
def test_when_the_cache_is_taken(small, run, monkeypatch, ci, build, cold, cached):
    for path in small.rglob("*"):
        if path.is_file():
            os.utime(path, (1_000_000_000, 1_000_000_000))
    small.joinpath("docs/two.md").touch()  # a page itself is read before it runs
    run(small, ["docs/two.md"])
    monkeypatch.setenv("CI", ci)
    monkeypatch.setenv("CLAIMS_BUILD", build)
    assert [page.cached for page in run(small, ["docs/two.md"], cold=cold).pages] == [cached]


def test_an_interrupted_check_begins_no_other_page(project):
    block = "```python\nimport pathlib\nimport time\n\npathlib.Path('ran-{}').touch()\ntime.sleep(0.5)\n```\n"
    root = project(**{f"page{n}": block.format(n) for n in range(12)})

    def interrupt(page):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check(find(root), progress=interrupt)
    assert 1 <= len(list(root.glob("ran-*"))) < 12
