"""Repair: rewrite drifted literals in place, and nothing else.

A literal keeps its format and its unit. Where the new value cannot be said exactly in them, nothing is changed and the finding stands. Each
changed sentence is shown, because the words around a number may be wrong now too.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from claims.check import Checked, Report
from claims.literal import rewrite
from claims.source import Place


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
    repairs: list[Repair] = []
    refusals: list[Refusal] = []
    for page in report.pages:
        for claim, evaluation, verdict in zip(page.page.claims, page.evaluations, page.verdicts, strict=True):
            if verdict is None or verdict.slug not in ("drift", "inexact"):
                continue
            place = page.page.place(claim.start, claim.end)
            written = page.page.text[claim.start : claim.end]
            new = None
            if written == claim.literal and evaluation.value is not None:
                new = rewrite(claim.literal, evaluation.value, report.project.words.counted)
            if new is None:
                shown = evaluation.value.shown if evaluation.value else "no value"
                refusals.append(
                    Refusal(place, written, f"{shown} cannot be written exactly in the format of {written}")
                )
            else:
                repairs.append(Repair(place, written, new, _sentence(page, claim.start, claim.end, new)))
    return repairs, refusals


def apply(root: Path, repairs: Iterable[Repair]) -> None:
    """Write the changes, each file at once: it is either whole as before or whole as repaired."""
    by_file: dict[str, list[Repair]] = {}
    for repair in repairs:
        by_file.setdefault(repair.place.path, []).append(repair)
    for name, changes in by_file.items():
        path = root / name
        rows = path.read_bytes().decode("utf-8").splitlines(keepends=True)
        for change in sorted(set(changes), key=lambda repair: -repair.place.column):
            row = rows[change.place.line - 1]
            start, end = change.place.column - 1, change.place.end_column - 1
            if row[start:end] == change.old:
                rows[change.place.line - 1] = row[:start] + change.new + row[end:]
        _replace(path, "".join(rows).encode("utf-8"))


def _replace(path: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, path.stat().st_mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _sentence(page: Checked, start: int, end: int, new: str) -> str:
    text = page.page.text
    begin = max(text.rfind("\n\n", 0, start), *(found.end() for found in re.finditer(r"[.!?:]\s", text[:start])), -1)
    stop = re.compile(r"[.!?](?=\s)|\n\s*\n|$").search(text, end)
    return " ".join((text[max(begin, 0) : start] + new + text[end : stop.end() if stop else end]).split())
