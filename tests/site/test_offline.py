"""The site as a folder of files, in a real Chromium: no server, no network, everything works."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Browser, Page, expect

from decoder.budget import parameters
from decoder.config import Config

pytestmark = pytest.mark.browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        yield context.new_page()


def test_every_page_opens_and_asks_for_files_alone(page: Page, offline_site: Path) -> None:
    asked, complaints = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    pages = [path for path in sorted(offline_site.rglob("*.html")) if path.name != "404.html"]
    for path in pages:
        page.goto(path.as_uri(), wait_until="networkidle")
    assert len(asked) > len(pages) > 3
    assert [url for url in asked if not url.startswith((offline_site.as_uri(), "data:"))] == []
    assert complaints == []


def test_links_name_files(offline_site: Path) -> None:
    dead, seen = [], 0
    for path in sorted(offline_site.rglob("*.html")):
        for link in BeautifulSoup(path.read_text("utf-8"), "html.parser").select("a[href]"):
            parts = urlsplit(link["href"])
            if path.name == "404.html" or parts.scheme or not parts.path:
                continue
            seen += 1
            if not (path.parent / unquote(parts.path)).is_file():
                dead.append(f"{path.name}: {link['href']}")
    assert dead == [] and seen > 100


def test_the_drawing_leads_to_chapters(page: Page, offline_site: Path) -> None:
    page.goto((offline_site / "index.html").as_uri())
    page.get_by_role("link", name="Positions", exact=True).first.click()
    assert page.url == (offline_site / "decisions/positions.html").as_uri()


def test_search_finds(page: Page, offline_site: Path) -> None:
    page.goto((offline_site / "index.html").as_uri())
    page.locator(".md-search__input").click()
    page.wait_for_function("Boolean(frames[0]?.lunr)")
    page.keyboard.type("rotary", delay=50)
    expect(page.locator(".md-search-result__link").first).to_be_visible()
    page.locator(".md-search-result__link").first.click()
    page.wait_for_url(lambda url: "index.html" not in url)
    assert page.url != (offline_site / "index.html").as_uri()


def test_the_tools_work(page: Page, offline_site: Path) -> None:
    page.goto((offline_site / "tools/calculator.html").as_uri())
    page.get_by_label("Layers L").fill("13")
    expect(page.locator('tr[data-name="total"] td')).to_have_text(f"{parameters(Config(layers=13)).total:,}")
    link = page.url
    page.goto("about:blank")
    page.goto(link)
    expect(page.get_by_label("Layers L")).to_have_value("13")
    page.goto((offline_site / "tools/audit.html").as_uri())
    page.get_by_role("button", name="Fill in an example").click()
    expect(page.locator(".tool-status")).to_contain_text("8,190,735,360 parameters")
    page.goto((offline_site / "tools/atlas.html").as_uri())
    page.locator("input[name=q]").fill("deepseek")
    expect(page.locator(".atlas-count")).to_contain_text(" of ")


def test_the_policy_holds_for_files(page: Page, offline_site: Path) -> None:
    page.goto((offline_site / "index.html").as_uri())
    page.evaluate("""() => {
      const script = document.createElement("script");
      script.textContent = "window.ran = 1";
      document.body.append(script);
    }""")
    assert page.evaluate("window.ran") is None
