"""What a person wrote, as a quantity.

A literal is a relation, a number and a unit: ``≈ 93.8 MiB``. It is read into exact fractions. ``claims.agree`` says
whether a value agrees with it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from claims.words import SCALES, words_to_number

NO_BREAK = "\u00a0\u2009\u202f"  # spaces that may separate thousands, and a number from its unit
RELATIONS = {"≈": "≈", "~": "≈", "about": "≈", "<": "<", "≤": "≤", "<=": "≤", ">": ">", "≥": "≥", ">=": "≥"}
MOST_DIGITS = 400

_BYTES = {"B": 1, "byte": 1, "bytes": 1} | {f"{prefix}iB": 1024**i for i, prefix in enumerate("KMGTPE", 1)}
_BYTES |= {f"{prefix}B": 1000**i for i, prefix in enumerate("kMGTPE", 1)}
_FLOPS = {
    f"{prefix}FLOP{end}": 1000**i
    for i, prefix in enumerate(("", "k", "M", "G", "T", "P", "E", "Z"))
    for end in ("", "s", "/s")
}
_TIMES = {"ns": Fraction(1, 10**9), "µs": Fraction(1, 10**6), "us": Fraction(1, 10**6), "ms": Fraction(1, 1000)}
_TIMES |= {"s": Fraction(1), "second": Fraction(1), "seconds": Fraction(1)}
_RATES = {f"{name}/s": factor for name, factor in _BYTES.items() if not name.startswith("byte")}
_PLAIN: dict[str, int | Fraction] = {
    "%": Fraction(1, 100),
    "percent": Fraction(1, 100),
    "×": 1,
    "x": 1,
    "times": 1,
    "fold": 1,
    "°": 1,
}
_COUNTS = {"K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}  # only right behind the digits: 7B, but 7 B are bytes
_TABLES: tuple[Mapping[str, int | Fraction], ...] = (_BYTES, SCALES, _FLOPS, _TIMES, _RATES, _PLAIN)
UNITS = {name: Fraction(factor) for table in _TABLES for name, factor in table.items()}

_RELATION = re.compile(r"\s*(≈|~|about\b|<=|>=|<|≤|>|≥)?\s*", re.I)
_SUPERSCRIPT = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_POWER = r"(?:\^\{?[−-]?\d+\}?|[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)"
_NUMBER = re.compile(
    rf"""(?P<sign>[+−–-]?)\s?
    (?P<whole>\d+(?:[,{NO_BREAK}]+\d+)*)?(?P<decimals>\.\d+)?
    (?:(?P<exponent>[eE][+−-]?\d+|\s?[×·⋅]\s?10{_POWER})|(?P<power>{_POWER}))?
    (?:\s?[/⁄]\s?(?P<denominator>\d+)(?![\d.]))?""",
    re.X,
)
_GROUPED = re.compile(rf"\d{{1,3}}(?:([,{NO_BREAK}])\d{{3}})(?:\1\d{{3}})*")


class LiteralError(ValueError):
    """The literal cannot be read; the message says why and what to write instead."""


@dataclass(frozen=True)
class Unit:
    """A unit as written, and how many base units (bytes, seconds, operations, ones) it holds."""

    name: str = ""
    factor: Fraction = Fraction(1)
    gap: str = ""  # the white space before it

    @property
    def base(self) -> str:
        """What the base unit is called behind a number."""
        if self.name in _BYTES and (self.gap or self.name != "B"):
            return " bytes"
        return " s" if self.name in _TIMES else ""


@dataclass(frozen=True)
class Literal:
    """A quantity as written. ``number`` and ``step`` are before the unit."""

    text: str
    relation: str  # = ≈ < ≤ > ≥
    number: Fraction
    step: Fraction  # worth of the last digit that counts; 0 where no rounding can be meant
    unit: Unit
    digits: str  # the number itself, or its words
    words: bool = False

    @property
    def value(self) -> Fraction:
        return self.number * self.unit.factor


def plain(text: str) -> str:
    """The literal without the Markdown around it: emphasis, backticks, dollar signs, ``{,}``."""
    text = text.replace("{,}", ",").replace("\\,", "").strip()
    while len(text) > 1 and text[0] == text[-1] and text[0] in "*_`$":
        text = text[1:-1].strip()
    return text


@lru_cache(maxsize=65536)
def read(text: str, nouns: frozenset[str] = frozenset()) -> Literal | None:
    """A literal that is a quantity; None when it holds no number (it is then compared as text).

    ``nouns`` are the words that may stand behind a count (layers, heads, tokens).
    Raises LiteralError for what looks like a quantity and is written wrongly.
    """
    text = plain(text)
    lead = _RELATION.match(text)
    assert lead
    relation = RELATIONS[lead[1].lower()] if lead[1] else "="
    found = _NUMBER.match(text, lead.end())
    assert found
    if found["whole"] is None and found["decimals"] is None:
        return _read_words(text, lead.end(), relation, nouns)
    number, step = _number(found)
    return Literal(text, relation, number, step, _unit(text[found.end() :], nouns), found.group())


def _number(found: re.Match[str]) -> tuple[Fraction, Fraction]:
    """The number, and the worth of its last digit that counts: 35,600 is written to the hundred."""
    whole, decimals = found["whole"] or "", found["decimals"] or ""
    if len(whole) + len(decimals) > MOST_DIGITS:
        raise LiteralError(f"a number of more than {MOST_DIGITS} digits")
    bare = re.sub(r"\D", "", whole)
    if bare != whole and (not _GROUPED.fullmatch(whole) or whole.startswith("0")):
        raise LiteralError(f"the thousands separators of {whole} are wrong: write {int(bare):,}")
    if len(bare) > 1 and bare.startswith("0"):
        raise LiteralError(f"{whole} begins with a zero: write {int(bare)}")
    number = Fraction(f"{bare or 0}{decimals}")
    step = Fraction(1, 10 ** (len(decimals) - 1)) if decimals else _last_digit(bare)
    if found["exponent"]:
        power = Fraction(10) ** _scale(re.sub(r"^[eE]|^\s?[×·⋅]\s?10\^?", "", found["exponent"]), found.group())
        number, step = number * power, step * power
    if found["power"]:
        scale = _scale(found["power"].lstrip("^"), found.group())
        if scale < 0 and not number:
            raise LiteralError(f"{found.group()} is a division by zero")
        number, step = Fraction(number**scale), Fraction(0)
    if found["denominator"]:
        if not int(found["denominator"]):
            raise LiteralError(f"{found.group()} is a division by zero")
        number, step = number / int(found["denominator"]), Fraction(0)
    return (-number if found["sign"] in ("−", "-", "–") and found["sign"] else number), step


def _last_digit(bare: str) -> Fraction:
    return Fraction(10 ** (len(bare) - len(bare.rstrip("0"))) if bare.strip("0") else 1)


def _scale(exponent: str, text: str) -> int:
    scale = exponent.strip("{} ").translate(_SUPERSCRIPT).replace("−", "-").replace("+", "")
    if len(scale) > 4 or abs(int(scale)) > MOST_DIGITS:
        raise LiteralError(f"the exponent of {text} is beyond {MOST_DIGITS}")
    return int(scale)


def _unit(tail: str, nouns: frozenset[str]) -> Unit:
    name = tail.strip(" " + NO_BREAK).removeprefix("-")
    gap = tail[: len(tail) - len(tail.lstrip(" " + NO_BREAK))]
    if not name:
        return Unit()
    head, _, rest = name.partition(" ")
    if all(word in nouns for word in rest.split()):
        if not gap and head in _COUNTS:
            return Unit(head, Fraction(_COUNTS[head]))
        if head in UNITS:
            return Unit(head, UNITS[head], gap)
    if all(word in nouns for word in name.split()):
        return Unit()
    if name == "KB":
        raise LiteralError("KB is neither unit: write kB (1,000 bytes) or KiB (1,024 bytes)")
    near = [known for known in UNITS if known.lower() == name.lower()]
    raise LiteralError(f"{name} is not a unit this book knows" + (f": write {' or '.join(near)}" if near else ""))


def _read_words(text: str, start: int, relation: str, nouns: frozenset[str]) -> Literal | None:
    body = text[start:]
    if len(body) == 1 and unicodedata.category(body) == "No":  # ½
        part = Fraction(unicodedata.numeric(body)).limit_denominator(1000)
        return Literal(text, relation, part, Fraction(0), Unit(), body, words=True)
    words = re.findall(r"[A-Za-z]+|[^A-Za-z\s-]+", body)
    numbers = {end: words_to_number(words[:end]) for end in range(1, min(len(words), 12) + 1)}
    end = max((end for end, number in numbers.items() if number is not None), default=0)
    number = numbers.get(end)
    if number is None:
        return None
    rest = " ".join(words[end:])
    try:
        unit = _unit(f" {rest}", nouns) if rest else Unit()
    except LiteralError:
        return None  # a name that begins with a number word
    step = _last_digit(str(number)) if number.denominator == 1 else Fraction(0)
    return Literal(text, relation, number, step, unit, body, words=True)


def tuple_items(text: str) -> list[str] | None:
    """The parts of ``(1, 2)`` or ``≈ (1.5, 2.5)``, each with the relation of the whole; None for anything else."""
    found = re.fullmatch(r"(≈|~|about)?\s*[(\[](.*)[)\]]", plain(text), re.S)
    if not found or not found[2].strip():
        return None
    parts, depth, at = [], 0, 0
    inner = found[2].strip().rstrip(",") + ", "
    for i, char in enumerate(inner):
        depth += (char in "([") - (char in ")]")
        if depth == 0 and (char == ";" or (char == "," and inner[i + 1].isspace())):
            parts.append(inner[at:i].strip())
            at = i + 1
    return [f"{found[1]} {part}" if found[1] else part for part in parts]
