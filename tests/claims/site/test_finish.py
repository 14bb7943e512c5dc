"""A site built without the MkDocs plugin gets what that plugin would have added."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from claims.__main__ import main

SETTINGS = """
site_name: The Book
site_description: About it.
site_url: !ENV [BOOK_URL, ""]
theme:
  icon: !!python/name:material.extensions.emoji.twemoji
nav:
  - Start here: index.md
  - Part:
      - part/index.md
      - part/one.md
      - Deeper:
          - part/two.md
"""
PAGES = {
    "index.md": "---\ndescription: What it is.\n---\n# Welcome\n",
    "part/index.md": "# Part\n",
    "part/one.md": "---\ntitle: One\n---\n# The first\n\n"
    "```python\nx = 41 + 1\nprint(x)\n```\n\nIt is [42](claim:x).\n",
    "part/two.md": "# Two\n",
}
HTML = "<html><head><meta charset=utf-8></head><body><math><mi>x</mi></math></body></html>"


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").write_text("[tool.claims]\ntime_limit = 20\n")
    (tmp_path / "mkdocs.yml").write_text(SETTINGS)
    for name, text in PAGES.items():
        (tmp_path / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "docs" / name).write_text(text)
    for name in ("index.html", "part/index.html", "part/one/index.html", "part/two.html"):
        (tmp_path / "site" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / name).write_text(HTML)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BOOK_URL", raising=False)
    return tmp_path


def finished(expected: int = 0) -> str:
    done = CliRunner().invoke(main, ["finish", "site"])
    assert done.exit_code == expected, done.output
    assert "Traceback" not in done.output
    return done.output


def test_pages_stand_beside_themselves_as_markdown(book: Path) -> None:
    assert finished() == "site: 4 pages finished\n"
    text = (book / "site/part/one/index.html.md").read_text()
    assert "It is 42." in text and "```text\n42\n```" in text
    assert (book / "site/part/two.html.md").read_text() == "# Two\n"


def test_the_list_is_in_the_order_of_the_navigation(book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOOK_URL", "https://b.test/")
    finished()
    assert (book / "site/llms.txt").read_text() == (
        "# The Book\n\n> About it.\n\n## The Book\n\n"
        "- [Start here](https://b.test/index.html.md): What it is.\n\n## Part\n\n"
        "- [Part](https://b.test/part/index.html.md)\n"
        "- [One](https://b.test/part/one/index.html.md)\n"
        "- [Two](https://b.test/part/two.html.md)\n"
    )


def test_every_page_gets_a_policy_and_the_font_is_there(book: Path) -> None:
    finished()
    pages = list((book / "site").rglob("*.html"))
    assert len(pages) == 4
    assert [page for page in pages if "Content-Security-Policy" not in page.read_text()] == []
    assert (book / "site/assets/fonts/stix-two-math.woff2").read_bytes()[:4] == b"wOF2"


def test_twice_is_once(book: Path) -> None:
    finished()
    first = {path: path.read_bytes() for path in (book / "site").rglob("*") if path.is_file()}
    finished()
    assert {path: path.read_bytes() for path in (book / "site").rglob("*") if path.is_file()} == first


def test_a_page_that_was_not_built_is_named(book: Path) -> None:
    (book / "site/part/one/index.html").unlink()
    assert finished(1) == (
        "Error: site: part/one.md was not built: there is no part/one/index.html and no part/one.html\n"
    )


def test_a_page_that_is_not_there_is_named(book: Path) -> None:
    (book / "docs/part/two.md").unlink()
    assert finished(1) == "Error: mkdocs.yml: the navigation names part/two.md, which is no page\n"


def test_a_book_with_findings_is_refused(book: Path) -> None:
    (book / "docs/part/two.md").write_text("# Two\n\n```python\nx = 1\n```\n\nIt is [2](claim:x).\n")
    assert "docs/part/two.md:7:8: drift: the text says 2, the code gives 1" in finished(1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [(None, "No such file or directory"), ("nav: []\n", "it needs site_name and nav")],
    ids=["none", "incomplete"],
)
def test_without_a_configuration_there_is_no_order(book: Path, settings: str | None, message: str) -> None:
    (book / "mkdocs.yml").unlink()
    if settings is not None:
        (book / "mkdocs.yml").write_text(settings)
    assert finished(1) == f"Error: {book / 'mkdocs.yml'}: {message}\n"
