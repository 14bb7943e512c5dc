"""Turns what an expression gave into a `Value`: exact, plain, the same on every machine."""

from __future__ import annotations

import re
import sys
from decimal import Decimal
from fractions import Fraction
from typing import Any

from claims.results import Value

MOST_TEXT = 100_000
MOST_ITEMS = 10_000
DIGITS = 30  # of irrational SymPy numbers


def describe(value: Any) -> Value:
    """Describe a value, recognising numbers, tensors, dtypes and SymPy expressions for what they are.

    A zero-dimensional tensor or array is its number, a larger one the tuple of its rows; a list is a tuple.

    Raises:
        ValueError: The value has more than `MOST_ITEMS` items or `MOST_TEXT` characters.
    """
    match value:
        case None:
            return Value("none", "None", shown="None")
        case bool():
            return Value("bool", str(value), shown=str(value))
        case int():
            return _whole(int(value))
        case Fraction(denominator=1):
            return _whole(value.numerator)
        case Fraction():
            text = f"{value.numerator}/{value.denominator}"
            return Value("fraction", text, shown=f"{value.numerator:,}/{value.denominator:,}")
        case float():
            return Value("float", float(value).hex(), shown=repr(float(value)))
        case Decimal():
            return Value("decimal", str(value), shown=str(value))
        case complex():
            return Value("complex", repr(value), shown=repr(value))
        case str():
            return _text(str(value))
        case tuple() | list():
            return _tuple(value)
        case type():
            return _text(value.__name__)
    if _is_sympy(value):
        return _symbolic(value)
    if hasattr(value, "ndim") and hasattr(value, "tolist"):
        return _array(value)
    if hasattr(value, "__index__"):
        return _whole(value.__index__())
    if hasattr(value, "__float__"):
        return describe(float(value))
    if hasattr(value, "__qualname__"):
        return _text(value.__qualname__)
    return _text(without_addresses(str(value).removeprefix("torch.")))


def without_addresses(text: str) -> str:
    """Leave out where in memory an object lies, which differs from run to run."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)


def _whole(value: int) -> Value:
    return Value("int", str(value), shown=f"{value:,}")


def _text(text: str) -> Value:
    if len(text) > MOST_TEXT:
        raise ValueError(f"the value is a text of {len(text):,} characters; at most {MOST_TEXT:,} can be compared")
    return Value("text", text, shown=text)


def _tuple(values: tuple[Any, ...] | list[Any]) -> Value:
    if len(values) > MOST_ITEMS:
        raise ValueError(f"the value has {len(values):,} items; at most {MOST_ITEMS:,} can be compared")
    items = tuple(describe(item) for item in values)
    comma = "," if len(items) == 1 else ""
    text = ", ".join(item.text for item in items)
    shown = ", ".join(item.shown for item in items)
    return Value("tuple", f"({text}{comma})", items, f"({shown}{comma})")


def _array(array: Any) -> Value:
    """A tensor or an array, of torch or NumPy or anything that looks like them."""
    if array.ndim == 0:
        number = array.item()
        return describe(float(number) if type(number) is type(array) else number)
    size = array.numel() if callable(getattr(array, "numel", None)) else array.size
    if size > MOST_ITEMS:
        raise ValueError(f"the value has {size:,} elements; at most {MOST_ITEMS:,} can be compared")
    return describe(array.tolist())


def _is_sympy(value: Any) -> bool:
    sympy = sys.modules.get("sympy")
    return sympy is not None and isinstance(value, (sympy.Basic, sympy.MatrixBase))


def _symbolic(value: Any) -> Value:
    """A SymPy object: an exact number where there is one, else digits, else the expression itself."""
    import sympy

    if isinstance(value, sympy.MatrixBase):
        return describe(value.tolist())
    if isinstance(value, sympy.Tuple):
        return describe(tuple(value))
    if value in (sympy.true, sympy.false):
        return describe(bool(value))
    if not isinstance(value, sympy.Expr) or value.free_symbols:
        return Value("expr", sympy.srepr(value), shown=str(value))
    if value.is_rational is not False and not isinstance(value, (sympy.Rational, sympy.Float)):
        value = sympy.simplify(value)
    if isinstance(value, sympy.Rational):
        return describe(Fraction(int(value.p), int(value.q)))
    if isinstance(value, sympy.Float):
        return describe(float(value) if value._prec == 53 else Decimal(str(value)))
    number = value.evalf(DIGITS)
    if number.is_extended_real and not number.is_finite:
        return describe(float(number))
    if isinstance(number, (sympy.Float, sympy.Rational)):
        return describe(Decimal(str(number)))
    if number.is_number and number.is_finite:
        return describe(complex(number))
    return Value("expr", sympy.srepr(value), shown=str(value))
