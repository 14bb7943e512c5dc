"""Whether a value agrees with what the text says, and how a disagreement is put into words.

A value agrees only by the rule that the literal's relation states:

- no sign: ``number × unit`` equals the value exactly;
- ``≈`` (``~``, ``about``): the value, rounded half to even at the last digit written, gives the number written.
  In a whole number, trailing zeros are not digits: ``≈ 35,600`` is written to the hundred;
- ``<`` ``≤`` ``>`` ``≥``: as they say.

A binary floating-point value stands for the shortest decimal that names it, so 0.1 is one tenth.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from claims.literal import Literal, LiteralError, plain, read, tuple_items
from claims.results import Value, brief


@dataclass(frozen=True)
class Disagreement:
    """Why a value does not agree: ``slug`` is drift, inexact or bad-literal."""

    slug: str
    message: str
    hint: str = ""


def number_of(value: Value) -> Fraction | None:
    """The value as an exact fraction; None where it is not one finite real number."""
    if value.kind in ("int", "fraction"):
        return Fraction(value.text)
    if value.kind in ("float", "decimal"):
        try:
            return Fraction(value.text if value.kind == "decimal" else repr(float.fromhex(value.text)))
        except (ValueError, OverflowError):
            return None  # inf, nan
    return None


def agree(text: str, value: Value, nouns: frozenset[str] = frozenset()) -> Disagreement | None:
    """None when ``value`` is what ``text`` says."""
    if value.kind in ("text", "bool", "none") and _same_text(text, value):
        return None
    try:
        if value.kind == "tuple" and (items := tuple_items(text)) is not None:
            return _agree_tuple(text, items, value, nouns)
        literal = read(text, nouns)
    except LiteralError as error:
        return Disagreement("bad-literal", str(error))
    number = number_of(value)
    if literal is not None and number is not None:
        return _agree_number(literal, number)
    if _same_text(text, value):
        return None
    return Disagreement("drift", f"the text says {brief(plain(text))}, the code gives {value.brief}")


def _same_text(text: str, value: Value) -> bool:
    said = plain(text)
    if value.kind == "tuple":
        return re.sub(r"\s", "", said) == re.sub(r"\s", "", value.shown)
    said_so = {"True": ("yes", "true"), "False": ("no", "false")}.get(value.text, ())
    return value.kind != "expr" and said in (value.text, value.shown, *said_so)


def _agree_tuple(text: str, items: Sequence[str], value: Value, nouns: frozenset[str]) -> Disagreement | None:
    said = f"the text says {brief(plain(text))}"
    if len(items) != len(value.items):
        return Disagreement("drift", f"{said}, of {len(items)} parts, the code gives {value.brief}")
    for part, item in zip(items, value.items, strict=True):
        if wrong := agree(part, item, nouns):
            return Disagreement(wrong.slug, f"{said}, the code gives {value.brief}", wrong.hint)
    return None


def _agree_number(literal: Literal, number: Fraction) -> Disagreement | None:
    target = number / literal.unit.factor
    said = f"the text says {literal.text}{_in_base(literal)}"
    if literal.relation == "≈" and not literal.step:
        return Disagreement("bad-literal", f"{literal.text} says nothing about its last digit", "write it in decimals")
    holds = {
        "=": lambda: target == literal.number,
        "≈": lambda: rounded(target, literal) == literal.number,
        "<": lambda: target < literal.number,
        "≤": lambda: target <= literal.number,
        ">": lambda: target > literal.number,
        "≥": lambda: target >= literal.number,
    }[literal.relation]()
    if holds:
        return None
    if literal.relation == "=" and literal.step and rounded(target, literal) == literal.number:
        exact = f"{said}, the code gives {show(number)}{literal.unit.base}"
        return Disagreement("inexact", exact, f"write ≈ {literal.text}, or the exact figure")
    return Disagreement("drift", f"{said}, the code gives {show_like(literal, number)}")


def rounded(target: Fraction, literal: Literal) -> Fraction:
    """``target``, in the literal's unit, rounded half to even at the literal's last digit."""
    return round(target / literal.step) * literal.step


# --- in words --------------------------------------------------------------------------------------------------------


def show(number: Fraction, digits: int = 12) -> str:
    """A number for people: grouped digits, exact where a short decimal is, else six digits."""
    if number.denominator == 1:
        return f"{number.numerator:,}" if abs(number) < 10**30 else _short(number)
    for places in range(1, digits + 1):
        if (number * 10**places).denominator == 1:
            return decimal(number, places)
    return decimal(number, 6) if Fraction(1, 10**4) <= abs(number) < 10**9 else _short(number)


def _short(number: Fraction) -> str:
    try:
        return f"{float(number):.6g}"
    except OverflowError:
        return f"{'-' if number < 0 else ''}10^{len(str(abs(number.numerator) // number.denominator)) - 1} and more"


def decimal(number: Fraction, places: int) -> str:
    """Grouped digits with ``places`` decimals, rounded half to even."""
    scaled = round(number * 10**places)
    sign, digits = ("-" if scaled < 0 else ""), f"{abs(scaled):0{places + 1}d}"
    whole, tail = digits[: len(digits) - places], digits[len(digits) - places :]
    return f"{sign}{int(whole):,}" + (f".{tail}" if places else "")


def show_like(literal: Literal, number: Fraction) -> str:
    """The value in the literal's unit, with the base units in parentheses where the unit is not one of them."""
    text = f"{show(number / literal.unit.factor)}{literal.unit.gap}{literal.unit.name}"
    return text if literal.unit.factor == 1 else f"{text} ({show(number)}{literal.unit.base})"


def _in_base(literal: Literal) -> str:
    if literal.unit.factor == 1 or literal.words:
        return ""
    return f" ({show(literal.value)}{literal.unit.base})"
