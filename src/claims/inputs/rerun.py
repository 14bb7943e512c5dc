"""Runs the statements of a page again, in copies of this process, and notes what the first run does."""

from __future__ import annotations
import __future__

import ast
import contextlib
import hashlib
import json
import linecache
import os
import pickle
import random
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from math import ceil
from types import CodeType
from typing import Any

from claims.code import UNREADABLE
from claims.values import describe


@dataclass
class Statement:
    """A top-level statement of a block."""

    block: int
    node: ast.stmt
    name: str  # of the block's code
    draws: bool  # whether its block draws a figure

    def code(self, flags: int) -> CodeType:
        return compile(ast.Module([self.node], []), self.name, "exec", flags=flags, dont_inherit=True)


@dataclass
class Notes:
    """What the first run gave: the signs, and for each statement its seconds and whether it drew random numbers.

    ``random`` is True for a statement that drew numbers, False for one that seeded before it drew, else None.
    """

    signs: str = ""
    seconds: list[float] = field(default_factory=list)
    random: list[bool | None] = field(default_factory=list)


class Rerun:
    """The statements of a page and a namespace to run them in."""

    def __init__(self, blocks: list[list[Any]], asked: list[list[str]], namespace: dict[str, Any]) -> None:
        """``blocks`` are ``[source, name, must raise, draws]``, ``asked`` are ``[expression, digest of its value]``."""
        self.namespace, self.asked = namespace, asked
        self.statements = list(_statements(blocks))
        self.flags = 0
        for node in (entry.node for entry in self.statements):
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                self.flags |= sum(getattr(__future__, alias.name).compiler_flag for alias in node.names)
        self.ending = {index for index, block in enumerate(blocks) if block[2]}
        self.before = 0.0
        self.ended: set[int] = set()  # of the blocks that must raise, those that did

    def run(self, at: int) -> None:
        """Run a statement; one that raises is left at that, and ends its block only if that block must raise."""
        statement = self.statements[at]
        if statement.block in self.ended:
            return
        try:
            exec(statement.code(self.flags), self.namespace)
        except BaseException:
            self.ended |= self.ending & {statement.block}

    def sign(self, index: int) -> str:
        """``=`` where an expression has its own value, ``!`` where it has another, ``?`` where it has none."""
        text, expected = self.asked[index]
        try:
            code = compile(text.strip(), "<expression>", "eval", flags=self.flags, dont_inherit=True)
            value = describe(eval(code, dict(self.namespace)))
        except BaseException:
            return "?"
        return "=" if digest(value.to_json()) == expected else "!"

    def rest(self, statements: Iterable[int], asked: Iterable[int]) -> str:
        """Run these statements, in order, and give the signs of these expressions."""
        for index in sorted(statements):
            self.run(index)
        return "".join(map(self.sign, asked))

    def first(self, begin: Callable[[int], None]) -> Notes:
        """Run the page as it is and note what it does; ``begin`` is told each statement, then each expression."""
        notes, generators = Notes(), _Generators()
        for index in range(len(self.statements)):
            begin(index)
            started = time.process_time()
            generators.begin()
            self.run(index)
            notes.random.append(generators.end())
            notes.seconds.append(time.process_time() - started)
        for index in range(len(self.asked)):
            begin(len(self.statements) + index)
            notes.signs += self.sign(index)
        return notes

    def import_all(self) -> None:
        """Import what the page imports, so that no copy has to."""
        for statement in self.statements:
            if isinstance(statement.node, ast.Import | ast.ImportFrom):
                with contextlib.suppress(Exception):
                    exec(statement.code(self.flags), {})

    def spent(self) -> float:
        """Seconds of a processor that this process, those it was copied from and those it waited for took."""
        import resource  # not on Windows, where nothing forks either

        used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return self.before + sum(usage.ru_utime + usage.ru_stime for usage in used)

    def copy(self, work: Callable[[], Any], limit: float) -> Any:
        """What the work gives in a copy of this process; None where the copy died or took more seconds than this."""
        reading, writing = os.pipe()
        state, before = random.getstate(), self.spent()  # which are forgotten in a forked process
        pid = os.fork()
        if pid == 0:
            try:
                random.setstate(state)
                self.before = before
                os.close(reading)
                signal.signal(signal.SIGPROF, signal.SIG_DFL)
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.setitimer(signal.ITIMER_PROF, limit)
                signal.alarm(ceil(10 * limit))  # it may wait, or share its processor
                result = work()
                with os.fdopen(writing, "wb") as answer:
                    pickle.dump(result, answer)
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as answer:
            data = answer.read()
        os.waitpid(pid, 0)
        try:
            return pickle.loads(data)
        except (EOFError, pickle.UnpicklingError):
            return None


class _Generators:
    """Watches the random generators that statements share."""

    def __init__(self) -> None:
        self.state: object = None
        self.seeded: bool | None = None
        if torch := sys.modules.get("torch"):
            seed = torch.manual_seed

            def noted(value: int) -> Any:
                self._use(seeding=True)
                return seed(value)

            torch.manual_seed = noted  # type: ignore[attr-defined]

    def begin(self) -> None:
        self.state, self.seeded = self._state(), None

    def end(self) -> bool | None:
        """Whether the statement drew numbers that it had not seeded; None if it drew and seeded none."""
        self._use(seeding=False)
        return None if self.seeded is None else not self.seeded

    def _use(self, seeding: bool) -> None:
        if self.seeded is None and (seeding or self._state() != self.state):
            self.seeded = seeding and self._state() == self.state

    def _state(self) -> object:
        numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
        return (
            random.getstate(),
            torch and torch.get_rng_state().numpy().tobytes(),
            numpy and numpy.random.get_state()[1].tobytes() + bytes(str(numpy.random.get_state()[2]), "ascii"),
        )


def _statements(blocks: Iterable[list[Any]]) -> Iterator[Statement]:
    for index, (source, name, _, draws) in enumerate(blocks):
        name = f"<{name}#{index + 1}>"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        with contextlib.suppress(*UNREADABLE):
            tree = _WithoutAssertions().visit(ast.parse(source))
            yield from (Statement(index, ast.fix_missing_locations(node), name, draws) for node in tree.body)


class _WithoutAssertions(ast.NodeTransformer):
    """Leaves out the assertions of a page, but for those of its functions, whose failure may be what is counted."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        return ast.copy_location(ast.Pass(), node)


def digest(value: object) -> str:
    """Names a value, as JSON, in few characters."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
