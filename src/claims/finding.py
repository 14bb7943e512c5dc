"""What the checker found, and how it is said."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from claims.source import Place, split_lines

SLUGS: dict[str, str] = {
    "drift": "a number is not what its expression or its source gives",
    "inexact": "a rounded number is written without ≈",
    "bad-literal": "a claimed number is not written as numbers are",
    "bad-expression": "a claim's expression cannot be read or evaluated",
    "unknown-name": "an expression uses a name that the page does not define",
    "ambiguous": "an expression has one value at its place and another at the end of the page",
    "constant": "no input moves a computed number",
    "loose-number": "a number that nothing binds",
    "unknown-fact": "a citation of a fact or reference that is not recorded",
    "unused-fact": "a recorded fact or reference that no page cites",
    "fact-without-place": "a fact that does not say where in its source it stands",
    "bad-facts": "the facts file is broken",
    "bad-bibliography": "the bibliography is broken",
    "unused-waiver": "a waiver that nothing needs",
    "bad-front-matter": "the front matter is broken",
    "bad-math": "a formula cannot be read",
    "bad-option": "a block's option is unknown",
    "block-failed": "a block raised, exited or printed without end",
    "block-timeout": "a block ran past its time limit",
    "block-died": "a block ended its process",
    "unrecognised-block": "a block that would never run",
    "missing-snippet": "an included file, line or section does not exist",
    "figure-without-alt": "a figure without a text alternative",
    "missing-figure": "a block promises one figure and draws none, or several",
    "stale-highlight": "highlighted lines do not exist or are blank",
    "unreadable": "a page cannot be read",
}


@dataclass(frozen=True, order=True)
class Finding:
    """One thing wrong, at its place. ``notes`` are label and text pairs shown under the excerpt."""

    path: str
    line: int
    column: int
    end_column: int
    slug: str
    message: str
    hint: str = ""
    notes: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    via: str = field(default="", compare=False)

    @classmethod
    def at(
        cls, place: Place, slug: str, message: str, hint: str = "", notes: Iterable[tuple[str, str]] = ()
    ) -> Finding:
        return cls(place.path, place.line, place.column, place.end_column, slug, message, hint, tuple(notes), place.via)

    def to_json(self) -> dict[str, object]:
        return {
            "path": self.path, "line": self.line, "column": self.column, "end_column": self.end_column,
            "slug": self.slug, "message": self.message, "hint": self.hint,
        }  # fmt: skip


def show(finding: Finding, root: Path, relative: Callable[[str], str] = str) -> str:
    """The finding as a terminal shows it: one line that says all, the line of the page, and what else helps."""
    return next(show_all([finding], root, relative))


def show_all(findings: Iterable[Finding], root: Path, relative: Callable[[str], str] = str) -> Iterator[str]:
    """The same for many, reading each page once."""
    path, rows = "", []
    for finding in findings:
        if finding.path != path:
            path, rows = finding.path, _rows(root / finding.path)
        yield "\n".join(_shown(finding, rows, relative))


def _shown(finding: Finding, rows: list[str], relative: Callable[[str], str]) -> Iterator[str]:
    yield f"{relative(finding.path)}:{finding.line}:{finding.column}: {finding.slug}: {finding.message}"
    text = rows[finding.line - 1] if finding.line <= len(rows) else ""
    if text.strip():
        before, marked = text[: finding.column - 1], text[finding.column - 1 : finding.end_column - 1]
        pad = "".join("\t" if char == "\t" else " " * _width(char) for char in before)
        yield f"   {finding.line} | {text}"
        yield f"   {' ' * len(str(finding.line))} | {pad}{'^' * max(1, sum(map(_width, marked)))}"
    notes = [*finding.notes, ("included", finding.via), ("hint", finding.hint)]
    yield from (f"   {label:<11} {note}" for label, note in notes if note)


def _rows(path: Path) -> list[str]:
    try:
        return split_lines(path.read_bytes().decode("utf-8", errors="replace"))
    except OSError:
        return []


def _width(char: str) -> int:
    """The columns that a character takes in a terminal."""
    if unicodedata.combining(char) or unicodedata.category(char) in ("Cf", "Mn"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
