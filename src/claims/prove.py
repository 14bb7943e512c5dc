"""Proof that the claims can fail.

Every literal of every page is changed in several ways, digit by digit, in its unit, in its order of magnitude; each
change must bring a finding at exactly that span. A change that goes unnoticed is a survivor. The pages are not run
again, since a literal takes no part in what its page computes; they are parsed and judged anew, as many times as the
literal with the most changes has changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from claims.agree import show
from claims.judge import judge
from claims.literal import Literal, LiteralError, read, tuple_items
from claims.parse import parse
from claims.report import Checked, Report
from claims.source import Line, Place, Source

SWAPS = {
    "KiB": ("kB", "MiB"), "MiB": ("MB", "KiB"), "GiB": ("GB", "MiB"), "TiB": ("TB", "GiB"), "kB": ("KiB", "MB"),
    "MB": ("MiB", "GB"), "GB": ("GiB", "TB"), "TB": ("TiB", "PB"), "bytes": ("KiB",), "byte": ("KiB",),
    "B": ("KiB", "M"), "K": ("M",), "M": ("B",), "T": ("B",), "%": ("",), "thousand": ("million",),
    "million": ("billion",), "billion": ("million",), "trillion": ("billion",), "ms": ("s",), "s": ("ms",),
}  # fmt: skip


@dataclass(frozen=True)
class Survivor:
    """A changed literal that brought no finding."""

    place: Place
    old: str
    new: str


@dataclass
class Proof:
    """How many changes were made, and which went unnoticed."""

    mutants: int
    claims: int
    survivors: list[Survivor]


def mutants(text: str, nouns: frozenset[str]) -> list[str]:
    """Ways to write this literal wrongly."""
    try:
        literal = read(text, nouns)
    except LiteralError:
        return []
    if parts := tuple_items(text):
        return [new for part in parts for new in _with_part_changed(text, part, nouns)]
    if literal is None:
        return [f"{text}x"]
    if literal.relation in "<>≤≥":
        flipped = {"<": ">", ">": "<", "≤": ">", "≥": "<"}[literal.relation]
        return [re.sub(r"<=|>=|[<>≤≥]", flipped, text, count=1)]
    if literal.words:
        return [text.replace(literal.digits, str(literal.number + 1), 1)]
    made = _digits(text, None if literal.relation == "=" else significant(literal))
    name = re.escape(literal.unit.name)
    made += [re.sub(rf"{name}(?!.*{name})", unit, text) for unit in SWAPS.get(literal.unit.name, ())]
    if "." not in literal.digits and literal.number and not re.search(r"[eE×·⋅/⁄^⁻⁰¹²³⁴⁵⁶⁷⁸⁹]", literal.digits):
        ten = show(abs(literal.number) * 10)
        ten = ten if "," in literal.digits else ten.replace(",", "")
        made.append(text.replace(literal.digits.lstrip("−-–+ "), ten, 1))
    return [new for new in dict.fromkeys(made) if new != text]


def _with_part_changed(text: str, part: str, nouns: frozenset[str]) -> list[str]:
    bare = re.sub(r"^(?:≈|~|about) ", "", part)
    changed = [re.sub(r"^(?:≈|~|about) ", "", new) for new in mutants(part, nouns)]
    return [text.replace(bare, new, 1) for new in changed]


def significant(literal: Literal) -> int:
    """How many digits of an approximate literal count, from the left."""
    whole = re.match(r"[^eE×·⋅/⁄]*", literal.digits)
    digits = whole[0] if whole else ""
    bare = re.sub(r"\D", "", digits)
    return len(bare) if "." in digits else len(bare.rstrip("0") or bare)


def _digits(text: str, limit: int | None = None) -> list[str]:
    """The text with each digit raised by one, a leading nine lowered."""
    made = []
    for found in list(re.finditer(r"[0-9]", text))[:limit]:
        first = not (found.start() and (text[found.start() - 1].isdigit() or text[found.start() - 1] in ",."))
        new = "8" if first and found[0] == "9" else str((int(found[0]) + 1) % 10)
        made.append(text[: found.start()] + new + text[found.end() :])
    return made


def prove(report: Report) -> Proof:
    """Change every claimed and cited literal of the report's pages. The pages must be clean before."""
    proof = Proof(0, 0, [])
    for page in report.pages:
        _prove_page(page, report, proof)
    return proof


def _prove_page(page: Checked, report: Report, proof: Proof) -> None:
    nouns = report.project.words.counted
    spans: dict[tuple[int, int], list[str]] = {}
    for claim, evaluation in zip(page.page.claims, page.evaluations, strict=True):
        written = page.page.text[claim.start : claim.end]
        if not claim.optional or evaluation.value is not None:
            spans[claim.start, claim.end] = mutants(written, nouns)
    for citation in page.page.citations:
        if "." in citation.key:
            spans[citation.start, citation.end] = mutants(citation.literal, nouns)
    proof.claims += len(spans)
    for turn in range(max(map(len, spans.values()), default=0)):
        changed = {span: made[turn] for span, made in spans.items() if turn < len(made)}
        proof.mutants += len(changed)
        for span, found in _judge_changed(page, report, changed):
            if not found:
                written = page.page.text[slice(*span)]
                proof.survivors.append(Survivor(page.page.place(*span), written, changed[span]))


def _judge_changed(
    page: Checked, report: Report, changed: dict[tuple[int, int], str]
) -> Iterator[tuple[tuple[int, int], bool]]:
    """Whether each changed span brings a finding that begins where the literal begins."""
    text, at, shift = page.page.text, 0, 0
    parts: list[str] = []
    starts: dict[tuple[int, int], int] = {}
    for (start, end), new in sorted(changed.items()):
        parts += [text[at:start], new]
        starts[start, end] = start + shift
        shift += len(new) - (end - start)
        at = end
    rows = "".join([*parts, text[at:]]).split("\n")
    source = Source(page.path, tuple(Line(row, page.path, number) for number, row in enumerate(rows[:-1], 1)))
    again = Checked(parse(source, report.project.words), page.program, page.result)
    judge(again, report.facts, report.project.words)
    found = {(finding.line, finding.column) for finding in again.findings}
    for span, start in starts.items():
        place = source.place(start, start + 1)
        yield span, (place.line, place.column) in found
