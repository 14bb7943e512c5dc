"""How a reader finds the way: search, sections, neighbours, anchors, terms, code to take along, a wrong address."""

import gzip
import re
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from urllib.parse import urljoin

import pytest
import yaml
from bs4 import BeautifulSoup
from playwright.sync_api import Browser, Page, expect

CHAPTER = "decisions/heads-and-cache/"
ROOT = Path(__file__).parents[2]


def soup(site: Path, path: str) -> BeautifulSoup:
    return BeautifulSoup((site / path / "index.html").read_text("utf-8"), "html.parser")


def addresses(site: Path) -> list[str]:
    return [page.parent.relative_to(site).as_posix() for page in sorted(site.rglob("index.html"))]


def sections(entries: list) -> Iterator[list[str]]:
    """The first page of each entry of a section, for all sections of the navigation."""
    for entry in entries:
        for value in entry.values() if isinstance(entry, dict) else []:
            if isinstance(value, list):
                yield [first_page(each) for each in value]
                yield from sections(value)


def first_page(entry: str | list | dict) -> str:
    if isinstance(entry, str):
        return entry
    return first_page(entry[0] if isinstance(entry, list) else next(iter(entry.values())))


def navigation() -> list:
    text = (ROOT / "mkdocs.yml").read_text("utf-8")
    return yaml.safe_load(text[text.index("\nnav:") :])["nav"]


def test_each_section_begins_with_a_list_of_its_pages(site: Path) -> None:
    found = list(sections(navigation()))
    assert len(found) >= 9
    for index, *pages in found:
        assert index.endswith("/index.md")
        here = index.removesuffix("index.md")
        listed = [urljoin(here, link["href"]) for link in soup(site, here).select("article a[href]")]
        wanted = [page.removesuffix("index.md").removesuffix(".md").rstrip("/") + "/" for page in pages]
        assert [page for page in listed if page in wanted] == wanted, index


def test_each_page_says_what_it_holds(site: Path) -> None:
    said = {}
    for path in addresses(site):
        description = soup(site, path).select_one('meta[name="description"]')
        assert description and 30 <= len(description["content"]) <= 160, path
        said.setdefault(description["content"], []).append(path)
    assert [paths for paths in said.values() if len(paths) > 1] == []


def test_labs_are_told_apart_by_their_first_words(site: Path) -> None:
    links = soup(site, "labs").select(".md-nav--primary a[href]")
    labs = [link.get_text(" ", strip=True) for link in links if re.fullmatch(r"[a-z-]+/", link["href"])]
    assert len(labs) >= 7
    assert len({name[:8] for name in labs}) == len(labs), labs


def test_each_page_has_one_title_and_no_level_is_left_out(site: Path) -> None:
    for path in addresses(site):
        levels = [int(heading.name[1]) for heading in soup(site, path).select("article :is(h1, h2, h3, h4, h5, h6)")]
        assert levels[0] == 1 and levels.count(1) == 1, path
        assert [pair for pair in pairwise(levels) if pair[1] > pair[0] + 1] == [], path


def test_what_search_loads_is_small(site: Path) -> None:
    budget = tomllib.loads(Path(__file__).with_name("budget.toml").read_text("utf-8"))
    assert len(gzip.compress((site / "search/search_index.json").read_bytes())) <= budget["search_bytes"]


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        yield context.new_page()


@pytest.mark.browser
@pytest.mark.parametrize("words", ["128 KiB", "GQA", "KV cache"])
def test_search_finds_the_chapter(page: Page, address: str, words: str) -> None:
    page.goto(address)
    page.get_by_role("textbox", name="Search").click()
    page.keyboard.type(words)
    result = page.locator(f".md-search-result__link[href*='{CHAPTER}']").first
    expect(result).to_be_visible()
    result.click()
    expect(page).to_have_url(re.compile(re.escape(address + CHAPTER)))


@pytest.mark.browser
def test_neighbours_and_crumbs(page: Page, address: str) -> None:
    page.goto(address + CHAPTER)
    page.get_by_role("link", name="Next: Inference cost").click()
    page.get_by_role("link", name="Previous: Heads and cache").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("How many key/value heads?")
    page.get_by_role("navigation", name="Breadcrumbs").get_by_role("link", name="Decisions").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Decisions")
    page.get_by_role("link", name="How many key/value heads?").click()
    expect(page).to_have_url(address + CHAPTER)


@pytest.mark.browser
def test_an_anchor_leads_to_its_heading(page: Page, address: str) -> None:
    page.goto(address + CHAPTER)
    heading = page.locator("article h2").nth(3)
    link = heading.locator(".headerlink").get_attribute("href")
    page.goto(address + CHAPTER + link)
    expect(heading).to_be_in_viewport()
    assert heading.bounding_box()["y"] >= page.locator(".md-header").bounding_box()["height"]


@pytest.mark.browser
def test_a_term_says_what_it_means_and_leads_to_the_glossary(page: Page, address: str) -> None:
    page.goto(address + CHAPTER)
    term = page.get_by_role("link", name="key/value cache").first
    assert term.get_attribute("title").startswith("The keys and values of earlier tokens")
    term.click()
    expect(page.locator("dt:has(:target)")).to_have_text("key/value cache")
    expect(page.locator("dt:has(:target)")).to_be_in_viewport()


@pytest.mark.browser
def test_code_is_copied_as_it_runs(page: Page, address: str) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(address + CHAPTER)
    block = page.locator("#block-1")
    block.scroll_into_view_if_needed()
    block.get_by_role("button", name="Copy to clipboard").click()
    expect(page.locator(".md-dialog")).to_contain_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()").strip() == block.locator("code").inner_text().strip()


@pytest.mark.browser
def test_a_page_that_is_not_there(page: Page, address: str) -> None:
    page.goto(f"{address}404.html")
    expect(page.get_by_role("heading", level=1)).to_contain_text("This page is not here")
    page.get_by_role("link", name="front page").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Decoder Budgets")
