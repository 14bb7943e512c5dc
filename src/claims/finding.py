"""What the checker found, and how it is said."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from claims.source import Place

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
    rows = [f"{relative(finding.path)}:{finding.line}:{finding.column}: {finding.slug}: {finding.message}"]
    text = _line(root / finding.path, finding.line)
    if text.strip():
        number = str(finding.line)
        before = text[: finding.column - 1]
        marked = text[finding.column - 1 : max(finding.end_column - 1, finding.column)]
        pad = "".join("\t" if char == "\t" else " " * _width(char) for char in before)
        rows.append(f"   {number} | {text}")
        rows.append(f"   {' ' * len(number)} | {pad}{'^' * max(1, sum(map(_width, marked)))}")
    notes = list(finding.notes)
    if finding.via:
        notes.append(("included", finding.via))
    if finding.hint:
        notes.append(("hint", finding.hint))
    rows += [f"   {label:<11} {text}" for label, text in notes]
    return "\n".join(rows)


def _line(path: Path, number: int) -> str:
    try:
        rows = path.read_text(encoding="utf-8", errors="replace").removeprefix("\ufeff").splitlines()
    except OSError:
        return ""
    return rows[number - 1] if 0 < number <= len(rows) else ""


def _width(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Cf", "Mn"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
