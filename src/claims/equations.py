"""Which numbers of a formula can be checked, and against what.

``split_equation`` cuts a formula at its relations. A side that is plain arithmetic is worked out in exact fractions
and compared with its neighbour; a number beside symbols is compared with what the page's names give;
``\\claim{…}{…}`` binds anything else. ``\\given{K = 1}`` marks a supposition. What is left over is a number that
nothing checks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from claims.arithmetic import NUMBER, SPACES, Arithmetic, NotArithmetic, numbers
from claims.literal import LiteralError, read

RELATION = re.compile(
    r"\\(?:approx|leq?|geq?|neq?|equiv|simeq|sim|ll|gg|to|mapsto|rightarrow|Rightarrow|iff|propto)(?![A-Za-z])"
    r"|:=|[=<>≈≤≥]"
)
SIGNS = {
    "=": "", "\\equiv": "", ":=": "", "\\approx": "≈ ", "≈": "≈ ", "\\simeq": "≈ ", "<": "< ", ">": "> ",
    "\\le": "≤ ", "\\leq": "≤ ", "≤": "≤ ", "\\ge": "≥ ", "\\geq": "≥ ", "≥": "≥ ",
}  # fmt: skip
MIRROR = {"< ": "> ", "> ": "< ", "≤ ": "≥ ", "≥ ": "≤ ", "≈ ": "≈ ", "": ""}
BREAK = re.compile(
    r"\\\\(?!\s*&?\s*(?:[=<>≈≤≥]|\\(?:approx|leq?|geq?)\b))|\\q?quad(?![A-Za-z])|;(?!\w)|,(?!\d\d\d(?!\d))|&(?!=)"
    r"|\\(?:text|mathrm)\{\s*(?:and|or|if|for|so|but|with)\b[^}]*\}"
)
UNIT = (
    r"(?:\\[,;: ]|~|\s)*(?:\\(?:text|mathrm|textrm|operatorname)\{\s*(?P<unit>[A-Za-zµ%/]+)\s*\}"
    r"|(?P<percent>\\%)|(?P<times>\\times$))?"
)
PLAIN = re.compile(rf"(?P<minus>-?)(?P<number>{NUMBER.pattern}){UNIT}")
# What stands before a digit that is part of a name.
NAMING = re.compile(r"(?:\\(?:hspace|vspace|begin|end|label|tag|hphantom|phantom)\*?\{[^{}]*|_\{?[A-Za-z\d,]*)\Z")


@dataclass(frozen=True)
class Part:
    """A piece of a formula: ``claim`` or ``chain`` (``text`` against ``expression``), ``number`` (bound by nothing)."""

    kind: str
    start: int
    end: int
    text: str
    expression: str = ""
    optional: bool = False  # the page need not define the names


@dataclass(frozen=True)
class _Side:
    start: int
    end: int
    sign: str  # the relation before it
    literal: str | None = None  # a plain number with its unit, as ``claims.literal`` reads it
    value: Fraction | None = None  # of a side without names
    python: str | None = None  # of a side with names
    arithmetic: str = ""  # of a side without names: Python that works it out exactly


def split_equation(tex: str) -> Iterator[Part]:
    """The parts of one formula; offsets are into ``tex``."""
    covered: list[tuple[int, int]] = []
    flat = tex
    for start, end, literal, expression in _bound(tex):
        inner = tex.index("{", start) + 1
        yield Part("claim", inner, inner + len(literal), literal, expression)
        covered.append((start, end))
        flat = flat[:start] + literal.center(end - start) + flat[end:]
    for found in re.finditer(r"\\given\{((?:[^{}]|\{[^{}]*\})*)\}", tex):
        flat = flat[: found.start()] + " " * len(found[0]) + flat[found.end() :]
        inside = [span for span in numbers(tex) if found.start() <= span[0] < found.end()]
        covered += [span for span in inside if _bare(tex[slice(*span)])]
    bound = list(covered)
    for begin, stop in _chains(flat):
        for part in _chain(flat, begin, stop, covered):
            if not (part.optional and any(start <= part.start and part.end <= end for start, end in bound)):
                yield part  # else \claim binds it already
    for start, end in numbers(tex):
        bound_already = any(begin <= start < stop for begin, stop in covered)
        if not bound_already and not NAMING.search(tex, max(0, start - 80), start):
            yield Part("number", start, end, tex[start:end].replace("{,}", ","))


def _bare(number: str) -> bool:
    return number.isdigit() and int(number) <= 10


# --- \claim and \given -----------------------------------------------------------------------------------------------


def _bound(tex: str) -> Iterator[tuple[int, int, str, str]]:
    for found in re.finditer(r"\\claim\s*(?=\{)", tex):
        first = _braces(tex, found.end())
        second = _braces(tex, first) if first and tex[first : first + 1] == "{" else None
        if first and second:
            expression = tex[first + 1 : second - 1].replace("\\_", "_").replace("\\%", "%").strip()
            yield found.start(), second, tex[found.end() + 1 : first - 1], expression


def _braces(tex: str, at: int) -> int | None:
    """Where the group that opens at ``at`` ends."""
    depth = 0
    for i in range(at, len(tex)):
        depth += (tex[i] == "{") - (tex[i] == "}")
        if depth == 0:
            return i + 1
    return None


def unbound_macro(tex: str) -> int | None:
    """Where a ``\\claim`` stands that lacks one of its two arguments."""
    if "\\claim" not in tex:
        return None
    bound = {start for start, *_ in _bound(tex)}
    return next((m.start() for m in re.finditer(r"\\claim(?![A-Za-z])", tex) if m.start() not in bound), None)


def shown_tex(tex: str) -> str:
    """The formula as readers see it: ``\\claim{a}{b}`` shows a, ``\\given{a}`` shows a."""
    for start, end, literal, _ in sorted(_bound(tex), reverse=True):
        tex = tex[:start] + re.sub(r"(?<!\\)%", r"\\%", literal) + tex[end:]
    for found in sorted(re.finditer(r"\\given\s*(?=\{)", tex), key=lambda m: -m.start()):
        if close := _braces(tex, found.end()):
            tex = tex[: found.start()] + tex[found.end() + 1 : close - 1] + tex[close:]
    return tex


# --- chains of relations ---------------------------------------------------------------------------------------------


def _chains(tex: str) -> Iterator[tuple[int, int]]:
    """Stretches that hold one chain of relations, cut at depth 0."""
    start, depth, at = 0, 0, 0
    while at < len(tex):
        if found := BREAK.match(tex, at):
            if depth <= 0 or found[0].startswith(("\\\\", "\\q")):
                yield start, at
                start, depth = found.end(), 0
            at = found.end()
            continue
        depth += (tex[at] in "({[") - (tex[at] in ")}]")
        at += 2 if tex[at] == "\\" and at + 1 < len(tex) and not tex[at + 1].isalpha() else 1
    yield start, len(tex)


def _chain(tex: str, begin: int, stop: int, covered: list[tuple[int, int]]) -> Iterator[Part]:
    last: _Side | None = None
    approximate = False  # a side that cannot be read stood between, behind a ≈
    for side in _sides(tex, begin, stop):
        if side.sign not in MIRROR:
            last = None
        if side.literal is None and side.value is None and side.python is None:
            approximate = approximate or side.sign == "≈ "
            continue
        if last is not None:
            yield from _compare(last, side, "≈ " if approximate and side.sign == "" else side.sign, covered)
        last, approximate = side, False


def _sides(tex: str, begin: int, stop: int) -> Iterator[_Side]:
    depth, at, start, sign = 0, begin, begin, ""
    cuts: list[tuple[int, int, str]] = []
    while at < stop:
        found = RELATION.match(tex, at, stop)
        if found and depth == 0:
            cuts.append((start, at, sign))
            start, sign = found.end(), SIGNS.get(found[0], found[0])
            at = found.end()
            continue
        depth += (tex[at] in "({[") - (tex[at] in ")}]")
        at += 1
    if not cuts:
        return
    cuts.append((start, stop, sign))
    for first, end, relation in cuts:
        body = tex[first:end]
        space = SPACES.match(body)
        lead = space.end() if space else 0
        tail = max(lead, len(body.rstrip(" .&~\n\\")))
        yield _side(body[lead:tail], first + lead, relation)


def _side(body: str, at: int, sign: str) -> _Side:
    end = at + len(body)
    if found := PLAIN.fullmatch(body.strip()):
        unit = "%" if found["percent"] else "×" if found["times"] else found["unit"] or ""
        number = found["minus"] + found["number"].replace("{,}", ",").replace("\\,", ",")
        return _Side(at, end, sign, literal=f"{number} {unit}".strip())
    try:
        parsed = Arithmetic(body)
    except NotArithmetic:
        return _Side(at, end, sign)
    if parsed.value is None:
        return _Side(at, end, sign, python=parsed.python)
    whole = not re.search(r"[./]", parsed.python)
    return _Side(at, end, sign, value=parsed.value, arithmetic=parsed.python if whole else _exact(parsed.value))


def _compare(left: _Side, right: _Side, sign: str, covered: list[tuple[int, int]]) -> Iterator[Part]:
    number, other, relation = (right, left, sign) if right.python is None else (left, right, MIRROR.get(sign, sign))
    if number.python is not None or relation not in MIRROR:
        return
    if other.python is not None:
        covered.append((number.start, number.end))
        yield Part("chain", number.start, number.end, relation + _written(number), other.python, optional=True)
        return
    if number.literal is None and other.literal is not None:
        number, other, relation = other, number, MIRROR[relation]
    covered += [(left.start, left.end), (right.start, right.end)]
    expression = other.arithmetic or _exact(_stated(other.literal or "0"))
    yield Part("chain", number.start, number.end, relation + _written(number), expression)


def _written(side: _Side) -> str:
    return side.literal if side.literal is not None else _exact(side.value or Fraction(0))


def _stated(literal: str) -> Fraction:
    """The value of a plain number; a unit that no one knows counts as one."""
    try:
        found = read(literal)
    except LiteralError:
        found = None
    return found.value if found else Fraction(re.sub(r"[^\d.-]", "", literal))


def _exact(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else f"{value.numerator}/{value.denominator}"
