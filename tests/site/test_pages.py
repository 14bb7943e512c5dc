"""Every built page: links lead somewhere, ids are unique, images have a text, nothing comes from outside."""

import gzip
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from bs4 import BeautifulSoup

BUDGET = tomllib.loads(Path(__file__).with_name("budget.toml").read_text("utf-8"))
LOADING = {
    "script": "src",
    "link": "href",
    "img": "src",
    "source": "src",
    "iframe": "src",
    "video": "src",
    "audio": "src",
    "object": "data",
    "embed": "src",
    "use": "href",
    "image": "href",
}
NOT_LOADED = {"canonical", "prev", "next", "alternate"}


@cache
def parsed(page: Path) -> BeautifulSoup:
    return BeautifulSoup(page.read_text("utf-8"), "html.parser")


def pages(site: Path) -> Iterator[tuple[str, BeautifulSoup]]:
    for page in sorted(site.rglob("*.html")):
        yield page.relative_to(site).as_posix(), parsed(page)


def target(site: Path, page: str, link: str) -> tuple[Path, str] | None:
    """The file and the anchor that a link on `page` leads to; None where it leads out of the site."""
    if urlsplit(link).scheme or link.startswith("//"):
        return None
    path, _, anchor = urljoin(f"/{page}", link).partition("#")
    file = site / unquote(path.partition("?")[0]).lstrip("/")
    return (file / "index.html" if path.endswith("/") else file), unquote(anchor)


def broken_links(site: Path) -> list[str]:
    return [
        f"{page}: {link['href']}"
        for page, soup in pages(site)
        for link in soup.select("a[href]")
        if (found := target(site, page, link["href"])) and not leads_somewhere(*found)
    ]


def leads_somewhere(file: Path, anchor: str) -> bool:
    if not file.is_file():
        return False
    return not anchor or file.suffix != ".html" or parsed(file).find(id=anchor) is not None


def duplicate_ids(site: Path) -> list[str]:
    return [
        f"{page}: {name}"
        for page, soup in pages(site)
        for name, count in Counter(element["id"] for element in soup.find_all(id=True)).items()
        if count > 1
    ]


def images_without_text(site: Path) -> list[str]:
    return [
        f"{page}: {str(image)[:60]}"
        for page, soup in pages(site)
        for image in soup.select("img:not([alt]), svg[role=img]:not([aria-label], [aria-labelledby], :has(title))")
    ] + [
        f"{page}: {str(figure)[:60]}"
        for page, soup in pages(site)
        for figure in soup.select("figure.claims-figure")
        if not figure.select("[role=img], img")
    ]


def loads(soup: BeautifulSoup) -> Iterator[str]:
    for tag, attribute in LOADING.items():
        for element in soup.find_all(tag):
            if element.get(attribute) and not NOT_LOADED & set(element.get("rel", [])):
                yield element[attribute]


def requests_outside(site: Path) -> list[str]:
    in_pages = [f"{page}: {url}" for page, soup in pages(site) for url in loads(soup) if urlsplit(url).netloc]
    in_styles = [
        f"{style.relative_to(site).as_posix()}: {url}"
        for style in sorted(site.rglob("*.css"))
        for url in re.findall(r"""(?:url\(|@import )\s*["']?((?:https?:)?//[^"')]+)""", style.read_text("utf-8"))
    ]
    return in_pages + in_styles


def inline_handlers(site: Path) -> list[str]:
    return [
        f"{page}: {element.name} {name}"
        for page, soup in pages(site)
        for element in soup.find_all(True)
        for name, value in element.attrs.items()
        if name.startswith("on") or str(value).strip().lower().startswith("javascript:")
    ]


def over_budget(site: Path) -> list[str]:
    found = []
    for page, soup in pages(site):
        html = re.sub(r"(?s)<figure class=\"claims-figure.*?</figure>", "", (site / page).read_text("utf-8"))
        files = {site / page} | {at[0] for url in loads(soup) if (at := target(site, page, url))}
        size = compressed(html.encode()) + sum(transferred(file) for file in files - {site / page})
        elements = len(soup.find_all(True))
        if size > BUDGET["transferred_bytes"]:
            found.append(f"{page}: {size:,} bytes transferred")
        if elements > BUDGET["elements"]:
            found.append(f"{page}: {elements:,} elements")
    return found


def transferred(file: Path) -> int:
    return file.stat().st_size if file.suffix in {".woff2", ".png", ".jpg"} else compressed(file.read_bytes())


def compressed(content: bytes) -> int:
    return len(gzip.compress(content, mtime=0))


CHECKS = [broken_links, duplicate_ids, images_without_text, requests_outside, inline_handlers, over_budget]


@pytest.mark.parametrize("check", CHECKS)
def test_the_site(site: Path, check: Callable[[Path], list[str]]) -> None:
    assert check(site) == []


def test_there_is_something_to_check(site: Path) -> None:
    assert {"index.html", "404.html", "decisions/heads-and-cache/index.html"} <= {page for page, _ in pages(site)}
    assert (site / "assets/fonts/stix-two-math.woff2").is_file()
    assert parsed(site / "decisions/heads-and-cache/index.html").select('data.claim[value="131072"]')


PLANTED = {
    broken_links: (
        '<p id="a"></p><a href="#a"></a><a href="#b"></a><a href="c/"></a><a href="d.txt"></a><a href="/#a"></a>',
        ["index.html: #b", "index.html: c/", "index.html: d.txt"],
    ),
    duplicate_ids: ('<p id="a"></p><p id="b"></p><b id="a"></b>', ["index.html: a"]),
    images_without_text: (
        '<img alt="" src="x"><img src="y"><svg role="img"></svg><svg role="img" aria-label="z"></svg>'
        '<figure class="claims-figure"><svg></svg></figure>',
        [
            'index.html: <img src="y"/>',
            'index.html: <svg role="img"></svg>',
            'index.html: <figure class="claims-figure"><svg></svg></figure>',
        ],
    ),
    requests_outside: (
        '<script src="a.js"></script><script src="https://x.test/b.js"></script><img src="//x.test/c.png">'
        '<link rel="canonical" href="https://x.test/"><a href="https://x.test/"></a>',
        ["index.html: https://x.test/b.js", "index.html: //x.test/c.png", "s.css: https://x.test/f.woff2"],
    ),
    inline_handlers: (
        '<a href="JavaScript:f()"></a><p onclick="f()" class="online"></p>',
        ["index.html: a href", "index.html: p onclick"],
    ),
    over_budget: ("<i></i>" * (BUDGET["elements"] + 1), [f"index.html: {BUDGET['elements'] + 1:,} elements"]),
}


@pytest.mark.parametrize("check", CHECKS)
def test_a_planted_fault_is_found(tmp_path: Path, check: Callable[[Path], list[str]]) -> None:
    html, expected = PLANTED[check]
    (tmp_path / "index.html").write_text(html, "utf-8")
    (tmp_path / "s.css").write_text("@font-face { src: url('https://x.test/f.woff2') } a { background: url(b.png) }")
    assert check(tmp_path) == expected


def test_a_heavy_page_is_found(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text('<link rel="preload" href="font.woff2">')
    (tmp_path / "font.woff2").write_bytes(bytes(BUDGET["transferred_bytes"]))
    [found] = over_budget(tmp_path)
    assert re.fullmatch(r"index\.html: 150,0\d\d bytes transferred", found)
