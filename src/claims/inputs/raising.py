"""Raises each input of a page and sees which of its numbers move. This is the far side of `claims.inputs.trace`.

The page runs once as it is, which tells what its statements cost, what random numbers they draw, and which fields of
the watched dataclasses they read. Then it runs statement by statement; where an input stands, a copy of the process is
forked in which that input is raised, and below it only the statements run on which an expression rests that may feel
it. What these alone give is compared first with the page's own values; where it differs, the whole page is run instead.

Seconds of a processor are limited. Inputs that are cheap to raise come first; when the patience is spent, only
expressions that nothing has moved yet are pursued, up to a last limit.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import io
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from claims.inputs.fields import Field, Watched, raise_data, raise_field
from claims.inputs.rerun import Notes, Rerun
from claims.inputs.slices import Slicer

FORK = 0.02  # seconds that a copy of the process takes by itself
DATA = "recorded data"  # the name of what a page reads as JSON
DEAR = 0.5  # seconds to give an expression's value again from which it is not asked for by the way

Task = tuple[int, frozenset[int]]  # an input and the expressions that are asked for when it is raised


@dataclass(frozen=True)
class Input:
    """Something to raise: the literals of one name in one statement, a field of a dataclass, or the data that is read.

    ``at`` is the first statement that it takes part in, ``concerns`` are the expressions that may feel it.
    """

    name: str
    at: int
    concerns: frozenset[int]
    nodes: tuple[ast.Constant, ...] = ()
    field: Field | None = None


@dataclass
class Outcome:
    """For each expression the names that move it, and the inputs that may and were not raised.

    ``unsound`` are the expressions that their slices gave another value than the page.
    """

    moved: list[dict[str, None]]
    open: list[set[int]]
    unsound: set[int] = field(default_factory=set)


def trace(request: str, namespace: dict[str, Any]) -> str:
    """Run the page of a request (JSON, made by ``claims.inputs.trace``) in a namespace.

    The answer is JSON: ``inputs``, the names of what there is to raise, and for each expression an entry of ``moves``:
    the names that move it, with a null behind them if other inputs may and were not raised; or null alone where the
    expression has another value when the page runs again.
    """
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return json.dumps(_Raising(json.loads(request), namespace).trace())


class _Raising:
    def __init__(self, wanted: dict[str, Any], namespace: dict[str, Any]) -> None:
        self.page = Rerun(wanted["blocks"], [entry[:2] for entry in wanted["asked"]], namespace)
        self.constant = {index for index, entry in enumerate(wanted["asked"]) if entry[2]}
        self.limit, (self.patience, self.last) = wanted["time_limit"], wanted["patience"]
        self.kinds = wanted["fields"]
        self.same: set[int] = set()
        self.inputs: list[Input] = []
        self.outcome = Outcome([{} for _ in wanted["asked"]], [set() for _ in wanted["asked"]])

    def trace(self) -> dict[str, Any]:
        if first := self.page.copy(self._first, self.last):
            notes, watched = first
            self.same = {index for index, sign in enumerate(notes.signs) if sign == "="}
            self.seconds, self.slices = notes.seconds, self._slices(notes)
            self.inputs = [*self._fields(watched), *self._data(watched), *self._literals()]
            if not watched.imported:
                self.page.import_all()
            self._raise_all()
        names = list(dict.fromkeys(entry.name for entry in self.inputs))
        moves = [
            [*sorted(moved, key=names.index), *([None] if self.outcome.open[index] else [])]
            if index in self.same
            else None
            for index, moved in enumerate(self.outcome.moved)
        ]
        return {"inputs": names, "moves": moves}

    # --- what there is to raise ---

    def _first(self) -> tuple[Notes, Watched]:
        watched = Watched(self.page.statements)
        for module, kind, names in self.kinds:
            watched.watch(module, kind, names)
        watched.watch_data()
        return self.page.first(watched.begin), watched

    def _slices(self, notes: Notes) -> list[frozenset[int]]:
        """The statements that each expression rests on."""
        statements = self.page.statements
        drawing = [index for index, statement in enumerate(statements) if statement.draws]
        slicer = Slicer([statement.node for statement in statements], drawing)
        for index, unseeded in enumerate(notes.random):
            if unseeded is not None:
                slicer.draws(index, unseeded)
        return [slicer.slice(text) for text, _ in self.page.asked]

    def _fields(self, watched: Watched) -> Iterator[Input]:
        below = len(self.page.statements)
        for entry, at in watched.made.items():
            reading = watched.reading(entry)
            concerns = {index for index in self.same if below + index in reading or self.slices[index] & reading}
            yield Input(f"{entry[1]}.{entry[2]}", at, frozenset(concerns), field=entry)

    def _data(self, watched: Watched) -> Iterator[Input]:
        if watched.data:
            concerns = (index for index in self.same if self.slices[index] & watched.data)
            yield Input(DATA, min(watched.data), frozenset(concerns))

    def _literals(self) -> Iterator[Input]:
        for at, statement in enumerate(self.page.statements):
            concerns = frozenset(index for index in self.same if at in self.slices[index])
            for name, nodes in literals(statement.node).items():
                yield Input(name, at, concerns, tuple(nodes))

    # --- raising ---

    def _raise_all(self) -> None:
        tasks = [task for number in range(len(self.inputs)) for task in self._tasks(number)]
        for number, asked in tasks:
            for index in asked:
                self.outcome.open[index].add(number)
        if idle := frozenset(index for index in self.same - self.constant if not self.outcome.open[index]):
            self._sound(self._slice(idle), idle)
        left = self.patience
        self._pass([task for task in sorted(tasks, key=self._cost) if (left := left - self._cost(task)) >= 0])
        for number, entry in enumerate(self.inputs):
            if len(entry.nodes) > 1:  # so far raised together
                for index in (index for index in entry.concerns if not self.outcome.moved[index]):
                    self.outcome.open[index].add(number)
        self._pursue(2)
        if unsound := frozenset(self.outcome.unsound):
            for index in unsound:
                self.outcome.open[index] |= set(range(len(self.inputs)))
            every = [(number, unsound) for number in range(len(self.inputs))]
            dear = len(every) * (FORK + sum(self.seconds)) > self.patience
            self._pass(every, whole=True, unmoved=dear)

    def _tasks(self, number: int) -> Iterator[Task]:
        """What an input concerns, the expressions apart that take long."""
        concerns = self.inputs[number].concerns
        dear = frozenset(index for index in concerns if self._cost((number, frozenset({index}))) > DEAR)
        yield from ((number, asked) for asked in (concerns - dear, dear) if asked)

    def _cost(self, task: Task) -> float:
        number, asked = task
        return FORK + sum(self.seconds[index] for index in self._slice(asked) if index >= self.inputs[number].at)

    def _slice(self, asked: Iterable[int]) -> frozenset[int]:
        return frozenset().union(*(self.slices[index] for index in asked))

    def _pursue(self, most: int) -> None:
        """Raise, for each expression that nothing has moved, so many inputs that may, and more as long as needed."""
        tasks: dict[int, set[int]] = {}
        for index in self.same - self.constant - self.outcome.unsound:
            if not self.outcome.moved[index]:
                alone = frozenset({index})
                costs = {number: self._cost((number, alone)) for number in self.outcome.open[index]}
                for number in sorted(costs, key=lambda number: (costs[number], number))[:most]:
                    tasks.setdefault(number, set()).add(index)
        if tasks and most < 4 * len(self.inputs) and self.page.spent() < self.last:
            self._pass([(number, frozenset(asked)) for number, asked in tasks.items()], unmoved=True)
            self._pursue(2 * most)

    def _pass(self, tasks: list[Task], whole: bool = False, unmoved: bool = False) -> None:
        """Run the page and raise inputs on the way.

        ``whole`` runs the whole page for each. ``unmoved`` leaves out expressions that have moved.
        """
        if tasks:
            done = self.page.copy(lambda: self._run(tasks, whole, unmoved), self.last)
            self.outcome = done or self.outcome

    def _run(self, tasks: list[Task], whole: bool, unmoved: bool) -> Outcome:
        everything = frozenset(range(len(self.page.statements)))
        needed = everything if whole else self._slice(index for _, asked in tasks for index in asked)
        places = {task: self.inputs[task[0]].at for task in tasks}
        checked: dict[frozenset[int], frozenset[int]] = {}
        for at in range(max(places.values()) + 1):
            for number, asked in sorted((task for task in tasks if places[task] == at), key=lambda task: task[0]):
                if unmoved:
                    asked = frozenset(index for index in asked if not self.outcome.moved[index])
                rest = frozenset(index for index in (everything if whole else self._slice(asked)) if index >= at)
                if asked and not whole:
                    asked = checked[asked] if asked in checked else checked.setdefault(asked, self._sound(rest, asked))
                if asked and self.page.spent() < self.last:
                    self._raise(number, rest, asked, alone=unmoved)
            if at in needed:
                self.page.run(at)
        return self.outcome

    def _sound(self, rest: frozenset[int], asked: frozenset[int]) -> frozenset[int]:
        """Those of these expressions to which these statements alone give the page's own values."""
        signs = self.page.copy(lambda: self.page.rest(rest, sorted(asked)), self.limit) or "?" * len(asked)
        sound = frozenset(index for index, sign in zip(sorted(asked), signs, strict=True) if sign == "=")
        self.outcome.unsound |= asked - sound
        return sound

    def _raise(self, number: int, rest: frozenset[int], asked: frozenset[int], alone: bool) -> None:
        """Raise an input in one way after the other, as long as an expression has not moved that may in the next."""
        entry = self.inputs[number]
        left = sorted(asked)
        for change, last in _ways(entry, alone):
            if self.page.spent() > self.last:
                return
            signs = self.page.copy(functools.partial(self._changed, change, rest, left), self.limit)
            signs = signs or "?" * len(left)
            for index, sign in zip(left, signs, strict=True):
                if sign == "!":
                    self.outcome.moved[index][entry.name] = None
            left = [index for index, sign in zip(left, signs, strict=True) if sign == "?" or (sign == "=" and not last)]
            if not left:
                break
        for index in asked:
            self.outcome.open[index].discard(number)

    def _changed(self, change: Callable[[], None], rest: Iterable[int], asked: Iterable[int]) -> str:
        change()
        return self.page.rest(rest, asked)


def _ways(entry: Input, alone: bool) -> Iterator[tuple[Callable[[], None], bool]]:
    """The ways to raise an input, each with whether an expression that did not feel it will feel none of the others.

    Several literals are raised together, which leaves their differences and ratios: so they are doubled as well, and
    where each shall be tried ``alone``, one after the other.
    """
    if entry.field:
        yield functools.partial(raise_field, *entry.field), True
        yield functools.partial(raise_field, *entry.field, doubled=True), True
        return
    if not entry.nodes:
        yield raise_data, True
        return
    several = len(entry.nodes) > 1
    yield functools.partial(_set, entry.nodes, lambda value: value + 1), not several
    yield functools.partial(_set, entry.nodes, lambda value: value * 2), not (several and alone)
    yield functools.partial(_set, entry.nodes, lambda value: value - 1), not (several and alone)
    if several and alone:
        for node in entry.nodes:
            yield functools.partial(_set, (node,), lambda value: value + 1), False


def _set(nodes: Iterable[ast.Constant], change: Callable[[float], float]) -> None:
    for node in nodes:
        node.value = change(node.value)  # type: ignore[arg-type]


# --- which literals there are -----------------------------------------------------------------------------------------


def literals(statement: ast.stmt) -> dict[str, list[ast.Constant]]:
    """The numeric literals that a statement assigns or passes by keyword, outside functions and subscripts, by name."""
    found: dict[str, list[ast.Constant]] = {}
    seen: set[ast.AST] = set()
    for name, node in _assigned(statement):
        for part in _shallow(node):
            if isinstance(part, ast.Constant) and type(part.value) in (int, float) and part not in seen:
                seen.add(part)
                found.setdefault(name, []).append(part)
    return found


def _assigned(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """``(name, value)`` of each keyword argument and each assignment, the keywords first since they lie deeper."""
    nodes = list(_shallow(statement))
    for node in nodes:
        if isinstance(node, ast.keyword) and node.arg:
            yield node.arg, node.value
    for node in nodes:
        if isinstance(node, ast.Assign):
            yield from _pairs(node.targets[0], node.value)
        elif isinstance(node, ast.AnnAssign) and node.value:
            yield from _pairs(node.target, node.value)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for one, other in zip(target.elts, value.elts, strict=True):
            yield from _pairs(one, other)
    else:
        yield ast.unparse(target), value


def _shallow(node: ast.AST) -> Iterator[ast.AST]:
    """A node and what is in it, but for functions, classes and subscripts."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda | ast.JoinedStr):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(node, ast.Subscript) and child is node.slice):
            yield from _shallow(child)
