"""No page breaks a rule of axe, its folded parts open: by day and by night, on a laptop and on a phone."""

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

LAPTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
KINDS = [
    "index.html", "404.html", "decisions/index.html", "decisions/heads-and-cache/index.html",
    "survey/mixture-of-experts/index.html", "labs/tying/index.html", "practice/recall/index.html",
    "tools/calculator/index.html", "tools/atlas/index.html", "tools/audit/index.html", "reference/glossary/index.html",
    "reference/bibliography/index.html", "reference/errata/index.html", "reference/api/parts/index.html",
]  # fmt: skip

OPEN = """() => {
  for (const details of document.querySelectorAll("details")) details.open = true;
  return new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve)));
}"""


def violations(page: Page, address: str, paths: list[str]) -> list[str]:
    """One line for each element that breaks a rule, what is folded included.

    A heading that is a formula is not empty, as axe thinks.
    """
    axe = Axe()
    found = []
    for path in paths:
        page.goto(address + path, wait_until="networkidle")
        page.evaluate(OPEN)
        response = axe.run(page, options={"resultTypes": ["violations"]}).response
        found += [
            f"{path}: {rule['id']}: {node['html'][:120]}"
            for rule in response["violations"]
            for node in rule["nodes"]
            if not (rule["id"] == "empty-table-header" and "<math" in node["html"])
        ]
    return found


def opened(browser: Browser, scheme: str, size: dict[str, int]) -> Page:
    return browser.new_page(viewport=size, color_scheme=scheme, reduced_motion="reduce", bypass_csp=True)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize(("scheme", "size"), [("light", LAPTOP), ("dark", PHONE)])
def test_every_page(browser: Browser, site: Path, address: str, scheme: str, size: dict[str, int], part: int) -> None:
    paths = [page.relative_to(site).as_posix() for page in sorted(site.rglob("*.html"))]
    with opened(browser, scheme, size) as page:
        assert violations(page, address, paths[part::4]) == []


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "size"), [("dark", LAPTOP), ("light", PHONE)])
def test_a_page_of_each_kind(browser: Browser, address: str, scheme: str, size: dict[str, int]) -> None:
    with opened(browser, scheme, size) as page:
        assert violations(page, address, KINDS) == []


def test_a_planted_fault_is_found(browser: Browser, address: str) -> None:
    with opened(browser, "light", LAPTOP) as page:
        page.route(
            "**/404.html",
            lambda route: route.fulfill(
                body="<html lang=en><title>x</title><main><h1>x</h1><details><summary>z</summary><img src=y>"
            ),
        )
        assert violations(page, address, ["404.html"]) == ['404.html: image-alt: <img src="y">']
