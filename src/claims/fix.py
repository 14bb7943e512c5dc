"""Repair: rewrite drifted literals in place, and nothing else.

A literal keeps its format and its unit. Where the new value cannot be said exactly in them, nothing is changed and the
finding stands. Each changed sentence is shown, because the words around a number may be wrong now too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from claims import whole_file
from claims.agree import agree, decimal, number_of, rounded
from claims.literal import NO_BREAK, LiteralError, read
from claims.page import Claim
from claims.report import Checked, Report
from claims.results import Value
from claims.source import BOM, Place

SENTENCE_START = re.compile(r"[.!?:]\s|\n\s*\n")
SENTENCE_END = re.compile(r"[.!?](?=\s)|\n\s*\n|\Z")
LONGEST_SENTENCE = 1000


@dataclass(frozen=True)
class Repair:
    """One literal to change, at its place in its own file."""

    place: Place
    old: str
    new: str
    sentence: str  # after the change


@dataclass(frozen=True)
class Refusal:
    """A drifted literal that is left alone, and why."""

    place: Place
    old: str
    reason: str


def plan(report: Report) -> tuple[list[Repair], list[Refusal]]:
    """What would be changed, and what would not."""
    repairs: dict[Place, Repair] = {}
    refusals: dict[Place, Refusal] = {}
    for page in report.pages:
        for claim, evaluation, verdict in zip(page.page.claims, page.evaluations, page.verdicts, strict=True):
            if verdict is None or verdict.slug not in ("drift", "inexact") or evaluation.value is None:
                continue
            place = page.page.place(claim.start, claim.end)
            written = page.page.text[claim.start : claim.end]
            new = rewrite(claim.literal, evaluation.value, report.project.words.counted)
            if claim.kind == "chain":
                reason = "the two sides of a formula disagree, and either may be wrong"
                refusals[place] = Refusal(place, written, reason)
            elif new is None:
                reason = f"{evaluation.value.brief} cannot be written exactly in the format of {written}"
                refusals[place] = Refusal(place, written, reason)
            else:
                repairs[place] = Repair(place, written, new, _sentence(page, claim, new))
    return list(repairs.values()), list(refusals.values())


def rewrite(text: str, value: Value, nouns: frozenset[str] = frozenset()) -> str | None:
    """The literal with ``value`` in it, in the same format and unit; None where they cannot say it."""
    if "{,}" in text:
        new = rewrite(text.replace("{,}", ","), value, nouns)
        return new and new.replace(",", "{,}")
    try:
        literal = read(text, nouns)
    except LiteralError:
        return None
    number = number_of(value)
    if literal is None:
        return value.text if value.kind in ("text", "bool") else None
    if number is None or literal.words or not literal.step or literal.relation not in "=≈":
        return None
    target = number / literal.unit.factor
    new = _write_like(literal.digits, rounded(target, literal) if literal.relation == "≈" else target)
    if new is None or literal.digits not in text:
        return None
    changed = text.replace(literal.digits, new, 1)
    return changed if agree(changed, value, nouns) is None else None


def _write_like(digits: str, target: Fraction) -> str | None:
    """``target`` with the decimals, separators and minus sign of ``digits``; more decimals only where it has none."""
    if re.search(r"[eE×·⋅/⁄]", digits):
        return None
    places = len(digits.partition(".")[2])
    if places == 0:
        places = next((i for i in range(7) if (target * 10**i).denominator == 1), 0)
    if (target * 10**places).denominator != 1:
        return None
    plain = len(re.sub(r"\D", "", digits.partition(".")[0])) >= 4 or abs(target) < 10_000
    separator = next((char for char in digits if char in "," + NO_BREAK), "" if plain else ",")
    minus = digits[0] if digits[0] in "-–" else "−"
    return (minus if target < 0 else "") + decimal(abs(target), places).replace(",", separator)


def apply(root: Path, repairs: Iterable[Repair]) -> None:
    """Write the changes, each file at once: it is either whole as before or whole as repaired.

    Raises OSError for a file that cannot be written; the files before it are repaired, it and the others are not.
    """
    by_file: dict[str, list[Repair]] = {}
    for repair in repairs:
        by_file.setdefault(repair.place.path, []).append(repair)
    for name, changes in by_file.items():
        path = root / name
        text = path.read_bytes().decode("utf-8")
        mark = BOM if text.startswith(BOM) else ""
        rows = re.split(r"(\r\n|\r|\n)", text.removeprefix(BOM))  # lines and their ends in turn
        for change in sorted(changes, key=lambda repair: -repair.place.column):
            at = 2 * (change.place.line - 1)
            start, end = change.place.column - 1, change.place.end_column - 1
            if at < len(rows) and rows[at][start:end] == change.old:
                rows[at] = rows[at][:start] + change.new + rows[at][end:]
        whole_file.write(path, (mark + "".join(rows)).encode("utf-8"))


def _sentence(page: Checked, claim: Claim, new: str) -> str:
    text, start, end = page.page.text, claim.start, claim.end
    begin = max(0, start - LONGEST_SENTENCE)
    for found in SENTENCE_START.finditer(text, begin, start):
        begin = found.end()
    stop = SENTENCE_END.search(text, end, end + LONGEST_SENTENCE)
    return " ".join((text[begin:start] + new + text[end : stop.end() if stop else end]).split())
