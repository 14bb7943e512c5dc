"""A few pages of the book printed as a PDF and read again with a library."""

import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from bs4 import BeautifulSoup

from claims.site import paper
from claims.site.plain import Listing

pytestmark = [pytest.mark.browser, pytest.mark.slow]

pypdf = pytest.importorskip("pypdf", reason="pypdf is not installed: the printed book was not read")

NAMES = [
    "index", "decisions", "decisions/heads-and-cache", "tools", "tools/atlas", "practice", "practice/warm-up",
    "reference", "reference/glossary", "reference/bibliography",
]  # fmt: skip
FEW_LINES = 5  # with the number of the page


def soup(site: Path, name: str) -> BeautifulSoup:
    path = site / ("index.html" if name == "index" else f"{name}/index.html")
    return BeautifulSoup(path.read_text("utf-8"), "html.parser")


def words(text: str, most: int = 8) -> str:
    """The first words without what fonts decide: spaces and ligatures."""
    return "".join(unicodedata.normalize("NFKC", text).split()[:most])


def choose(site: Path, names: list[str]) -> Listing:
    listing = paper.listed(site)
    chosen = tuple(page.entry for page in paper.pages(listing) if page.name in names)
    assert len(chosen) == len(names)
    return replace(listing, entries=chosen)


@pytest.fixture(scope="module")
def book(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    try:
        paper.browser()
    except paper.PaperError as error:
        pytest.skip(str(error))
    pdf = tmp_path_factory.mktemp("paper") / "book.pdf"
    pages = paper.bind(site, choose(site, NAMES), pdf)
    reader = pypdf.PdfReader(pdf)
    assert len(reader.pages) == pages
    return reader


@pytest.fixture(scope="module")
def texts(book: Any) -> list[str]:
    return [words(page.extract_text(), most=100_000) for page in book.pages]


@pytest.fixture(scope="module")
def starts(book: Any) -> list[int]:
    """The page on which each of NAMES begins, counted from 0."""
    places = {unquote(name.lstrip("/")): place for name, place in book.named_destinations.items()}
    return [book.get_destination_page_number(places[name]) for name in NAMES]


def test_each_page_of_the_site_begins_a_page_in_order(site: Path, texts: list[str], starts: list[int]) -> None:
    assert starts == sorted(set(starts)) and starts[0] >= 2
    for name, start in zip(NAMES, starts, strict=True):
        article = soup(site, name).article
        assert texts[start].startswith(f"{start + 1}{words(article.h1.get_text().removesuffix('¶'))}")
        assert words(article.select_one("h1 ~ p").get_text()) in texts[start], name


def test_title_contents_and_page_numbers(site: Path, texts: list[str], starts: list[int]) -> None:
    assert texts[0].startswith("DecoderBudgets")
    contents = "".join(texts[1 : starts[0]])
    assert contents.startswith("Contents")
    for entry, start in zip(choose(site, NAMES).entries, starts, strict=True):
        assert f"{words(entry.title)}{start + 1}" in contents
    assert [number for number in range(starts[0], len(texts)) if not texts[number].startswith(str(number + 1))] == []


def test_no_page_is_blank_and_no_chapter_ends_early(texts: list[str], starts: list[int]) -> None:
    assert [number + 1 for number, text in enumerate(texts) if len(text.removeprefix(str(number + 1))) < 30] == []
    assert starts[3] - starts[2] > 5  # a chapter, folded parts included
    assert "".join(texts[starts[4] : starts[5]]).count("published") > 50  # the whole table of the atlas


def test_no_chapter_ends_on_a_page_of_a_few_lines(book: Any, starts: list[int]) -> None:
    chapters = [at for at, name in enumerate(NAMES) if "/" in name]
    ends = {NAMES[at]: (starts[at + 1] if at + 1 < len(starts) else len(book.pages)) - 1 for at in chapters}
    lines = {name: len(book.pages[end].extract_text().splitlines()) for name, end in ends.items()}
    assert {name: count for name, count in lines.items() if count < FEW_LINES} == {}


def test_no_page_ends_with_a_heading(site: Path, book: Any) -> None:
    headings = {
        words(heading.get_text().removesuffix("¶"), 99)
        for name in NAMES
        for heading in soup(site, name).select("h1, h2, h3, h4")
    }
    ends = [page.extract_text(extraction_mode="layout").split("\n") for page in book.pages[2:]]
    lowest = [[line for line in lines if line.strip()][-2] for lines in ends]  # the last is the number of the page
    assert len(headings) > 30 and [line for line in lowest if words(line, 99) in headings] == []


def test_folded_answers_are_printed(site: Path, texts: list[str]) -> None:
    text = "".join(texts)
    answers = soup(site, "decisions/heads-and-cache").select("details details > p")
    assert len(answers) >= 3
    assert [answer.get_text() for answer in answers if words(answer.get_text(), 5) not in text] == []


def test_links_lead_inside_or_to_the_web(book: Any, starts: list[int]) -> None:
    inside, outside = 0, []
    for page in book.pages:
        for link in (each.get_object() for each in page.get("/Annots", [])):
            if "/A" in link and "/URI" in link["/A"]:
                outside.append(link["/A"]["/URI"])
            else:
                target = link.get("/Dest") or link["/A"]["/D"]
                assert not isinstance(target, str) or target in book.named_destinations, target
                inside += 1
    assert inside > 100
    assert outside and [link for link in outside if not link.startswith(("https://", "mailto:"))] == []


def test_the_outline_is_that_of_the_book(site: Path, book: Any, starts: list[int]) -> None:
    tops = [(each.title, book.get_destination_page_number(each)) for each in book.outline if not isinstance(each, list)]
    heads = [soup(site, name).h1.get_text().removesuffix("¶") for name in NAMES]
    sections = [at for at, name in enumerate(NAMES) if "/" not in name]
    assert tops == [(heads[at], starts[at]) for at in sections]
    titles = [each.title for each in flat(book.outline)]
    assert set(heads) <= set(titles) and len(titles) > 2 * len(NAMES)


def flat(outline: list[Any]) -> Iterator[Any]:
    for each in outline:
        if isinstance(each, list):
            yield from flat(each)
        else:
            yield each


def test_it_is_for_paper(book: Any) -> None:
    fonts = {str(font.get_object()["/BaseFont"]) for page in book.pages for font in fonts_of(page)}
    assert any("STIXTwoMath" in font for font in fonts)
    assert book.metadata.title == "Decoder Budgets"
    sizes = {tuple(sorted(round(float(side)) for side in page.mediabox[2:])) for page in book.pages}
    assert sizes == {(595, 842)}


def fonts_of(page: Any) -> Iterator[Any]:
    yield from page["/Resources"].get("/Font", {}).values()


def test_the_same_site_gives_the_same_bytes(site: Path, book: Any, tmp_path: Path) -> None:
    listing = choose(site, ["index", "reference", "reference/glossary"])
    for name in ("one.pdf", "two.pdf"):
        paper.bind(site, listing, tmp_path / name)
    assert (tmp_path / "one.pdf").read_bytes() == (tmp_path / "two.pdf").read_bytes()
