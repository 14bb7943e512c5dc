"""The pages made of the whole book: its references, its terms and its ledger. A comment marks where each one stands."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from html import escape

from pybtex.database import Entry

from claims.facts import Fact, author_line, link
from claims.glossary import GLOSSARY, LINK
from claims.inputs.trace import Answer, recorded
from claims.literal import plain
from claims.page import Claim, Page
from claims.report import Checked, Report

BIBLIOGRAPHY = "<!-- claims:bibliography -->"
LEDGER = "<!-- claims:ledger -->"
LEDGER_PART = re.compile(r"<!-- claims:ledger (?P<folder>\S+) -->")

_MARKDOWN = str.maketrans({char: f"&#{ord(char)};" for char in "\\`*_{}[]()|$!~^"} | {"\n": " "})


def bibliography(report: Report, path: str) -> str:
    """Every reference, with the facts taken from it and links to the pages that cite it, as Markdown."""
    uses: dict[str, dict[str, None]] = {}
    for page in report.pages:
        for citation in page.page.citations:
            uses.setdefault(citation.key.split(".")[0], {})[page.path] = None
    titles = {page.path: title(page) for page in report.pages}
    references = sorted(
        report.facts.references.items(), key=lambda item: (author_line(item[1]).lower(), item[1].fields.get("year", ""))
    )
    return "\n\n".join(
        _reference(report, name, entry, [f"[{titles[use]}]({_to(use, path)})" for use in uses.get(name, {})])
        for name, entry in references
    )


def _reference(report: Report, name: str, entry: Entry, uses: list[str]) -> str:
    fields = {key.lower(): re.sub(r"[{}]", "", value) for key, value in entry.fields.items()}
    named, target = text(fields.get("title", "")), link(entry)
    place = fields.get("journal") or fields.get("booktitle") or fields.get("howpublished")
    parts = [
        f'<a id="{name}"></a>**{text(author_line(entry))}** {fields.get("year", "")}. ',
        f"[{named}]({target})" if target else named,
        f", {text(place)}." if place else ".",
        f" {text(fields['annote'])}" if "annote" in fields else "",
        f" Cited in: {', '.join(uses) or 'nowhere'}.",
    ]
    facts = [_fact(fact) for fact in report.facts.facts.values() if fact.source == name]
    return "\n".join(["".join(parts), *([""] if facts else []), *facts])


def _fact(fact: Fact) -> str:
    note = f" ({text(fact.note)})" if fact.note else ""
    doubt = f" Not verified: {text(fact.unverified)}." if fact.unverified else ""
    shown = f"{text(fact.value.brief)} {text(fact.unit)}".strip()
    return f"- {shown}: {text(fact.where)}{note}.{doubt}"


def glossary(report: Report, path: str) -> str:
    """Every term with its meaning and the page that explains it, as a Markdown definition list."""
    pages = {posixpath.relpath(page.path, report.project.docs): page for page in report.pages}
    rows = []
    for term in sorted(report.glossary.terms.values(), key=lambda term: term.name.lower()):
        rows += [f'<a id="{term.anchor}"></a>{text(term.name)}', f":   {text(term.meaning)}"]
        if page := pages.get(term.page):
            rows[-1] += f" See [{title(page)}]({_to(page.path, path)})."
        rows.append("")
    return "\n".join(rows).rstrip()


def ledger(report: Report, path: str, folder: str = "") -> str:
    """Every claim of the pages below a folder, as Markdown tables; ``.`` stands for the pages below none.

    What moves a number is shown as ``prove --inputs`` recorded it of the page as it is now, and else not at all.
    """
    pages = [
        page
        for page in report.pages
        if (page.page.claims or page.page.citations)
        and _below(posixpath.relpath(page.path, report.project.docs), folder)
    ]
    answers = recorded(replace(report, pages=pages))
    return "\n\n".join(_ledger_of(report, page, path, answers.get(page.path)) for page in pages)


def _below(path: str, folder: str) -> bool:
    return "/" not in path if folder == "." else path.startswith(folder)


def _ledger_of(report: Report, page: Checked, path: str, answer: Answer | None) -> str:
    rows = [
        f"## [{title(page)}]({_to(page.path, path)})",
        "",
        "| on the page | expression or source | exact value | what moves it |",
        "|---|---|---|---|",
    ]
    for claim, evaluation in zip(page.page.claims, page.evaluations, strict=True):
        if evaluation.value:
            expression = f"<code>{text(claim.expression)}</code>"
            rows.append(_row(claim.literal, expression, evaluation.value.brief, _moved(page, claim, answer)))
    for citation in page.page.citations:
        if fact := report.facts.facts.get(citation.key):
            rows.append(_row(citation.literal, text(f"{fact.source}, {fact.where}"), fact.value.brief, ""))
    if page.page.claims and not answer:
        rows += ["", "What moves these numbers has not been worked out since the page last changed."]
    return "\n".join(rows)


def _moved(page: Checked, claim: Claim, answer: Answer | None) -> str:
    """What moves a number, or why it is constant; nothing for what is no number or names nothing."""
    moves = answer.moves.get(claim.expression) if answer else None
    if moves is None:
        return ""
    constant = (w.reason for w in page.page.waivers if w.kind == "constant" and w.text == claim.literal)
    return str(moves) if moves.names else next((f"constant: {reason}" for reason in constant), str(moves))


def _row(literal: str, origin: str, value: str, moved: str) -> str:
    return f"| {text(plain_text(literal))} | {origin} | {text(value)} | {text(moved)} |"


def title(page: Checked) -> str:
    """The title in the front matter, or the first heading, or the path."""
    if isinstance(page.page.meta.get("title"), str):
        return str(page.page.meta["title"])
    found = re.compile(r"^#\s+(.+?)\s*(?:\{.*\})?$", re.M).search(page.page.text, page.page.front)
    return plain_text(found[1]) if found else page.path


def _to(path: str, here: str) -> str:
    """A link; a notebook is read on the page of its name."""
    return posixpath.relpath(re.sub(r"\.py$", ".md", path), posixpath.dirname(here))


def text(words: str) -> str:
    """Words that neither Markdown nor HTML shall read as mark-up."""
    return unmarked(escape(" ".join(words.split()), quote=False))


def unmarked(html: str) -> str:
    """HTML on one line in which Markdown finds nothing to read."""
    return html.translate(_MARKDOWN)


def plain_text(markdown: str) -> str:
    """Markdown without its links, emphasis and code marks."""
    return plain(re.sub(r"[*`]", "", LINK.sub(r"\1", markdown)))


MARKERS: dict[str, Callable[[Report, str], str]] = {
    BIBLIOGRAPHY: bibliography,
    GLOSSARY: glossary,
    LEDGER: ledger,
}


def marks(page: Page) -> Iterator[tuple[int, int, Callable[[Report, str], str]]]:
    """Where a page shows what stands on other pages, as spans of its comments, and what makes it."""
    for marker, make in MARKERS.items():
        if (at := page.text.find(marker)) >= 0:
            yield at, at + len(marker), make
    for part in LEDGER_PART.finditer(page.text):
        yield *part.span(), partial(ledger, folder=part["folder"])
