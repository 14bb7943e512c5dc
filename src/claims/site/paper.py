"""The book for paper: the pages of a built site as one document, and that as a PDF, printed by Chromium.

The pages come in the order of the site's ``llms.txt``. Every id is put under the name of its page, so that ids stay
unique and a link from page to page leads to its place in the book. Folded parts are open, and the first page of a
section opens it, one heading above the others. Nothing is asked of any network.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from claims import whole_file
from claims.site.plain import Entry, Listing, read_listing

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = (
    "--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND", "--no-pdf-header-footer",
    "--generate-pdf-document-outline", "--allow-file-access-from-files",
)  # fmt: skip
POLICY = "default-src 'none'; style-src file: 'unsafe-inline'; img-src file: data:; font-src file:"
WHOLE = 20  # lines of code that no page break may part; more would leave too much of a page empty
SECONDS = 900  # a browser that has not printed the book by then never will

STYLES = re.compile(r'<link rel="?stylesheet"?[^>]*\bhref="?(?P<href>[^">\s]+)"?[^>]*>')
CODE = re.compile(r"<pre\b(?P<attributes>[^>]*)>(?P<text>.*?)</pre>", re.DOTALL)
REFERENCE = re.compile(r"url\(#([^)]+)\)")
NAMING = {"id", "name"}
NAMED = {"for", "list", "headers", "aria-controls", "aria-describedby", "aria-labelledby", "aria-owns"}
LEADING = {"href", "xlink:href"}
HEADINGS = {f"h{level}": f"h{level + 1}" for level in range(1, 6)}


class PaperError(ValueError):
    """A site that cannot be printed, or a machine that cannot print; the message says what is missing."""


@dataclass(frozen=True)
class Page:
    """A page of the book, its line in the list and its file under the site."""

    entry: Entry
    address: str  # such as decisions/index.html
    opens: bool  # the first of its section

    @property
    def name(self) -> str:
        """What its ids begin with."""
        return self.address.removesuffix("index.html").removesuffix(".html").strip("/") or "index"


# --- From a site to one document


def pages(listing: Listing) -> list[Page]:
    """The listed pages in their order; the first is the front page, whose address all others begin with."""
    found: list[Page] = []
    for entry in listing.entries:
        address = entry.address.removeprefix(_online(listing)).removesuffix(".md")
        found.append(Page(entry, address, opens=not found or found[-1].entry.section != entry.section))
    return found


def _online(listing: Listing) -> str:
    """Where the site is published, empty if it was built without an address."""
    return listing.entries[0].address.removesuffix("index.html.md")


def listed(site: Path) -> Listing:
    """What the site says that it holds. Raises PaperError where it does not."""
    path = site / "llms.txt"
    try:
        return read_listing(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PaperError(f"{path}: {getattr(error, 'strerror', None) or error}; build the site first") from None


def assemble(site: Path, listing: Listing, folios: Mapping[str, int] | None = None, edition: str = "") -> str:
    """One document of the listed pages: title, contents, then each page. ``folios`` are numbers for the contents."""
    book = pages(listing)
    if not book:
        raise PaperError(f"{site}: no page is listed in llms.txt")
    texts = {page.address: _read(site / page.address) for page in book}
    names = {page.address: page.name for page in book}
    online = _online(listing)
    styles = dict.fromkeys(
        (site / Path(page.address).parent / found["href"]).resolve().as_uri()
        for page in book
        for found in STYLES.finditer(texts[page.address])
    )
    parts = [
        '<!doctype html>\n<html lang="en" class="no-js"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        f"<title>{escape(listing.title)}</title>",
        *(f'<link rel="stylesheet" href="{escape(style)}">' for style in styles),
        f"<style>{files('claims.site').joinpath('paper.css').read_text('utf-8')}</style></head>",
        '<body dir="ltr" data-md-color-scheme="default" data-md-color-primary="custom" data-md-color-accent="custom">',
        _title_page(listing, online, edition),
        _contents(book, folios or {}),
    ]
    for page in book:
        article = _Article(page, names, site, online)
        article.feed(texts[page.address])
        article.close()
        text = CODE.sub(_kept_whole, article.text)
        parts.append(f'<section class="page md-typeset" id="{escape(page.name)}">{text}</section>')
    return "\n".join([*parts, "</body></html>\n"])


def _kept_whole(code: re.Match[str]) -> str:
    """Code with the class ``whole`` where it is short; what blocks printed has lines without a newline in HTML."""
    lines = code["text"].count("\n") + code["text"].count("&#10;")
    if lines > WHOLE:
        return code[0]
    given = code["attributes"]
    classes = re.sub(r'\bclass="', 'class="whole ', given) if "class=" in given else f'{given} class="whole"'
    return f"<pre{classes}>{code['text']}</pre>"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise PaperError(f"{path}: {error.strerror}, but llms.txt lists it") from None


def _title_page(listing: Listing, online: str, edition: str) -> str:
    lines = [f'<p class="book-title">{escape(listing.title)}</p>', f"<p>{escape(listing.description)}</p>"]
    if edition:
        lines.append(f"<p>{escape(edition)}</p>")
    if online:
        lines.append(f'<p><a href="{escape(online)}">{escape(online)}</a></p>')
    return f'<section class="title-page md-typeset">{"".join(lines)}</section>'


def _contents(book: Iterable[Page], folios: Mapping[str, int]) -> str:
    """The table of contents. A page number that is not known yet is as wide as one that is."""
    lines = ['<nav class="contents md-typeset"><p class="contents-title">Contents</p>']
    for page in book:
        kind = "contents-section" if page.opens else "contents-page"
        lines.append(
            f'<a class="{kind}" href="#{escape(page.name)}"><span>{escape(page.entry.title)}</span>'
            f"<span>{folios.get(page.name, 0)}</span></a>"
        )
    return "\n".join([*lines, "</nav>"])


class _Article(HTMLParser):
    """The content of a page, each start tag written anew with the ids and links of the book."""

    def __init__(self, page: Page, names: Mapping[str, str], site: Path, online: str) -> None:
        super().__init__(convert_charrefs=False)
        self.page, self.names, self.site, self.online = page, names, site, online
        self.depth = 0
        self.parts: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self.parts)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._start(tag, attrs, ">")
        self.depth += tag == "article"

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._start(tag, attrs, "/>")

    def handle_endtag(self, tag: str) -> None:
        self.depth -= tag == "article"
        self._add(f"</{self._tag(tag)}>")

    def handle_data(self, data: str) -> None:
        self._add(data)

    def handle_entityref(self, name: str) -> None:
        self._add(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self._add(f"&#{name};")

    def _add(self, text: str) -> None:
        if self.depth:
            self.parts.append(text)

    def _start(self, tag: str, attrs: list[tuple[str, str | None]], end: str) -> None:
        given = [*attrs, ("open", None)] if tag == "details" else attrs
        written = dict(self._attribute(name, value or "") for name, value in given)
        shown = "".join(f' {name}="{escape(value)}"' for name, value in written.items() if value is not None)
        self._add(f"<{self._tag(tag)}{shown}{end}")

    def _tag(self, tag: str) -> str:
        """A page that does not open its section has its headings one level down."""
        return tag if self.page.opens else HEADINGS.get(tag, tag)

    def _attribute(self, name: str, value: str) -> tuple[str, str | None]:
        if name in NAMING and value:
            return name, self._named(value)
        if name in NAMED:
            return name, " ".join(map(self._named, value.split()))
        if name in LEADING:
            return name, self._link(value)
        if name == "src":
            return name, (self.site / self._target(value)).resolve().as_uri() if not urlsplit(value).scheme else value
        return name, REFERENCE.sub(lambda found: f"url(#{self._named(found[1])})", value)

    def _named(self, name: str, page: str | None = None) -> str:
        return f"{page or self.page.name}:{name}"

    def _target(self, link: str) -> str:
        return unquote(urlsplit(urljoin(f"/{self.page.address}", link)).path).lstrip("/")

    def _link(self, link: str) -> str | None:
        """Where a link of the page leads in the book; into the published site or nowhere for what is not in it."""
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            return link
        target = self._target(link)
        name = self.names.get(f"{target}index.html" if target.endswith("/") or not target else target)
        if name is None:
            return f"{self.online}{target}" if self.online else None
        return "#" + (self._named(unquote(parts.fragment), name) if parts.fragment else name)


# --- From the document to a PDF


def install(site: Path, pdf: Path) -> int:
    """Print a built site as one PDF; the number of its pages is returned. Raises PaperError, naming the reason.

    The contents can tell page numbers only once the book has been printed, so it is printed twice.
    """
    return bind(site, listed(site), pdf)


def bind(site: Path, listing: Listing, pdf: Path) -> int:
    """Print these pages of a site. What was at ``pdf`` stays there until the new book is whole."""
    pypdf = _pypdf()
    edition = _edition()
    pdf.parent.mkdir(parents=True, exist_ok=True)
    folios: dict[str, int] = {}
    for _ in range(3):
        book = pypdf.PdfReader(io.BytesIO(printed(assemble(site, listing, folios, edition))))
        found = dict(_folios(book, [page.name for page in pages(listing)]))
        if found == folios:
            _write(pypdf, book, listing, pdf)
            return len(book.pages)
        folios = found
    raise PaperError(f"{pdf}: the page numbers of its contents do not settle")


def _pypdf() -> Any:
    try:
        import pypdf
    except ModuleNotFoundError:
        raise PaperError("pypdf is needed to number the contents: pip install pypdf") from None
    return pypdf


def browser() -> str:
    """The Chromium of this machine. Raises PaperError where there is none."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise PaperError(f"a Chromium is needed to print, and none of {', '.join(BROWSERS)} is on this machine")
    return found


def printed(html: str) -> bytes:
    """A document as Chromium prints it, without a network and without a profile that outlives it."""
    with tempfile.TemporaryDirectory(prefix="claims-paper-", ignore_cleanup_errors=True) as folder:
        document, pdf = Path(folder) / "book.html", Path(folder) / "book.pdf"
        document.write_text(html, encoding="utf-8")
        own = [f"--user-data-dir={folder}/profile", f"--print-to-pdf={pdf}"]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            own.append("--no-sandbox")  # Chromium will not have one for root
        command = [browser(), *OPTIONS, *own, document.as_uri()]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            raise PaperError(f"{command[0]} has not printed the book in {SECONDS} seconds") from None
        if done.returncode or not pdf.is_file():
            said = done.stderr.strip()[-500:]
            raise PaperError(f"{command[0]} printed nothing, exit code {done.returncode}: {said}")
        return pdf.read_bytes()


def _folios(book: Any, names: Iterable[str]) -> Iterator[tuple[str, int]]:
    """On which page of the printed book each page of the site begins, the title page being the first."""
    places = {unquote(name.lstrip("/")): place for name, place in book.named_destinations.items()}
    for name in names:
        if name not in places:
            raise PaperError(f"the printed book has no place for {name}")
        yield name, book.get_destination_page_number(places[name]) + 1


def _edition() -> str:
    """The day of the edition, where the build has one."""
    moment = _moment()
    return f"{moment.day} {moment:%B %Y}" if moment else ""


def _moment() -> datetime | None:
    seconds = os.environ.get("SOURCE_DATE_EPOCH", "")
    return datetime.fromtimestamp(int(seconds), UTC) if seconds.isdecimal() and int(seconds) else None


def _write(pypdf: Any, book: Any, listing: Listing, pdf: Path) -> None:
    """Write the book with its title and without the time of printing, so that the same site gives the same bytes."""
    writer = pypdf.PdfWriter(clone_from=book)
    stamp = f"D:{_moment() or datetime(1980, 1, 1, tzinfo=UTC):%Y%m%d%H%M%S}Z"
    writer.metadata = {
        "/Title": listing.title, "/Subject": listing.description, "/Producer": "Chromium, claims",
        "/CreationDate": stamp, "/ModDate": stamp,
    }  # fmt: skip
    writer.page_mode = "/UseOutlines"
    written = io.BytesIO()
    writer.write(written)
    whole_file.write(pdf, written.getvalue())
