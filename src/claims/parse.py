"""Source text to a Page: front matter, blocks, inline mark-up, and the numbers that are left."""

from __future__ import annotations

from pathlib import Path

from claims import fences, front_matter, inline, numbers, source
from claims.lexicon import Lexicon
from claims.page import Page
from claims.source import Line, Source, SourceError


def read(root: Path, path: str, lexicon: Lexicon, text: str | None = None, last: Page | None = None) -> Page:
    """Read and parse one page, or a ``text`` in its place; what is wrong with it stands in ``problems``.

    ``last`` is the page as it was parsed before with the same lexicon; if nothing has changed it is given back.
    """
    try:
        found = source.read(root, path) if text is None else source.from_text(root, path, text)
    except SourceError as error:
        page = Page(Source(path, (Line("", path, error.line),)))
        page.problem(error.slug, 0, 0, str(error))
        return page
    return last if last and last.source == found else parse(found, lexicon)


def parse(text: Source, lexicon: Lexicon) -> Page:
    """Parse a source into a page."""
    page = Page(text)
    front_matter.read(page)
    fenced = fences.read(page)
    hidden = [(0, page.front), *fenced]
    opaque = inline.read(page, hidden)
    page.opaque = [*hidden, *opaque]
    numbers.read(page, lexicon, hidden, opaque)
    page.claims.sort(key=lambda claim: claim.start)
    return page
