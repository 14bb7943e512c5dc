"""Code that a page shows fits the page: at a desktop's width a longer line has to be scrolled."""

import pytest

from claims.parse import read
from claims.project import find

COLUMNS = 75  # at 1280 pixels; folded programs are set smaller and hold 77
FOLDED = 77
CHAPTERS = [
    f"docs/{name}" for name in ("reading.md", "decisions", "decoder", "survey", "practice", "tools", "reference")
]
PROJECT = find()


def too_wide(page):
    """The places of code lines over the limit. Sections included from src/ keep that code's own width."""
    found = []
    for block in page.python:
        limit = FOLDED if "fold" in block.flags else COLUMNS
        for line in page.source.lines[block.row : block.row + block.code.count("\n") + 1]:
            if len(line.text) > limit and not line.path.startswith("src/"):
                found.append(f"{line.path}:{line.number}")
    return found


@pytest.mark.parametrize("name", PROJECT.pages(CHAPTERS))
def test_code_fits_the_page(name):
    assert too_wide(read(PROJECT.root, name, PROJECT.words)) == []


def test_a_wide_line_is_found():
    fits, wide = "x = " + "1" * (COLUMNS - 4), "y = " + "1" * (COLUMNS - 3)
    text = f"# Title\n\n```python\n{fits}\n{wide}\n```\n\n    ```text\n    {wide}\n    ```\n"
    assert too_wide(read(PROJECT.root, "docs/planted.md", PROJECT.words, text)) == ["docs/planted.md:5"]
