"""Change one place of a program and see which checks notice.

A check is worth what it catches. The labs break a working part on purpose, one edit at a time, and expect the checks
that they name to fail and no other.
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from decoder.onefile import module_sources, one_file

T = TypeVar("T")


def failures(checks: Mapping[str, Callable[[T], None]], subject: T) -> dict[str, str]:
    """Run every check on ``subject``; those that raise, each with its exception as a traceback's last line has it."""
    found = {}
    for name, check in checks.items():
        try:
            check(subject)
        except Exception as error:  # what is broken on purpose may fail in any way
            found[name] = f"{type(error).__name__}: {error}"
    return found


def replaced_once(text: str, old: str, new: str) -> str:
    """``text`` with ``new`` for ``old``. Raises ValueError unless ``old`` stands in it exactly once."""
    if (count := text.count(old)) != 1:
        raise ValueError(f"old must stand once in the source, {old!r} stands there {count} times")
    return text.replace(old, new)


def edited(function: FunctionType, old: str, new: str, owner: type | None = None) -> FunctionType:
    """The function with one edit in its source; ``owner`` is the class whose ``super()`` it means, if it is a method.

    Raises ValueError as `replaced_once`.
    """
    source = replaced_once(textwrap.dedent(inspect.getsource(function)), old, new)
    maker = f"def make(__class__):\n{textwrap.indent(source, '    ')}\n    return {function.__name__}"
    made: dict[str, Callable] = {}
    exec(compile(maker, f"<edited {function.__name__}>", "exec"), function.__globals__, made)
    return made["make"](owner)


def variant(kind: type, method: str, old: str, new: str) -> type:
    """A subclass of ``kind`` with one edit in the source of one method. Raises ValueError as `replaced_once`."""
    return type(kind.__name__, (kind,), {method: edited(getattr(kind, method), old, new, kind)})


def edited_decoder(module: str = "config", old: str = "", new: str = "") -> Any:
    """The whole decoder as one module, with one edit in the source of ``decoder.<module>``, or as it is.

    Raises ValueError as `replaced_once`, and for a module that `decoder.onefile` does not hold.
    """
    sources = module_sources()
    if module not in sources:
        raise ValueError(f"module must be one of {', '.join(sources)}, got {module!r}")
    if old:
        sources[module] = replaced_once(sources[module], old, new)
    made = ModuleType(f"edited_decoder_{module}")
    sys.modules[made.__name__] = made  # dataclasses look their module up
    try:
        exec(compile(one_file(sources), made.__name__, "exec"), made.__dict__)
    finally:
        del sys.modules[made.__name__]
    return made
