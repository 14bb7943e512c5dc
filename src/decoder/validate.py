"""Refusals of what cannot be used: one line with the name, the rule and the value."""

from __future__ import annotations

import sys
from collections.abc import Collection


def whole(name: str, value: object, least: int = 1, most: int | None = None) -> None:
    """Raise ValueError unless ``value`` is a whole number from ``least``, to ``most`` where that is given."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least or (most is not None and value > most):
        bounds = f"from {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} must be a whole number {bounds}, got {value!r}")


def number(name: str, value: object, or_zero: bool = False) -> None:
    """Raise ValueError unless ``value`` is a finite number above 0, or 0 where ``or_zero`` lets it be."""
    real = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= sys.float_info.max
    if not real or (value == 0 and not or_zero):
        raise ValueError(f"{name} must be a finite number {'from' if or_zero else 'above'} 0, got {value!r}")


def one_of(name: str, value: object, known: Collection[object]) -> None:
    """Raise ValueError unless ``value`` is among the ``known`` ones."""
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}")
