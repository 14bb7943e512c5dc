"""What a person wrote, as a quantity, and whether a value agrees with it.

A literal is a relation, a number and a unit: ``≈ 93.8 MiB``. It is read into exact fractions, and a value agrees only by the
rule that its relation states:

- no sign: ``number × unit`` equals the value exactly;
- ``≈`` (``~``, ``about``): the value, rounded half to even at the last digit written, gives the number written.
  In a whole number, trailing zeros are not digits: ``≈ 35,600`` is written to the hundred;
- ``<`` ``≤`` ``>`` ``≥``: as they say.

A binary floating-point value stands for the shortest decimal that names it, so 0.1 is one tenth.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction

from claims.session import Value

NBSP = "\u00a0\u2009\u202f"
RELATIONS = {"≈": "≈", "~": "≈", "about": "≈", "<": "<", "≤": "≤", "<=": "≤", ">": ">", "≥": "≥", ">=": "≥"}

_BYTES = {"B": 1, "byte": 1, "bytes": 1} | {f"{p}iB": 1024**i for i, p in enumerate("KMGTPE", 1)}
_BYTES |= {f"{p}B": 1000**i for i, p in enumerate("kMGTPE", 1)}
_COUNTS = {"K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}
_COUNT_WORDS = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_FLOPS = {
    f"{p}FLOP{end}": 1000**i for i, p in enumerate(("", "k", "M", "G", "T", "P", "E", "Z")) for end in ("", "s", "/s")
}
_TIMES = {"ns": Fraction(1, 10**9), "µs": Fraction(1, 10**6), "us": Fraction(1, 10**6), "ms": Fraction(1, 1000)}
_TIMES |= {"s": Fraction(1), "second": Fraction(1), "seconds": Fraction(1)}
_RATES = {"B/s": 1, "kB/s": 10**3, "MB/s": 10**6, "GB/s": 10**9, "TB/s": 10**12}
_PLAIN = {"%": Fraction(1, 100), "×": Fraction(1), "x": Fraction(1), "times": Fraction(1), "fold": Fraction(1)}
UNITS: dict[str, Fraction] = {
    name: Fraction(factor)
    for table in (_BYTES, _COUNT_WORDS, _FLOPS, _TIMES, _RATES, _PLAIN)
    for name, factor in table.items()
}

_ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
WORDS: dict[str, Fraction] = {word: Fraction(i) for i, word in enumerate(_ONES.split())}
WORDS |= {word: Fraction(10 * i) for i, word in enumerate(_TENS.split(), 2)}
_PARTS = {"half": 2, "third": 3, "quarter": 4, "fifth": 5, "sixth": 6, "eighth": 8, "tenth": 10, "twelfth": 12}
PARTS: dict[str, Fraction] = {word: Fraction(1, n) for word, n in _PARTS.items()}
PARTS |= {word + "s": part for word, part in PARTS.items() if word != "half"} | {"halves": Fraction(1, 2)}
MULTIPLES = {
    "once": Fraction(1),
    "twice": Fraction(2),
    "thrice": Fraction(3),
    "double": Fraction(2),
    "dozen": Fraction(12),
}

_LEAD = re.compile(r"\s*(≈|~|about\b|<=|>=|<|≤|>|≥)?\s*", re.I)
_NUMBER = re.compile(
    rf"""(?P<sign>[+−–-]?)\s?
    (?P<whole>\d[\d,{NBSP}]*)?(?P<decimals>\.\d+)?
    (?P<exponent>[eE][+−-]?\d+|\s?[×·⋅]\s?10(?:\^\{{?[−-]?\d+\}}?|[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?""",
    re.X,
)
_SUPERSCRIPT = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


class LiteralError(ValueError):
    """The literal cannot be read; the message says why and what to write instead."""


@dataclass(frozen=True)
class Unit:
    """A unit as written, and how many base units (bytes, seconds, operations, ones) it holds."""

    name: str
    factor: Fraction
    gap: str = ""  # the white space before it


@dataclass(frozen=True)
class Literal:
    """A quantity as written. ``number`` and ``step`` are before the unit."""

    text: str
    relation: str
    number: Fraction
    step: Fraction  # worth of the last digit that counts
    unit: Unit
    before: str  # what stands before the digits
    digits: str  # the number itself
    after: str  # what stands behind it, unit included
    words: bool = False

    @property
    def value(self) -> Fraction:
        return self.number * self.unit.factor


@dataclass(frozen=True)
class Disagreement:
    """Why a value does not agree: ``slug`` is drift, inexact or bad-literal."""

    slug: str
    message: str
    hint: str = ""


# --- reading ---------------------------------------------------------------------------------------------------------


def plain(text: str) -> str:
    """The literal without the Markdown around it: emphasis, backticks, dollar signs, ``{,}``."""
    text = text.replace("{,}", ",").replace("\\,", "").strip()
    while len(text) > 1 and text[0] == text[-1] and text[0] in "*_`$":
        text = text[1:-1].strip()
    return text


def read(text: str, nouns: frozenset[str] = frozenset()) -> Literal | None:
    """A literal that is a quantity; None when it holds no number (it is then compared as text).

    ``nouns`` are the words that may stand behind a count (layers, heads, tokens).
    Raises LiteralError for what looks like a quantity and is written wrongly.
    """
    text = plain(text)
    lead = _LEAD.match(text)
    relation = RELATIONS[lead.group(1).lower()] if lead.group(1) else "="
    start = lead.end()
    found = _NUMBER.match(text, start)
    if found.group("whole") is None and found.group("decimals") is None:
        return _read_words(text, start, relation, nouns)
    number, step = _number(found, text)
    end = found.end()
    fraction = re.match(r"\s?[/⁄]\s?(\d+)(?![\d.])", text[end:])
    if fraction and int(fraction.group(1)):
        number, step = number / int(fraction.group(1)), Fraction(0)
        end += fraction.end()
    unit = _unit(text[end:], nouns)
    return Literal(text, relation, number, step, unit, text[:start], text[start:end], text[end:])


def _number(found: re.Match[str], text: str) -> tuple[Fraction, Fraction]:
    whole, decimals = found.group("whole") or "", found.group("decimals") or ""
    separators = set(whole) - set("0123456789")
    if separators and (
        len(separators) > 1 or not re.fullmatch(rf"\d{{1,3}}(?:[,{NBSP}]\d{{3}})+", whole) or whole.startswith("0")
    ):
        digits = re.sub(r"\D", "", whole)
        raise LiteralError(f"the thousands separators of {whole} are wrong: write {int(digits):,}")
    bare = re.sub(r"\D", "", whole)
    number = Fraction(f"{bare or 0}{decimals}")
    step = Fraction(1, 10 ** (len(decimals) - 1)) if decimals else Fraction(1)
    if not decimals and number:
        step = Fraction(10 ** (len(bare) - len(bare.rstrip("0"))))
    if found.group("exponent"):
        power = re.sub(r"^[eE]|.*10\^?", "", found.group("exponent")).strip("{} ").translate(_SUPERSCRIPT)
        scale = int(power.replace("−", "-"))
        if abs(scale) > 400:
            raise LiteralError(f"the exponent of {text} is beyond 400")
        number, step = number * Fraction(10) ** scale, step * Fraction(10) ** scale
    return (-number if found.group("sign") in ("−", "-", "–") and found.group("sign") else number), step


def _unit(tail: str, nouns: frozenset[str]) -> Unit:
    name = tail.strip(" " + NBSP)
    gap = tail[: len(tail) - len(tail.lstrip(" " + NBSP))]
    if not name:
        return Unit("", Fraction(1))
    if name.startswith("-"):
        name = name[1:]
    if not gap and name in _COUNTS:
        return Unit(name, Fraction(_COUNTS[name]))
    if name in UNITS:
        return Unit(name, UNITS[name], gap)
    head, _, rest = name.partition(" ")
    if rest and head in UNITS | _COUNTS and all(word in nouns for word in rest.split()):
        return Unit(head, Fraction(_COUNTS[head]) if not gap and head in _COUNTS else UNITS[head], gap)
    if all(word in nouns for word in name.split()):
        return Unit("", Fraction(1))
    if name == "KB":
        raise LiteralError("KB is neither unit: write kB (1,000 bytes) or KiB (1,024 bytes)")
    near = [known for known in UNITS if known.lower() == name.lower()]
    hint = f": write {' or '.join(near)}" if near else ""
    raise LiteralError(f"{name} is not a unit this book knows{hint}")


def _read_words(text: str, start: int, relation: str, nouns: frozenset[str]) -> Literal | None:
    body = text[start:]
    if len(body) == 1 and unicodedata.category(body) == "No":
        number = Fraction(unicodedata.numeric(body)).limit_denominator(1000)
        return Literal(text, relation, number, Fraction(0), Unit("", Fraction(1)), text[:start], body, "", True)
    words = re.findall(r"[A-Za-z]+|[^A-Za-z\s-]+", body)
    best = None
    for end in range(1, len(words) + 1):
        number = words_to_number(words[:end])
        if number is not None:
            best = (end, number)
    if best is None:
        return None
    end, number = best
    rest = " ".join(words[end:])
    try:
        unit = _unit(" " + rest, nouns) if rest else Unit("", Fraction(1))
    except LiteralError:
        return None  # a name that begins with a number word
    return Literal(text, relation, number, Fraction(1), unit, text[:start], body, "", True)


def words_to_number(words: list[str]) -> Fraction | None:
    """``twenty four``, ``four times``, ``two thirds``, ``half``, ``a quarter``, ``twelvefold``; None for other words."""
    words = [word.lower() for word in words if word.lower() not in ("a", "an", "and", "the")]
    if not words:
        return None
    last = words[-1]
    if last.endswith("fold") and words_to_number([last[:-4]]) is not None:
        words = [*words[:-1], last[:-4]]
    elif len(words) > 1 and last == "times":
        words = words[:-1]
    if words[-1] in PARTS:
        times = _sum_words(words[:-1]) if words[:-1] else Fraction(1)
        return None if times is None else times * PARTS[words[-1]]
    if len(words) == 1 and words[0] in MULTIPLES:
        return MULTIPLES[words[0]]
    return _sum_words(words)


def _sum_words(words: list[str]) -> Fraction | None:
    total, part = Fraction(0), None
    for word in words:
        if word in WORDS:
            if part is not None and not (part % 100 == 0 or (part % 10 == 0 and part % 100 >= 20 and WORDS[word] < 10)):
                return None
            part = (part or 0) + WORDS[word]
        elif word == "hundred" and part is not None:
            part *= 100
        elif word in _COUNT_WORDS and part is not None:
            total, part = total + part * _COUNT_WORDS[word], Fraction(0)
        else:
            return None
    return None if part is None else total + part


# --- comparing -------------------------------------------------------------------------------------------------------


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
    try:
        items = tuple_items(text)
        if items is not None and value.kind == "tuple":
            return _agree_tuple(text, items, value, nouns)
        literal = read(text, nouns)
    except LiteralError as error:
        return Disagreement("bad-literal", str(error))
    number = number_of(value)
    if literal is None or number is None:
        return _agree_text(text, value, literal)
    return _agree_number(literal, number, value)


def tuple_items(text: str) -> list[str] | None:
    """The parts of ``(1, 2)`` or ``≈ (1.5, 2.5)``, each with the relation of the whole; None for anything else."""
    text = plain(text)
    found = re.fullmatch(r"(≈|~|about)?\s*[(\[](.*)[)\]]", text, re.S)
    if not found or not found.group(2).strip():
        return None
    parts = [part.strip() for part in re.split(r",\s+|;\s*", found.group(2).strip().rstrip(","))]
    return [f"{found.group(1)} {part}" if found.group(1) else part for part in parts]


def _agree_tuple(text: str, items: list[str], value: Value, nouns: frozenset[str]) -> Disagreement | None:
    if len(items) != len(value.items):
        return Disagreement(
            "drift", f"the text says {plain(text)}, of {len(items)} parts, the code gives {value.shown}"
        )
    wrong = [found for part, item in zip(items, value.items, strict=True) if (found := agree(part, item, nouns))]
    if not wrong:
        return None
    return Disagreement(wrong[0].slug, f"the text says {plain(text)}, the code gives {value.shown}", wrong[0].hint)


def _agree_text(text: str, value: Value, literal: Literal | None) -> Disagreement | None:
    said = plain(text)
    accepted = {value.text, value.shown} | ({"True": {"yes", "true"}, "False": {"no", "false"}}.get(value.text, set()))
    if value.kind == "tuple" and re.sub(r"\s", "", said) == re.sub(r"\s", "", value.shown):
        return None
    if value.kind != "expr" and said in accepted:
        return None
    return Disagreement("drift", f"the text says {said}, the code gives {value.shown}")


def _agree_number(literal: Literal, number: Fraction, value: Value) -> Disagreement | None:
    target = number / literal.unit.factor
    said = f"the text says {literal.text}{_in_base(literal)}"
    gives = f"the code gives {show_like(literal, number)}"
    if literal.relation == "=":
        if target == literal.number:
            return None
        if literal.step and round(target / literal.step) * literal.step == literal.number:
            exact = f"the code gives {show(number)}{_base_noun(literal)}"
            return Disagreement("inexact", f"{said}, {exact}", f"write ≈ {literal.text}, or the exact figure")
        return Disagreement("drift", f"{said}, {gives}")
    if literal.relation == "≈":
        if literal.step == 0:
            return None if target == literal.number else Disagreement("drift", f"{said}, {gives}")
        return None if _rounded(target, literal) == literal.number else Disagreement("drift", f"{said}, {gives}")
    holds = {
        "<": target < literal.number, "≤": target <= literal.number,
        ">": target > literal.number, "≥": target >= literal.number,
    }[literal.relation]  # fmt: skip
    return None if holds else Disagreement("drift", f"{said}, {gives}")


def _rounded(target: Fraction, literal: Literal) -> Fraction:
    return round(target / literal.step) * literal.step


# --- showing ---------------------------------------------------------------------------------------------------------


def show(number: Fraction, digits: int = 12) -> str:
    """A number for people: grouped digits, exact where a short decimal is, else ``digits`` significant digits."""
    if number.denominator == 1:
        return f"{number.numerator:,}" if abs(number) < 10**30 else f"{float(number):.6g}"
    scaled = number
    for places in range(1, digits + 1):
        scaled = number * 10**places
        if scaled.denominator == 1:
            return f"{float(number):,.{places}f}" if abs(number) < 10**6 else f"{_decimal(number, places)}"
    approximate = float(number)
    return f"{approximate:,.6f}" if 1e-4 <= abs(approximate) < 1e9 else f"{approximate:.6g}"


def _decimal(number: Fraction, places: int) -> str:
    scaled = round(number * 10**places)
    sign, digits = ("-" if scaled < 0 else ""), f"{abs(scaled):0{places + 1}d}"
    if places == 0:
        return f"{sign}{int(digits):,}"
    return f"{sign}{int(digits[:-places]):,}.{digits[-places:]}"


def show_like(literal: Literal, number: Fraction) -> str:
    """The value in the literal's unit, with the base units in parentheses where the unit is not one of them."""
    target = number / literal.unit.factor
    name = f"{literal.unit.gap}{literal.unit.name}"
    text = show(target) + name
    if literal.unit.factor == 1:
        return text
    return f"{text} ({show(number)}{_base_noun(literal)})"


def _base_noun(literal: Literal) -> str:
    name = literal.unit.name
    if name in _BYTES and not (name == "B" and not literal.unit.gap):
        return " bytes"
    if name in _TIMES:
        return " s"
    return ""


def _in_base(literal: Literal) -> str:
    if literal.unit.factor == 1 or literal.words:
        return ""
    return f" ({show(literal.value)}{_base_noun(literal)})"


# --- repairing -------------------------------------------------------------------------------------------------------


def rewrite(text: str, value: Value, nouns: frozenset[str] = frozenset()) -> str | None:
    """The literal with ``value`` in it, in the same format and unit; None where that cannot say the value by the literal's rule."""
    try:
        literal = read(text, nouns)
    except LiteralError:
        return None
    number = number_of(value)
    if literal is None or number is None or literal.words or literal.step == 0 or literal.relation not in "=≈":
        return value.text if literal is None and value.kind in ("text", "bool") else None
    target = number / literal.unit.factor
    if literal.relation == "≈":
        target = _rounded(target, literal)
    new = _write_like(literal.digits, target)
    if new is None:
        return None
    changed = text.replace(literal.digits, new, 1) if literal.digits in text else None
    if changed is None or agree(changed, value, nouns) is not None:
        return None
    return changed


def _write_like(digits: str, target: Fraction) -> str | None:
    if re.search(r"[eE×·⋅/⁄]", digits):
        return None
    places = len(digits.partition(".")[2])
    if places == 0 and target.denominator != 1:
        while places < 6 and (target * 10**places).denominator != 1:
            places += 1
    if (target * 10**places).denominator != 1:
        return None
    text = _decimal(abs(target), places)
    separator = next((c for c in digits if c in "," + NBSP), "," if abs(target) >= 10_000 else "")
    text = text.replace(",", separator)
    minus = "−" if "−" in digits or "-" not in digits else "-"
    return (minus if target < 0 else "") + text
