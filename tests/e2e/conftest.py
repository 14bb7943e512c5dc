"""A small copy of the book, two pages with all that they need, that a test may damage."""

import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from claims.cache import CLOCK_TICK

ROOT = Path(__file__).parents[2]
PAGES = ["index.md", "decisions/heads-and-cache.md"]
CONFIGURATION = """\
INHERIT: {root}/mkdocs.yml
nav: [{pages}]
plugins: [search, claims]
validation:
  nav: {{omitted_files: ignore}}
  links: {{not_found: ignore, anchors: ignore, unrecognized_links: ignore}}
"""


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the copy. What is imported from its src/ is its own."""
    return copy_of_the_book(tmp_path_factory.mktemp("book"))


def copy_of_the_book(book: Path) -> Path:
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src" / "decoder", book / "src" / "decoder", ignore=ignore)
    shutil.copytree(ROOT / "snippets", book / "snippets", ignore=ignore)
    for name in ("assets", ".overrides"):
        shutil.copytree(ROOT / "docs" / name, book / "docs" / name)
    for name in [*PAGES, "reference/lexicon.toml"]:
        (book / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "docs" / name, book / "docs" / name)
    shutil.copy(ROOT / "pyproject.toml", book)
    (book / "mkdocs.yml").write_text(CONFIGURATION.format(root=ROOT, pages=", ".join(PAGES)), "utf-8")
    cited = set(re.findall(r"\(cite:([\w.-]+)\)", "".join((book / "docs" / name).read_text("utf-8") for name in PAGES)))
    sources = {key.split(".")[0] for key in cited}
    keep("reference/facts.toml", r"^(?=\[)", r"\[([\w.-]+)\]", book, cited)
    keep("reference/references.bib", r"^(?=@)", r"@\w+\{([\w-]+)", book, sources)
    return book


def keep(name: str, split: str, key: str, book: Path, wanted: set[str]) -> None:
    """Copy those entries of a file that are wanted, since one that no page cites is a finding."""
    entries = re.split(split, (ROOT / "docs" / name).read_text("utf-8"), flags=re.M)
    kept = [entry for entry in entries if (found := re.match(key, entry)) and found[1] in wanted]
    (book / "docs" / name).write_text("".join(kept), "utf-8")


@pytest.fixture
def edit(book: Path) -> "Callable[[str, str, str], None]":
    """Replace a text, which must be there, in a file of the copy; the file is restored afterwards."""
    before: dict[Path, str] = {}

    def replace(name: str, old: str, new: str) -> None:
        path = book / name
        text = path.read_text("utf-8")
        before.setdefault(path, text)
        assert old in text, f"{name} does not hold {old!r}"
        path.write_text(text.replace(old, new, 1), "utf-8")
        time.sleep(4 * CLOCK_TICK)  # a page that begins in the same tick as an edit is not kept

    yield replace
    for path, text in before.items():
        path.write_text(text, "utf-8")
