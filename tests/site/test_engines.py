"""One mkdocs.yml: the same numbers, figures and formulas with Zensical."""

import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from claims import fonts

RENDERED = ["data.claim", "pre.claims-output", "figure.claims-figure", "details.claims-ledger", "span.math"]


def rendered(site: Path, selector: str) -> dict[str, list[str]]:
    found = {}
    for page in sorted(site.rglob("index.html")):
        soup = BeautifulSoup(page.read_text("utf-8"), "html.parser")
        if elements := soup.select(selector):
            found[page.relative_to(site).as_posix()] = [str(element) for element in elements]
    return found


@pytest.mark.parametrize("selector", RENDERED)
def test_both_engines_agree(site: Path, zensical_site: Path, selector: str) -> None:
    expected = rendered(site, selector)
    assert rendered(zensical_site, selector) == expected
    assert "decisions/heads-and-cache/index.html" in expected


def test_the_font_needs_no_plugin(site: Path, zensical_site: Path) -> None:
    assert fonts.install(zensical_site).read_bytes() == (site / fonts.FONT).read_bytes()


def test_pages_stand_beside_themselves_as_markdown(site: Path) -> None:
    listed = re.findall(r"^- \[[^\]]+\]\(([^)]+)\)", (site / "llms.txt").read_text("utf-8"), re.MULTILINE)
    assert "decisions/heads-and-cache/index.html.md" in listed
    assert [path for path in listed if not (site / path).is_file()] == []
    text = (site / "decisions/heads-and-cache/index.html.md").read_text("utf-8")
    assert text.startswith("# ") and "131,072" in text and "](claim:" not in text
