"""Proof that the claims can fail.

Every literal of every page is changed in several ways, digit by digit, in its unit, in its order of magnitude; each change must bring a
finding at exactly that span. A change that goes unnoticed is a survivor. The pages are not run again, since a literal takes no part in
what its page computes; they are parsed and judged anew, as many times as the literal with the most changes has changes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from claims import literal
from claims.check import Checked, Report, judge
from claims.literal import LiteralError
from claims.page import parse
from claims.source import Line, Place, Source

SWAPS = {
    "KiB": ("kB", "MiB"), "MiB": ("MB", "KiB"), "GiB": ("GB", "MiB"), "TiB": ("TB", "GiB"), "kB": ("KiB", "MB"),
    "MB": ("MiB", "GB"), "GB": ("GiB", "TB"), "TB": ("TiB", "PB"), "bytes": ("KiB",), "byte": ("KiB",), "B": ("KiB", "M"),
    "K": ("M",), "M": ("B",), "T": ("B",), "%": ("",), "thousand": ("million",), "million": ("billion",),
    "billion": ("million",), "trillion": ("billion",), "ms": ("s",), "s": ("ms",),
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
        read = literal.read(text, nouns)
    except LiteralError:
        return []
    items = literal.tuple_items(text)
    if items is not None:
        return _digits(text)
    if read is None:
        return [f"{text}x"]
    if read.relation in "<>≤≥":
        flipped = {"<": ">", ">": "<", "≤": ">", "≥": "<"}[read.relation]
        return [re.sub(r"<=|>=|[<>≤≥]", flipped, text, count=1)]
    if read.words:
        return [text.replace(read.digits, str(read.number + 1), 1)]
    made = _digits(text) if read.relation == "=" else _digits(text, significant(read))
    for unit in SWAPS.get(read.unit.name, ()):
        made.append(re.sub(rf"{re.escape(read.unit.name)}(?!.*{re.escape(read.unit.name)})", unit, text))
    if "." not in read.digits and read.number and not re.search(r"[eE×·⋅/⁄]", read.digits):
        ten = literal.show(abs(read.number) * 10)
        made.append(text.replace(read.digits.lstrip("−-+"), ten if "," in read.digits else ten.replace(",", ""), 1))
    return list(dict.fromkeys(new for new in made if new != text))


def significant(read: literal.Literal) -> int:
    """How many digits of an approximate literal count, from the left."""
    digits = re.match(r"[\d,.\s\u00a0\u2009\u202f]*", read.digits.lstrip("−-+ ")).group()
    bare = re.sub(r"[^\d]", "", digits)
    return len(bare) if "." in digits else len(bare.rstrip("0") or bare)


def _digits(text: str, limit: int | None = None) -> list[str]:
    """The text with each digit raised by one."""
    made = []
    for count, found in enumerate(re.finditer(r"\d", text)):
        if limit is not None and count >= limit:
            break
        new = str((int(found.group()) + 1) % 10)
        first = found.start() == 0 or not (text[found.start() - 1].isdigit() or text[found.start() - 1] in ",.")
        if new == "0" and first:
            new = "8"
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
    for claim in page.page.claims:
        written = page.page.text[claim.start : claim.end]
        if claim.optional and claim.literal not in written:
            continue
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
                place = page.page.place(*span)
                proof.survivors.append(Survivor(place, page.page.text[span[0] : span[1]], changed[span]))


def _judge_changed(page: Checked, report: Report, changed: dict[tuple[int, int], str]):
    """Whether each changed span brings a finding that begins where the literal begins."""
    text, at, parts, starts, shift = page.page.text, 0, [], {}, 0
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
