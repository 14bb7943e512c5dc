"""The part of a page that an expression rests on, told from the source alone.

It may miss a statement (one that changes an object behind another name), so whoever runs a slice compares the values
that it gives with those of the whole page first.
"""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from claims.code import UNREADABLE, names_in

RANDOM = "<random>"  # the generators that all statements share, as a name
NEVER_CHANGED = frozenset(dir(builtins))


@dataclass
class Effects:
    """The names that a statement gives a new value, those whose value it may change, and those that it reads.

    ``later`` and ``changes_later`` are those of the functions that it defines: they count where these are called.
    """

    binds: set[str] = field(default_factory=set)
    changes: set[str] = field(default_factory=set)
    reads: set[str] = field(default_factory=set)
    later: set[str] = field(default_factory=set)
    changes_later: set[str] = field(default_factory=set)


class Slicer:
    """Knows for each statement of a page what it does, and so what any name rests on."""

    def __init__(self, nodes: Sequence[ast.stmt], drawing: Iterable[int] = ()) -> None:
        """Calls in a ``drawing`` statement are taken to change nothing but a figure."""
        drawing = set(drawing)
        fixed = NEVER_CHANGED | _only_defined(nodes)
        self.effects = [_effects(node, fixed, index in drawing) for index, node in enumerate(nodes)]
        self._settle()

    def _settle(self) -> None:
        """Count what a function reads and changes wherever its name is read, in other functions too."""
        defining = [effects for effects in self.effects if effects.later]
        growing = True
        while growing:
            growing = False
            for function in defining:
                for effects in defining:
                    if function.binds & effects.later:
                        growing |= _add(effects.later, function.later)
                        growing |= _add(effects.changes_later, function.changes_later)
        for function in defining:
            for effects in self.effects:
                if function.binds & effects.reads:
                    effects.reads |= function.later
                    effects.changes |= function.changes_later
        self.later = [(effects.binds, effects.later) for effects in defining]

    def draws(self, index: int, before: bool) -> None:
        """Note that a statement takes random numbers; ``before`` it, unless it seeds them first, others count."""
        effects = self.effects[index]
        (effects.changes if before else effects.binds).add(RANDOM)
        if before:
            effects.reads.add(RANDOM)

    def slice(self, expression: str) -> frozenset[int]:
        """The statements that the value of an expression at the page's end rests on."""
        wanted = set(names_in(expression))
        for binds, later in self.later:
            if binds & wanted:
                wanted |= later
        taken = set()
        for index in range(len(self.effects) - 1, -1, -1):
            effects = self.effects[index]
            if (effects.binds | effects.changes) & wanted:
                taken.add(index)
                wanted -= effects.binds
                wanted |= effects.reads
        return frozenset(taken)


def _add(names: set[str], more: set[str]) -> bool:
    """Whether that made the names more."""
    before = len(names)
    names |= more
    return len(names) > before


def _only_defined(nodes: Sequence[ast.stmt]) -> set[str]:
    """The names of modules, functions and classes, where they are nothing else."""
    defined: set[str] = set()
    stored: set[str] = set()
    for node in (part for statement in nodes for part in ast.walk(statement)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif isinstance(node, ast.alias):
            defined.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            stored.add(node.id)
    return defined - stored


def _effects(node: ast.stmt, fixed: frozenset[str], draws: bool) -> Effects:
    effects = Effects()
    try:
        table = symtable.symtable(ast.unparse(node), "<statement>", "exec")
    except UNREADABLE:
        return effects
    assigned = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    effects.reads = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_referenced()}
    inside: set[str] = set()
    for below in _below(table):
        for symbol in (symbol for symbol in below.get_symbols() if symbol.is_global()):
            (assigned if symbol.is_assigned() else inside).add(symbol.get_name())
    effects.reads |= {n for part in ast.walk(node) if isinstance(part, ast.AugAssign) for n in _root(part.target)}
    defines = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    surely = isinstance(node, ast.Assign | ast.AnnAssign | ast.Import | ast.ImportFrom | ast.With)
    (effects.binds if surely or defines else effects.changes).update(assigned)
    if defines or any(isinstance(part, ast.Lambda) for part in ast.walk(node)):
        effects.later = inside
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        effects.reads |= inside
    changed = set(_changed(node, fixed, draws)) - fixed
    (effects.changes_later if defines else effects.changes).update(changed & (effects.reads | inside))
    return effects


def _below(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for child in table.get_children():
        yield child
        yield from _below(child)


def _changed(node: ast.AST, fixed: frozenset[str], draws: bool) -> Iterator[str]:
    """The names whose object a statement may change."""
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute | ast.Subscript) and not isinstance(part.ctx, ast.Load):
            yield from _root(part)
        elif isinstance(part, ast.AugAssign):
            yield from _root(part.target)
        elif isinstance(part, ast.Call):
            yield from (name for key in part.keywords if key.arg == "generator" for name in _names(key.value))
            if isinstance(part.func, ast.Attribute) and not draws:
                yield from _root(part.func)
        elif isinstance(part, ast.Expr) and isinstance(part.value, ast.Call) and not draws:
            called = part.value.func
            method = isinstance(called, ast.Attribute) and not fixed.issuperset(_root(called))
            builtin = isinstance(called, ast.Name) and called.id in NEVER_CHANGED
            if not method and not builtin:  # a method changes its own object, a function what it is given
                yield from _names(part.value)


def _names(node: ast.AST) -> Iterator[str]:
    yield from (part.id for part in ast.walk(node) if isinstance(part, ast.Name))


def _root(node: ast.expr) -> Iterator[str]:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Name):
        yield node.id
