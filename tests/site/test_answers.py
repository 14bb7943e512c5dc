"""The fields of the practice pages: each has a label and a name of its own, and keeps what a reader writes."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Browser, Page, expect

DOCS = Path(__file__).parents[2] / "docs"
PAGE = "practice/warm-up/"


def fields() -> list[tuple[str, str]]:
    """The name and the label of every field in the book."""
    found = []
    for page in sorted(DOCS.rglob("*.md")):
        for tag in re.findall(r"<label class=\"answer\">.*?</label>|<textarea.*?</textarea>", page.read_text("utf-8")):
            soup = BeautifulSoup(tag, "html.parser")
            label = soup.label.text.strip() if soup.label else ""
            found.append((soup.textarea["data-answer"], label))
    return found


def test_each_field_has_a_name_and_a_label_of_its_own() -> None:
    names, labels = zip(*fields(), strict=True)
    assert len(names) >= 20
    assert [name for name, count in Counter(names).items() if count > 1] == []
    assert [label for label, count in Counter(labels).items() if count > 1 or not label.startswith("Your ")] == []


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browser.new_context() as context:
        yield context.new_page()


@pytest.mark.browser
def test_an_answer_stays_until_it_is_cleared(page: Page, address: str) -> None:
    page.goto(address + PAGE)
    field = page.get_by_label("Your answer on names and objects", exact=True)
    other = page.get_by_label("Your answer on shapes", exact=True)
    clear = page.get_by_role("button", name="Clear: Your answer on names and objects")
    expect(clear).to_be_hidden()
    field.fill("an alias is the object")
    expect(clear).to_be_visible()

    page.reload()
    expect(field).to_have_value("an alias is the object")
    expect(other).to_have_value("")
    clear.click()
    expect(field).to_have_value("")
    expect(field).to_be_focused()
    expect(clear).to_be_hidden()

    page.reload()
    expect(field).to_have_value("")


@pytest.mark.browser
def test_without_storage_it_is_paper(page: Page, address: str) -> None:
    page.add_init_script("Object.defineProperty(window, 'localStorage', { get() { throw new Error('refused') } })")
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(address + PAGE)
    field = page.get_by_label("Your answer on shapes", exact=True)
    field.fill("kept while the page is open")
    expect(field).to_have_value("kept while the page is open")
    assert [error for error in errors if "answers.js" in error] == []
    page.get_by_role("button", name="Clear: Your answer on shapes").click()
    expect(field).to_have_value("")
