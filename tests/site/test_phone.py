"""The site in one hand: what is wide says that it goes on, what is small can be read and hit, tables fit."""

from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest
from playwright.sync_api import Browser, Page, expect

pytestmark = pytest.mark.browser

CHAPTER, ATLAS, LEDGER = "decisions/heads-and-cache/", "tools/atlas/", "reference/ledger/decisions/"
PAGES = [
    "", CHAPTER, "decisions/dimensions/", "decisions/positions/", "decoder/walkthrough/", "tools/calculator/",
    "tools/audit/", ATLAS, "labs/tying/", "practice/recall/", LEDGER, "reference/glossary/", "reference/bibliography/",
]  # fmt: skip
SMALLEST_TEXT, SMALLEST_TARGET = 9, 24  # pixels; the second is that of WCAG 2.2, level AA

OPEN = """() => {
  for (const details of document.querySelectorAll("article details")) details.open = true;
  return new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve)));
}"""


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True) as context:
        yield context.new_page()


def opened(page: Page, address: str, path: str) -> None:
    page.goto(address + path, wait_until="networkidle")
    page.evaluate(OPEN)


CUT_WITHOUT_SIGN = """() => [...document.querySelectorAll("article *")].filter(element =>
  element.scrollWidth > element.clientWidth + 1
  && ["auto", "scroll"].includes(getComputedStyle(element).overflowX)
  && !element.matches(".atlas-scroll, .tool-scroll, input, textarea")
  && !getComputedStyle(element).backgroundAttachment.includes("local")
).map(element => element.outerHTML.slice(0, 80))"""


def test_a_planted_scroller_without_a_sign_is_found(page: Page, address: str) -> None:
    opened(page, address, CHAPTER)
    page.evaluate("""document.querySelector("article p").outerHTML =
      "<div id=planted style='overflow: auto'><div style='width: 900px'>x</div></div>" """)
    assert [found[:16] for found in page.evaluate(CUT_WITHOUT_SIGN)] == ['<div id="planted']


TEXT_SIZES = """() => [...document.querySelectorAll(".claims-drawing > svg")].flatMap(svg => {
  const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  return [...svg.querySelectorAll("text")].map(text => scale * parseFloat(getComputedStyle(text).fontSize));
})"""


def test_what_figures_say_is_large_enough(page: Page, site: Path, address: str) -> None:
    sizes = {}
    for file in sorted(site.rglob("index.html")):
        if '<figure class="claims-figure"' in file.read_text("utf-8"):
            path = file.parent.relative_to(site).as_posix() + "/"
            opened(page, address, path)
            sizes[path] = min(page.evaluate(TEXT_SIZES))
    assert len(sizes) > 20
    assert {path: size for path, size in sizes.items() if size < SMALLEST_TEXT} == {}


SMALL_TARGETS = """least => [
  ...document.querySelectorAll("a, button, input, select, textarea, summary")
].filter(element => {
  const { width, height } = element.getBoundingClientRect();
  const inText = getComputedStyle(element).display === "inline";
  return element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && width && height && !inText
    && !element.closest(".md-search, .md-sidebar, .md-skip") && Math.min(width, height) < least;
}).map(element => element.outerHTML.slice(0, 80))"""


@pytest.mark.parametrize("path", PAGES)
def test_what_goes_on_beyond_an_edge_shows_it_and_what_can_be_pressed_can_be_hit(
    page: Page, address: str, path: str
) -> None:
    """Targets are all but links in a line of text, which the guideline leaves out."""
    opened(page, address, path)
    assert page.evaluate(CUT_WITHOUT_SIGN) == []
    assert page.evaluate(SMALL_TARGETS, SMALLEST_TARGET) == []


def test_the_ledger_fits_its_column(page: Page, address: str) -> None:
    for path, tables in ((LEDGER, ".ledger .md-typeset__scrollwrap"), (CHAPTER, ".claims-table")):
        opened(page, address, path)
        widths = page.locator(tables).evaluate_all("all => all.map(one => [one.scrollWidth, one.clientWidth])")
        assert widths and [shown for needed, shown in widths if needed > shown] == []
    row = page.locator(".claims-table tr", has_text="131,072").first
    cells = [cell.bounding_box() for cell in row.locator("td").all()]
    assert cells[0]["y"] == pytest.approx(cells[2]["y"], abs=4) and cells[1]["y"] > cells[0]["y"] + 10


BROKEN_NAMES = """() => [...document.querySelectorAll(".atlas-table tbody th a")].filter(link => {
  const texts = [...link.childNodes].map(node => node.firstChild ?? node).filter(node => node instanceof Text);
  return texts.some(text => [...text.data.matchAll(/[^\\s/-]+/g)].some(word => {
    const range = document.createRange();
    range.setStart(text, word.index);
    range.setEnd(text, word.index + word[0].length);
    return new Set([...range.getClientRects()].map(box => box.top)).size > 1;
  }));
}).map(link => link.textContent)"""


@pytest.mark.parametrize(("width", "usual"), [(390, 52), (1280, 36)])
def test_rows_of_the_atlas_are_low_and_no_name_breaks_in_a_word(
    page: Page, address: str, width: int, usual: int
) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(address + ATLAS, wait_until="networkidle")
    assert page.evaluate(BROKEN_NAMES) == []
    heights = page.locator(".atlas-table tbody tr").evaluate_all("rows => rows.map(row => row.offsetHeight)")
    assert median(heights) <= usual and max(heights) < 2 * usual


def test_a_planted_broken_name_is_found(page: Page, address: str) -> None:
    page.goto(address + ATLAS, wait_until="networkidle")
    page.add_style_tag(
        content="""
      .atlas-table tbody th { min-width: 0 !important; max-width: 3rem !important }
      .atlas-table tbody th > a { word-break: break-all !important }"""
    )
    assert "mistralai/Mistral-Nemo-Base-2407" in page.evaluate(BROKEN_NAMES)


@pytest.mark.parametrize("javascript", [True, False])
def test_the_notes_of_a_row_open(browser: Browser, address: str, javascript: bool) -> None:
    with browser.new_context(viewport={"width": 390, "height": 844}, java_script_enabled=javascript) as context:
        page = context.new_page()
        page.goto(address + ATLAS)
        row = page.locator("#eleutherai-pythia-12b")
        low = row.locator(".note").bounding_box()
        assert low["width"] < 220  # beside a name there is no more room
        row.get_by_role("link").focus()
        page.keyboard.press("Tab")
        assert row.locator(".note").bounding_box()["height"] > 2 * low["height"]


def test_the_drawer_holds_no_hidden_links(page: Page, address: str) -> None:
    page.goto(address + CHAPTER)
    link = page.locator(".md-sidebar--primary").get_by_role("link", name="Inference cost")
    seen = "element => element.checkVisibility({ contentVisibilityAuto: true })"
    everywhere = page.locator(".md-sidebar--primary a", has_text="Inference cost").first
    assert not everywhere.evaluate(seen)
    page.locator("label.md-header__button[for=__drawer]").tap()
    expect(link).to_be_visible()
    assert everywhere.evaluate(seen)
