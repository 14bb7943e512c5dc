"""What Python source says without being run: its comments, and the names that it binds and reads."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from functools import lru_cache

UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


@lru_cache(maxsize=65536)
def syntax_error(expression: str) -> str | None:
    """Why this is no Python expression, or None."""
    try:
        compile(expression.strip(), "<claim>", "eval", dont_inherit=True)
    except UNREADABLE as error:
        return getattr(error, "msg", None) or str(error) or type(error).__name__
    return None


@lru_cache(maxsize=65536)
def names_in(expression: str) -> frozenset[str]:
    """The names that an expression takes from its surroundings."""
    try:
        nodes = list(ast.walk(ast.parse(expression.strip(), mode="eval")))
    except UNREADABLE:
        return frozenset()
    names = [node for node in nodes if isinstance(node, ast.Name)]
    own = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    own |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    return frozenset(node.id for node in names) - own


@lru_cache(maxsize=1024)
def bindings(code: str) -> dict[str, int]:
    """The names that a block binds at any depth, each with the row of its last binding; ``*`` is a star import."""
    try:
        tree = ast.parse(code)
    except UNREADABLE:
        return {}
    bound: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name, row = node.id, node.lineno - 1
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            name, row = node.name, node.lineno - 1
        elif isinstance(node, ast.alias):
            name, row = (node.asname or node.name).split(".")[0], node.lineno - 1
        else:
            continue
        bound[name] = max(bound.get(name, 0), row)
    return bound


def comments(code: str) -> Iterator[tuple[int, int, str]]:
    """``(row, column, comment)``, as far as the code can be read."""
    if "#" not in code:
        return
    try:
        for token in tokenize.generate_tokens(io.StringIO(code + "\n").readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0] - 1, token.start[1], token.string
    except (tokenize.TokenError, SyntaxError):
        return


def statement_ends(code: str) -> dict[int, str]:
    """For each row that ends a top-level expression or plain assignment, what a comment there is about."""
    ends: dict[int, str] = {}
    try:
        for node in ast.parse(code).body:
            row = (node.end_lineno or 1) - 1
            if isinstance(node, ast.Expr):
                ends[row] = ast.unparse(_printed(node.value))
            elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                ends[row] = node.targets[0].id
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
                ends[row] = node.target.id
    except UNREADABLE:
        return {}
    return ends


def _printed(value: ast.expr) -> ast.expr:
    """What ``print(value)`` prints."""
    calls = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "print"
    return value.args[0] if calls and len(value.args) == 1 else value  # type: ignore[attr-defined]
