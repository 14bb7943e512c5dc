"""The part of a page that its claims rest on, told from the source alone.

It may miss a statement (one that changes an object behind another name), so whoever runs a slice compares its values
with those of the whole page first.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Set
from dataclasses import dataclass

from claims.code import UNREADABLE


@dataclass(frozen=True)
class _Statement:
    """A top-level statement: its rows, the names that it binds or may change, and those that it reads."""

    block: int
    rows: range
    binds: frozenset[str]
    reads: frozenset[str]


def sliced(codes: list[str], names: Iterable[str], drawing: Set[int] = frozenset()) -> list[str]:
    """The blocks without the statements that the values of ``names`` do not rest on.

    Calls in a ``drawing`` block are taken to change nothing but its figure. A block that cannot be read stays whole.
    """
    wanted = set(names)
    parsed = [_parse(block, code, block not in drawing) for block, code in enumerate(codes)]
    statements = [statement for block in parsed for statement in block or ()]
    taken: list[_Statement] = []
    reads: set[str] = wanted
    while not taken or not reads <= wanted:
        wanted |= reads
        taken = [statement for statement in statements if statement.binds & wanted]
        reads = set().union(*(statement.reads for statement in taken))
        if not taken:
            break
    kept = {(statement.block, row) for statement in taken for row in statement.rows}
    return [
        "\n".join(row for i, row in enumerate(code.split("\n")) if parsed[block] is None or (block, i) in kept)
        for block, code in enumerate(codes)
    ]


def _parse(block: int, code: str, changes: bool) -> list[_Statement] | None:
    try:
        return [_statement(block, node, changes) for node in ast.parse(code).body]
    except UNREADABLE:
        return None


def _statement(block: int, node: ast.stmt, changes: bool) -> _Statement:
    binds: set[str] = set()
    reads: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            (binds if isinstance(part.ctx, ast.Store) else reads).add(part.id)
        elif isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            binds.add(part.name)
        elif isinstance(part, ast.alias):
            binds.add((part.asname or part.name).split(".")[0])
        elif isinstance(part, ast.Attribute | ast.Subscript) and isinstance(part.ctx, ast.Store):
            binds |= _root(part)
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and changes:
            binds |= _root(part.func)
    if isinstance(node, ast.Expr | ast.For | ast.While | ast.With | ast.If) and changes:
        binds |= reads
    first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])
    rows = range(first - 1, node.end_lineno or node.lineno)
    return _Statement(block, rows, frozenset(binds), frozenset(reads))


def _root(node: ast.expr) -> set[str]:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return {node.id} if isinstance(node, ast.Name) else set()
