"""The fields of dataclasses and the data that is read, as inputs: what is read where, and raising it."""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import json
import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from claims.inputs.rerun import Statement

Field = tuple[str, str, str]  # module, dataclass, field


def numeric_fields(module: str, kind: str) -> list[str]:
    """The fields of a dataclass that may hold a number."""
    entries = fields(getattr(importlib.import_module(module), kind))
    return [entry.name for entry in entries if entry.init and re.search(r"\b(int|float)\b", str(entry.type))]


class Watched:
    """Where fields of dataclasses first hold a number, and which statements and expressions read them."""

    def __init__(self, statements: list[Statement]) -> None:
        self.imports = {i for i, entry in enumerate(statements) if isinstance(entry.node, ast.Import | ast.ImportFrom)}
        self.now = self.building = 0
        self.made: dict[Field, int] = {}
        self.readers: dict[Field, set[int]] = {}
        self.derived: set[Field] = set()  # from other fields, when it was made
        self.data: set[int] = set()  # the statements that read JSON

    @property
    def imported(self) -> bool:
        """Whether importing a module already makes something of a dataclass."""
        return any(at in self.imports for at in self.made.values())

    def begin(self, index: int) -> None:
        self.now = index

    def reading(self, entry: Field) -> set[int]:
        """Where a field is read, or one that may have been derived from it."""
        derived = (other for other in self.derived if other[:2] == entry[:2])
        return self.readers[entry].union(*(self.readers[other] for other in derived))

    def watch_data(self) -> None:
        """Note which statements read JSON, but for those that import: what a module keeps is its own."""
        read = json.loads

        def noted(*values: Any, **named: Any) -> Any:
            if self.now not in self.imports:
                self.data.add(self.now)
            return read(*values, **named)

        json.loads = noted

    def watch(self, module: str, name: str, numbers: list[str]) -> None:
        kind = getattr(importlib.import_module(module), name)
        build, look_up = kind.__init__, kind.__getattribute__
        stated = {entry.name: entry.default for entry in fields(kind) if entry.init}
        entries = {number: (module, name, number) for number in stated}
        self.readers |= {entry: set() for entry in entries.values()}

        @functools.wraps(build)
        def noted(instance: Any, *values: Any, **named: Any) -> None:
            self.building += 1
            try:
                build(instance, *values, **named)
            finally:
                self.building -= 1
            given = stated | dict(zip(stated, values, strict=False)) | named
            for attribute, entry in entries.items():
                value = look_up(instance, attribute)
                if value is not given[attribute]:
                    self.derived.add(entry)
                if attribute in numbers and isinstance(value, int | float) and not isinstance(value, bool):
                    self.made.setdefault(entry, self.now)

        def watched(instance: Any, attribute: str) -> Any:
            if not self.building:
                if attribute in entries:
                    self.readers[entries[attribute]].add(self.now)
                elif attribute == "__dict__":
                    for entry in entries.values():
                        self.readers[entry].add(self.now)
            return look_up(instance, attribute)

        kind.__init__, kind.__getattribute__ = noted, watched


def raise_field(module: str, name: str, field: str, doubled: bool = False) -> None:
    """From now on, have a class raise one of its fields: by one or to the double, or as little else as it accepts."""
    kind = getattr(importlib.import_module(module), name)
    build: Callable[..., None] = kind.__init__
    names = [entry.name for entry in fields(kind) if entry.init]

    @functools.wraps(build)
    def raised(self: object, *values: Any, **named: Any) -> None:
        build(self, *values, **named)
        stated = getattr(self, field)
        if isinstance(stated, bool) or not isinstance(stated, int | float):
            return
        given = dict(zip(names, values, strict=False)) | named
        for value in (stated + (0 if doubled else 1), stated * 2, stated + 2, stated - 1, stated / 2):
            with contextlib.suppress(Exception):
                if value != stated:
                    build(self, **given | {field: type(stated)(value)})
                    return
        build(self, **given)

    kind.__init__ = raised


def raise_data() -> None:
    """From now on, have JSON raise every number in what it reads, so that neither ratios nor differences last."""
    read = json.loads
    json.loads = lambda *values, **named: _more(read(*values, **named))


def _more(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _more(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_more(value) for value in data]
    if isinstance(data, bool) or not isinstance(data, int | float):
        return data
    return data + 1 if isinstance(data, int) else 1.01 * data + 0.01
