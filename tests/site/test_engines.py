"""One mkdocs.yml: the same numbers, figures and formulas with Zensical."""

import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Browser, expect

from claims.site import fonts

RENDERED = ["data.claim", "pre.claims-output", "figure.claims-figure", "details.claims-ledger", "span.math"]


def rendered(site: Path, selector: str) -> dict[str, list[str]]:
    found = {}
    for page in sorted(site.rglob("index.html")):
        soup = BeautifulSoup(page.read_text("utf-8"), "html.parser")
        if elements := soup.select(f"article {selector}"):  # a table of contents may keep markup or words alone
            found[page.relative_to(site).as_posix()] = [str(element) for element in elements]
    return found


@pytest.mark.parametrize("selector", RENDERED)
def test_both_engines_agree(site: Path, zensical_site: Path, selector: str) -> None:
    expected = rendered(site, selector)
    assert rendered(zensical_site, selector) == expected
    assert "decisions/heads-and-cache/index.html" in expected


def test_the_font_needs_no_plugin(site: Path, zensical_site: Path) -> None:
    assert fonts.install(zensical_site).read_bytes() == (site / fonts.FONT).read_bytes()


def test_finished_pages_and_their_list_are_the_same(site: Path, finished_site: Path) -> None:
    names = ["llms.txt", *sorted(page.relative_to(site).as_posix() for page in site.rglob("*.html.md"))]
    assert len(names) > 50
    assert [name for name in names if (finished_site / name).read_bytes() != (site / name).read_bytes()] == []


def test_every_finished_page_has_a_policy(finished_site: Path) -> None:
    pages = sorted(finished_site.rglob("*.html"))
    assert len(pages) > 50
    assert [page for page in pages if "Content-Security-Policy" not in page.read_text("utf-8")] == []


@pytest.mark.browser
def test_finished_pages_keep_their_scripts(browser: Browser, finished_address: str) -> None:
    """Under the policy the engine's own scripts run, and ours."""
    with browser.new_context() as context:
        page = context.new_page()
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{finished_address}decisions/heads-and-cache/", wait_until="networkidle")
        page.get_by_role("button", name="Show the checks").click()
        expect(page.locator("html")).to_have_class(re.compile("show-checks"))
        assert complaints == []


def test_pages_stand_beside_themselves_as_markdown(site: Path) -> None:
    listed = re.findall(r"^- \[[^\]]+\]\(([^)]+)\)", (site / "llms.txt").read_text("utf-8"), re.MULTILINE)
    assert "decisions/heads-and-cache/index.html.md" in listed
    assert [path for path in listed if not (site / path).is_file()] == []
    text = (site / "decisions/heads-and-cache/index.html.md").read_text("utf-8")
    assert text.startswith("# ") and "131,072" in text and "](claim:" not in text
