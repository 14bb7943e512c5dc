"""The pages of a site as one document: unique ids, links that stay inside, headings in order. No browser needed."""

import os
import re
from collections import Counter
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from click.testing import CliRunner

from claims.__main__ import main
from claims.site import paper
from claims.site.plain import Entry, Listing, listing, read_listing

HEAD = '<head><link rel="stylesheet" href="{root}a.css"><title>x</title></head>'
PAGES = {
    "index.html": '<article class="md-typeset"><h1 id="start">Start</h1><h2 id="why">Why</h2>'
    '<a href="one/#why">1</a><a href="one/two/">2</a><a href="https://x.test/">3</a><a href="code.py">4</a></article>',
    "one/index.html": '<nav id="why">outside</nav>'
    '<article><h1 id="start">One</h1><h2 id="why">Why &lt;id&gt; id="x"</h2>'
    '<details><summary>?</summary>folded</details><a href="#why">here</a><a href="../">home</a></article>',
    "one/two/index.html": '<article><h1 id="start">Two</h1><label for="in">a</label><input id="in"><br/>'
    '<svg viewBox="0 0 1 1"><clipPath id="c"></clipPath><path clip-path="url(#c)"/><use xlink:href="#c"></use></svg>'
    '<img src="../../pic.png" alt="1 &lt; 2"><math><mo>&#x2192;</mo></math></article>',
}
ENTRIES = (
    Entry("", "Start here", "https://b.test/index.html.md", "What it is."),
    Entry("Part", "One", "https://b.test/one/index.html.md", ""),
    Entry("Part", "Two (of [2])", "https://b.test/one/two/index.html.md", "Next: more."),
)
LISTING = Listing("The Book", "About it.", ENTRIES)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    for name, html in PAGES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"<html>{HEAD.format(root='../' * name.count('/'))}<body>{html}</body></html>")
    (tmp_path / "llms.txt").write_text(listing(LISTING.title, LISTING.description, ENTRIES))
    return tmp_path


@pytest.fixture
def book(site: Path) -> BeautifulSoup:
    return BeautifulSoup(paper.assemble(site, paper.listed(site), {"one": 7}, "1 May 2026"), "html.parser")


def test_the_list_is_read_as_it_was_written() -> None:
    assert read_listing(listing("The Book", "About it.", ENTRIES)) == LISTING


def test_another_text_is_no_list() -> None:
    with pytest.raises(ValueError, match=re.escape("not a line of a list of pages: <html>")):
        read_listing("# The Book\n\n<html>\n")


def test_ids_are_unique_and_every_link_inside_leads_somewhere(book: BeautifulSoup) -> None:
    ids = [element["id"] for element in book.find_all(id=True)]
    assert [name for name, count in Counter(ids).items() if count > 1] == []
    links = [link["href"] for link in book.select(".page a[href]")]
    assert links == ["#one:why", "#one/two", "https://x.test/", "https://b.test/code.py", "#one:why", "#index"]
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)


def test_what_names_an_id_follows_it(book: BeautifulSoup) -> None:
    assert book.find("label")["for"] == book.find("input")["id"] == "one/two:in"
    assert book.find("path")["clip-path"] == "url(#one/two:c)"
    assert book.find("use")["xlink:href"] == "#one/two:c"


def test_only_articles_are_bound_and_their_text_is_untouched(book: BeautifulSoup, site: Path) -> None:
    assert "outside" not in book.text
    assert 'Why <id> id="x"' in book.text
    assert "→" in book.find("math").text
    assert book.find("img")["alt"] == "1 < 2"
    assert book.find("img")["src"] == (site / "pic.png").as_uri()
    assert [link["href"] for link in book.select("link")] == [(site / "a.css").as_uri()]


def test_folds_are_open(book: BeautifulSoup) -> None:
    assert book.find("details").has_attr("open")


@pytest.mark.parametrize(("start", "newline"), [("<pre>", "\n"), ('<pre class="claims-output">', "&#10;")])
def test_short_code_stays_on_one_page_and_long_code_may_be_cut(site: Path, start: str, newline: str) -> None:
    code = [f"{start}<code>{newline.join('x' * lines)}</code></pre>" for lines in (paper.WHOLE + 1, paper.WHOLE + 2)]
    (site / "index.html").write_text(f"<html><body><article><h1>Start</h1>{''.join(code)}</article></body></html>")
    short, long = BeautifulSoup(paper.assemble(site, paper.listed(site)), "html.parser").find_all("pre")
    assert "whole" in short["class"] and "whole" not in long.get("class", [])
    assert ("claims-output" in start) == ("claims-output" in short["class"])


def test_the_first_page_of_a_section_stands_above_the_others(book: BeautifulSoup) -> None:
    assert [(heading.name, heading.text[:5]) for heading in book.select("h1, h2, h3")] == [
        ("h1", "Start"), ("h2", "Why"), ("h1", "One"), ("h2", "Why <"), ("h2", "Two"),
    ]  # fmt: skip


def test_title_and_contents(book: BeautifulSoup) -> None:
    assert [line.text for line in book.select(".title-page p")] == [
        "The Book", "About it.", "1 May 2026", "https://b.test/",
    ]  # fmt: skip
    assert [(line["href"], [part.text for part in line.select("span")]) for line in book.select(".contents a")] == [
        ("#index", ["Start here", "0"]), ("#one", ["One", "7"]), ("#one/two", ["Two (of [2])", "0"]),
    ]  # fmt: skip


def test_nothing_but_files_may_be_loaded(book: BeautifulSoup) -> None:
    policy = book.find("meta", {"http-equiv": "Content-Security-Policy"})["content"]
    assert policy.startswith("default-src 'none'") and "http" not in policy and "script" not in policy


def refused(site: Path) -> str:
    done = CliRunner().invoke(main, ["pdf", str(site), str(site / "book.pdf")])
    assert done.exit_code == 1 and "Traceback" not in done.output
    return done.output


def test_a_folder_that_is_no_site_is_refused(tmp_path: Path) -> None:
    expected = f"Error: {tmp_path / 'llms.txt'}: No such file or directory; build the site first\n"
    assert refused(tmp_path) == expected


def test_a_page_that_is_gone_is_refused(site: Path) -> None:
    (site / "one/index.html").unlink()
    page = site / "one/index.html"
    assert refused(site) == f"Error: {page}: No such file or directory, but llms.txt lists it\n"


def test_an_empty_list_is_refused(site: Path) -> None:
    (site / "llms.txt").write_text("# The Book\n")
    assert refused(site) == f"Error: {site}: no page is listed in llms.txt\n"


def test_a_machine_without_a_browser_is_told_what_it_lacks(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    assert refused(site) == (
        "Error: a Chromium is needed to print, and none of chromium, chromium-browser, google-chrome, chrome"
        " is on this machine\n"
    )


def test_a_place_that_cannot_be_written_is_named(site: Path) -> None:
    (site / "taken").write_text("")
    done = CliRunner().invoke(main, ["pdf", str(site), str(site / "taken" / "book.pdf")])
    assert done.exit_code == 2
    assert done.output.startswith("claims: ") and "File exists" in done.output and str(site / "taken") in done.output


def test_a_browser_that_prints_nothing_is_quoted(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = site / "chromium"
    broken.write_text("#!/bin/sh\necho no screen >&2\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(site), prepend=os.pathsep)
    assert refused(site) == f"Error: {broken} printed nothing, exit code 3: no screen\n"
    assert not (site / "book.pdf").exists()
