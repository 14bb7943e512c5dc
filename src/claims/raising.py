"""Runs a page again and again, each time with one input raised. This is the far side of `claims.inputs`.

The page runs once, statement by statement. Before a statement that holds a literal, a copy of the process is forked in
which that literal is raised and the rest of the page runs on; so what stands above is not computed again. The fields
of a dataclass are raised from the start, before anything but imports ran.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import functools
import hashlib
import importlib
import io
import json
import linecache
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from types import CodeType
from typing import Any

from claims.values import describe


@dataclass
class _Statement:
    block: int
    node: ast.stmt
    name: str  # of the block's code

    def code(self, flags: int) -> CodeType:
        return compile(ast.Module([self.node], []), self.name, "exec", flags=flags, dont_inherit=True)


def numeric_fields(module: str, kind: str) -> list[str]:
    """The fields of a dataclass that may hold a number."""
    entries = fields(getattr(importlib.import_module(module), kind))
    return [entry.name for entry in entries if entry.init and re.search(r"\b(int|float)\b", str(entry.type))]


def trace(request: str, namespace: dict[str, Any]) -> list[str]:
    """Run the page of a request (JSON, made by ``claims.inputs``) in a namespace.

    The answer holds a text for the page as it is and one for each input; in it one sign stands for each expression:
    ``=`` its value is the expected one, ``!`` it is another, ``?`` there is none.
    """
    wanted = json.loads(request)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return _Raising(wanted, namespace).trace(wanted["fields"], wanted["literals"])


class _Raising:
    def __init__(self, wanted: dict[str, Any], namespace: dict[str, Any]) -> None:
        self.namespace, self.asked, self.time_limit = namespace, wanted["asked"], wanted["time_limit"]
        self.statements = list(_statements(wanted["blocks"]))
        self.flags = 0
        for node in (entry.node for entry in self.statements):
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                self.flags |= sum(getattr(__future__, alias.name).compiler_flag for alias in node.names)
        self.ending = {index for index, (_, _, raises) in enumerate(wanted["blocks"]) if raises}
        self.ended: set[int] = set()  # of the blocks that must raise, those that did
        self.files: set[str] = set()

    def trace(self, raised: list[list[str]], literals: list[list[Any]]) -> list[str]:
        if self._copy(lambda: self._imports_construct(raised)) is False:
            self._import()
        unchanged = self._copy(lambda: self._rest(0))
        if unchanged is None or "!" in unchanged or "?" in unchanged:
            return [unchanged or "?" * len(self.asked)]
        by_field = [self._copy(lambda entry=entry: self._with_field(*entry)) for entry in raised]  # type: ignore[misc]
        by_literal: dict[int, str | None] = {}
        places = {(block, line, column): index for index, (block, line, column, _) in enumerate(literals)}
        for at, statement in enumerate(self.statements):
            for node in ast.walk(statement.node):
                index = places.get((statement.block, getattr(node, "lineno", 0), getattr(node, "col_offset", 0)))
                if isinstance(node, ast.Constant) and index is not None:
                    by_literal[index] = self._raised(at, node, literals[index][3])
            self._run(statement)
        for path in self.files:  # so that whoever watches what this process opens sees them
            with contextlib.suppress(OSError), open(path, "rb"):
                pass
        answers = [*by_field, *(by_literal.get(index) for index in range(len(literals)))]
        return [unchanged, *(answer or "?" * len(self.asked) for answer in answers)]

    # --- running ---

    def _run(self, statement: _Statement, code: CodeType | None = None) -> None:
        """Run one statement; one that raises is left at that, and ends its block only if that block must raise."""
        if statement.block in self.ended:
            return
        try:
            exec(code or statement.code(self.flags), self.namespace)
        except BaseException:
            self.ended |= self.ending & {statement.block}

    def _rest(self, at: int) -> str:
        for statement in self.statements[at:]:
            self._run(statement)
        return "".join(self._sign(text, expected) for text, expected in self.asked)

    def _sign(self, text: str, expected: str) -> str:
        try:
            code = compile(text.strip(), "<expression>", "eval", flags=self.flags, dont_inherit=True)
            value = describe(eval(code, dict(self.namespace)))
        except BaseException:
            return "?"
        return "=" if digest(value.to_json()) == expected else "!"

    # --- raising ---

    def _raised(self, at: int, node: ast.Constant, values: list[float]) -> str | None:
        """The answer with a literal raised by that of these values which leaves most expressions a value."""
        best: str | None = None
        stated = node.value
        for value in values:
            node.value = value
            answer = self._copy(lambda: self._rest(at))
            node.value = stated
            if answer is not None and (best is None or answer.count("?") < best.count("?")):
                best = answer
            if best is not None and "?" not in best:
                break
        return best

    def _with_field(self, module: str, kind: str, field: str) -> str:
        _raise_field(getattr(importlib.import_module(module), kind), field)
        return self._rest(0)

    def _imports(self) -> Iterator[_Statement]:
        yield from (entry for entry in self.statements if isinstance(entry.node, ast.Import | ast.ImportFrom))

    def _import(self) -> None:
        for statement in self._imports():
            with contextlib.suppress(Exception):
                exec(statement.code(self.flags), {})

    def _imports_construct(self, raised: list[list[str]]) -> bool:
        """Whether importing what the page imports already makes something of a dataclass that is to be raised."""
        made: list[str] = []
        for module, kind in {(module, kind) for module, kind, _ in raised}:
            found = getattr(importlib.import_module(module), kind)
            found.__init__ = _noted(found.__init__, made)
        self._import()
        return bool(made)

    def _copy(self, work: Callable[[], Any]) -> Any:
        """What the work gives in a copy of this process; None where the copy died or took too long."""
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(reading)
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.alarm(self.time_limit)
                before = _modules()
                result = work()
                with os.fdopen(writing, "w") as answer:
                    json.dump([result, sorted(_modules() - before)], answer)
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as answer:
            text = answer.read()
        os.waitpid(pid, 0)
        try:
            result, files = json.loads(text)
        except ValueError:
            return None
        self.files |= set(files)
        return result


def _statements(blocks: Iterable[list[Any]]) -> Iterator[_Statement]:
    for index, (source, name, _) in enumerate(blocks):
        name = f"<{name}#{index + 1}>"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            tree = _WithoutAssertions().visit(ast.parse(source))
            yield from (_Statement(index, ast.fix_missing_locations(node), name) for node in tree.body)


class _WithoutAssertions(ast.NodeTransformer):
    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        return ast.copy_location(ast.Pass(), node)


def _modules() -> set[str]:
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return {file for file in files if isinstance(file, str)}


def _noted(build: Callable[..., None], made: list[str]) -> Callable[..., None]:
    @functools.wraps(build)
    def noted(self: object, *values: Any, **named: Any) -> None:
        made.append(type(self).__name__)
        build(self, *values, **named)

    return noted


def _raise_field(kind: type, field: str) -> None:
    """From now on, have a class raise one of its fields: by one, or as little else as it accepts."""
    build: Callable[..., None] = kind.__init__  # type: ignore[misc]
    names = [entry.name for entry in fields(kind) if entry.init]  # type: ignore[arg-type]

    @functools.wraps(build)
    def raised(self: object, *values: Any, **named: Any) -> None:
        build(self, *values, **named)
        stated = getattr(self, field)
        if isinstance(stated, bool) or not isinstance(stated, int | float):
            return
        given = dict(zip(names, values, strict=False)) | named
        for value in (stated + 1, stated * 2, stated + 2, stated - 1, stated / 2):
            with contextlib.suppress(Exception):
                build(self, **given | {field: type(stated)(value)})
                return
        build(self, **given)

    kind.__init__ = raised  # type: ignore[misc]


def digest(value: object) -> str:
    """Names a value, as JSON, in few characters."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
