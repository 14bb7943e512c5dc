"""The book's terms: one file of meanings, a page made of it, and a link to that page where a page first uses a term.

``glossary.toml`` holds one table a term::

    ["key/value cache"]
    also = ["KV cache"]                      # other words for it in running text; a plural needs no entry
    meaning = "The keys and values that are kept, so that earlier tokens need not be read again."
    page = "decisions/heads-and-cache.md"    # where it is explained, below the folder of the pages

A meaning is plain text and holds no loose number, as nothing would check it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from claims.facts import Trouble
from claims.lexicon import Lexicon
from claims.page import Page
from claims.parse import parse
from claims.source import from_text

GLOSSARY = "<!-- claims:glossary -->"
KEYS = frozenset({"also", "meaning", "page"})

LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?:<[^>]*>|[^()]*(?:\([^()]*\)[^()]*)*)\)")

# Lines in which a link has no place: headings, titles of admonitions and tabs, raw HTML, reference definitions and
# the identifiers of mkdocstrings.
_BARE = re.compile(r"^[ \t>]*(?:#{1,6}[ \t]|:::|!!!|\?\?\?|===|<|\[[^\]\n]+\]:).*$", re.M)


@dataclass(frozen=True)
class Term:
    """One term, the words that stand for it, and what it means."""

    name: str
    also: tuple[str, ...]
    meaning: str
    page: str

    @property
    def anchor(self) -> str:
        return f"term-{re.sub(r'[^a-z0-9]+', '-', self.name.lower()).strip('-')}"


@dataclass
class Glossary:
    """All terms by name, and what is wrong with their file."""

    path: str = ""
    terms: dict[str, Term] = field(default_factory=dict)
    troubles: list[Trouble] = field(default_factory=list)

    @cached_property
    def _named(self) -> dict[str, Term]:
        return {_plain(form): term for term in self.terms.values() for form in (term.name, *term.also)}

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """Any form of any term, the longest first, with or without the ending of a plural.

        Not behind a bracket, as in a list to tick off, where Markdown would take the two for one link.
        """
        forms = sorted(self._named, key=len, reverse=True)
        words = "|".join(re.escape(form).replace(r"\ ", r"\s+") for form in forms)
        return re.compile(rf"(?<![\w/-])(?<!\] )({words})(?:e?s)?(?![\w]|[-/]\w)", re.I)

    def first_uses(self, page: Page) -> Iterator[tuple[int, int, Term]]:
        """Where the running text of a page first has each term, as spans of its text."""
        if not self.terms:
            return
        closed = [(0, page.front), *page.opaque]
        closed += [found.span() for pattern in (LINK, _BARE) for found in pattern.finditer(page.text)]
        masked = bytearray(len(page.text))
        for start, end in closed:
            masked[start:end] = b"\1" * (end - start)
        seen: set[str] = set()
        for found in self._pattern.finditer(page.text):
            term = self._named[_plain(found[1])]
            if term.name not in seen and not any(masked[found.start() : found.end()]):
                seen.add(term.name)
                yield (*found.span(), term)


def _plain(form: str) -> str:
    return " ".join(form.lower().split())


def load(root: Path, path: str, lexicon: Lexicon) -> Glossary:
    """Read the terms; a missing file has none, a broken one is a trouble with its line."""
    glossary = Glossary(path)
    if not (root / path).is_file():
        return glossary
    try:
        text = (root / path).read_text(encoding="utf-8")
        tables = tomllib.loads(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        where = re.search(r"line (\d+)", str(error))
        glossary.troubles.append(Trouble(path, int(where[1]) if where else 1, "bad-facts", str(error)))
        return glossary
    for name, entry in tables.items():
        at = re.search(rf"^\[\s*([\"']?){re.escape(name)}\1\s*\]", text, re.M)
        line = text.count("\n", 0, at.start()) + 1 if at else 1
        for slug, message in _read(glossary, root, name, entry, lexicon):
            glossary.troubles.append(Trouble(path, line, slug, f"{name}: {message}"))
    return glossary


def _read(glossary: Glossary, root: Path, name: str, entry: object, lexicon: Lexicon) -> Iterator[tuple[str, str]]:
    """Take in one term; what is wrong with it is yielded as slug and message."""
    if not isinstance(entry, dict) or not isinstance(entry.get("meaning"), str):
        yield "bad-facts", "must be a table with a meaning"
        return
    also, page = entry.get("also", []), entry.get("page", "")
    if unknown := set(entry) - KEYS:
        yield "bad-facts", f"{', '.join(sorted(unknown))}: unknown; known are {', '.join(sorted(KEYS))}"
    if not isinstance(also, list) or not all(isinstance(form, str) for form in also):
        yield "bad-facts", f"also must be a list of strings, got {also!r}"
        return
    if not isinstance(page, str):
        yield "bad-facts", f"page must be a string, got {page!r}"
        return
    for loose in parse(from_text(root, glossary.path, entry["meaning"]), lexicon).loose:
        yield "loose-number", f"the meaning holds {loose.text}, and nothing checks it"
    known = {_plain(form): term.name for term in glossary.terms.values() for form in (term.name, *term.also)}
    for form in (name, *also):
        if other := known.get(_plain(form)):
            yield "bad-facts", f"{form} stands for {other} already"
    glossary.terms[name] = Term(name, tuple(also), " ".join(entry["meaning"].split()), page)
