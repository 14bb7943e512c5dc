"""The site as a reader meets it, in a real Chromium: narrow and wide, light and dark, by keyboard, mouse and touch."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

pytestmark = pytest.mark.browser

BUDGET = tomllib.loads(Path(__file__).with_name("budget.toml").read_text("utf-8"))
CHAPTER = "decisions/heads-and-cache/"
CLAIM = 'data.claim[value="131072"]'
LAYOUT_SHIFT = """() => new Promise(resolve => {
  let shift = 0;
  new PerformanceObserver(list => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) shift += entry.value;
  }).observe({type: "layout-shift", buffered: true});
  requestAnimationFrame(() => setTimeout(() => resolve(shift)));
})"""


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light") as context:
        yield context.new_page()


def paths(site: Path) -> list[str]:
    return [file.parent.relative_to(site).as_posix().removeprefix(".") for file in sorted(site.rglob("index.html"))]


@pytest.mark.parametrize("width", [390, 1280])
def test_a_page_loads_from_its_site_alone_without_moving_and_as_wide_as_the_screen(
    page: Page, site: Path, address: str, width: int
) -> None:
    """Every page is loaded once, since that is what takes long."""
    page.set_viewport_size({"width": width, "height": 844})
    asked, complaints, widths = [], [], {}
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))

    def moving(names: list[str]) -> dict[str, float]:
        shifts = {}
        for path in names:
            page.goto(address + path, wait_until="networkidle")
            shifts[path] = page.evaluate(LAYOUT_SHIFT)
            widths[path] = page.evaluate("document.documentElement.scrollWidth")
        return {path: shift for path, shift in shifts.items() if shift > BUDGET["layout_shift"]}

    moved = moving(paths(site))
    again = moving(list(moved))  # a machine that is busy may paint a page before its scripts have come
    assert moving(list(again)) == {}
    assert {path: found for path, found in widths.items() if found > width} == {} and len(widths) > 60
    assert asked and [url for url in asked if not url.startswith((address, "data:", f"blob:{address}"))] == []
    assert complaints == []


LANDED = """([id, room]) => {
  const end = scrollY + innerHeight >= document.documentElement.scrollHeight - 1;
  const { top } = document.getElementById(id).getBoundingClientRect();
  return top >= 0 && (top < room || end && top < innerHeight);
}"""


@pytest.mark.parametrize("width", [390, 1280])
def test_a_link_leads_to_its_heading_past_what_was_not_laid_out(page: Page, address: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(address + CHAPTER, wait_until="networkidle")
    names = page.locator("article :is(h2, h3)").evaluate_all("heads => heads.map(head => head.id)")
    missed = []
    for name in names:
        page.goto("about:blank")
        page.goto(f"{address}{CHAPTER}#{name}", wait_until="networkidle")
        if not page.evaluate(LANDED, [name, 160]):
            missed.append(name)
    assert len(names) > 8 and missed == []


def test_what_is_far_from_view_costs_nothing_until_it_is_near(page: Page, address: str) -> None:
    page.goto(address + CHAPTER, wait_until="networkidle")
    shown = "element => element.checkVisibility({ contentVisibilityAuto: true })"
    near, far = page.locator("article > p > a").first, page.locator("article > p math").last
    assert near.evaluate(shown) and not far.evaluate(shown)
    far.scroll_into_view_if_needed()
    page.wait_for_timeout(100)
    assert far.evaluate(shown)


def test_the_first_visit_is_in_the_colours_of_the_system_before_the_theme_has_come(page: Page, address: str) -> None:
    page.route("**/bundle.*.js", lambda route: route.abort())
    page.emulate_media(color_scheme="dark")
    page.goto(address + CHAPTER)
    colour = "element => getComputedStyle(element).backgroundColor"
    assert page.locator("body").evaluate(colour) == "rgb(30, 33, 41)"
    assert page.locator(".md-header").evaluate(colour) == "rgb(29, 63, 114)"


def test_the_math_font_is_used(page: Page, address: str) -> None:
    page.goto(address + CHAPTER, wait_until="networkidle")
    assert page.evaluate("""[...document.fonts].map(font => [font.family, font.status])""") == [
        ["STIX Two Math", "loaded"]
    ]


def test_the_switch_of_colours(page: Page, address: str) -> None:
    page.goto(address + CHAPTER)
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.get_by_title("Switch to light colours").click()
    page.get_by_title("Switch to dark colours").click()
    expect(page.locator("body")).to_have_attribute("data-md-color-scheme", "slate")
    dark = page.evaluate(paper)
    assert (light, dark) == ("rgb(255, 255, 255)", "rgb(30, 33, 41)")
    page.reload()
    assert page.evaluate(paper) == dark


def test_figures_follow_the_colours(page: Page, address: str) -> None:
    ink = "getComputedStyle(document.body).getPropertyValue('--fig-ink')"
    page.goto(address + CHAPTER)
    light = page.evaluate(ink)
    page.emulate_media(color_scheme="dark")
    page.reload()
    assert light and page.evaluate(ink) not in ("", light)


def test_the_switch_of_checks_is_remembered(page: Page, address: str) -> None:
    page.goto(address + CHAPTER)
    switch = page.get_by_role("button", name="Show the checks")
    claim = page.locator(CLAIM).first
    line = "element => getComputedStyle(element).textDecorationLine"
    expect(switch).to_have_attribute("aria-pressed", "false")
    assert claim.evaluate(line) == "none"
    switch.click()
    expect(switch).to_have_attribute("aria-pressed", "true")
    assert claim.evaluate(line) == "underline"
    page.reload()
    expect(switch).to_have_attribute("aria-pressed", "true")
    assert claim.evaluate(line) == "underline"
    page.emulate_media(media="print")
    assert claim.evaluate(line) == "none"
    expect(switch).to_be_hidden()


def test_where_a_number_comes_from_by_keyboard(page: Page, address: str) -> None:
    page.goto(address + CHAPTER)
    claim = page.locator("data.claim[data-block]:visible").first
    assert claim.evaluate("element => element.tabIndex") == -1
    switch = page.get_by_role("button", name="Show the checks")
    switch.focus()
    page.keyboard.press("Enter")
    expect(switch).to_have_attribute("aria-pressed", "true")
    while not claim.evaluate("element => element === document.activeElement"):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement !== document.body"), "the Tab key left the page"
    card = page.get_by_role("tooltip")
    expect(card).to_be_visible()
    assert claim.get_attribute("data-expression") in card.inner_text()
    assert claim.get_attribute("data-exact") in card.inner_text()
    assert claim.get_attribute("aria-describedby") == card.get_attribute("id")
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()
    expect(claim).to_be_focused()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.url.endswith(claim.get_attribute("data-block"))
    expect(page.locator(claim.get_attribute("data-block"))).to_be_in_viewport()


def tab_to(page: Page, target: Locator) -> None:
    """Press the Tab key until the target has the focus."""
    while not target.evaluate("element => element === document.activeElement"):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement !== document.body"), "the Tab key left the page"


def test_the_numbers_of_a_page_and_the_ledger_by_keyboard(page: Page, address: str) -> None:
    page.goto(address + CHAPTER)
    tab_to(page, page.locator("details.claims-ledger > summary"))
    page.keyboard.press("Enter")
    table = page.get_by_role("region", name="Numbers on this page")
    expect(table).to_be_visible()
    assert table.evaluate("element => element.scrollWidth <= element.clientWidth || element.tabIndex === 0")
    assert "131,072" in table.inner_text()
    page.goto(address + CHAPTER)
    for where, name in (("nav", "Reference"), ("nav", "Ledger"), ("article", "Chapters on decisions")):
        link = page.locator(f"{where} a:visible").filter(has_text=re.compile(rf"^\s*{name}\s*$")).first
        tab_to(page, link)
        with page.expect_navigation():
            page.keyboard.press("Enter")
    assert page.url.endswith("reference/ledger/decisions/")
    expect(page.get_by_role("cell", name="128 KiB").first).to_be_attached()


def test_where_a_number_comes_from_by_mouse(page: Page, address: str) -> None:
    page.goto(address + CHAPTER)
    card = page.get_by_role("tooltip")
    page.locator(CLAIM).first.hover()
    expect(card).to_be_visible()
    card.hover()
    page.wait_for_timeout(500)
    expect(card).to_be_visible()
    page.mouse.move(5, 5)
    expect(card).to_be_hidden()


def test_where_a_number_comes_from_by_touch(browser: Browser, address: str) -> None:
    with browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True) as context:
        page = context.new_page()
        page.goto(address + CHAPTER)
        card, claim = page.get_by_role("tooltip"), page.locator(CLAIM).first
        claim.tap()
        expect(card).to_be_visible()
        box = card.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390
        claim.tap()
        expect(card).to_be_hidden()
        claim.tap()
        page.locator("h1").tap()
        expect(card).to_be_hidden()


def test_without_javascript_the_numbers_explain_themselves(browser: Browser, address: str) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(address + CHAPTER)
        expect(page.locator(".checks-switch")).to_be_hidden()
        claim = page.locator(CLAIM).first
        claim.hover()
        card = claim.evaluate("element => getComputedStyle(element, '::after').content")
        assert card == '"{} = 131,072"'.format(claim.get_attribute("data-expression"))


def test_copied_formulas_are_latex(page: Page, address: str) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(address + CHAPTER)
    formula = page.locator(".math[data-latex]").first
    formula.evaluate("element => getSelection().selectAllChildren(element.parentElement)")
    page.keyboard.press("Control+C")
    assert formula.get_attribute("data-latex") in page.evaluate("navigator.clipboard.readText()")


def test_nothing_but_the_site_s_own_scripts_runs(page: Page, address: str) -> None:
    page.goto(address + CHAPTER)
    refused = []
    page.on("console", lambda message: refused.append(message.text))
    page.evaluate("""() => {
      const script = document.createElement("script");
      script.textContent = "window.ran = 1";
      document.body.append(script);
      document.body.insertAdjacentHTML("beforeend", "<button id=planted onclick='window.ran = 2'>x</button>");
      document.querySelector("#planted").click();
      const image = new Image();
      image.src = "https://example.org/x.png";
      document.body.append(image);
    }""")
    page.wait_for_timeout(200)
    assert page.evaluate("window.ran") is None
    assert len([text for text in refused if "Content Security Policy" in text]) == 3
