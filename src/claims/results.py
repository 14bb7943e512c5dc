"""What a page runs and what came of it, as data: it crosses from process to process as JSON, and is kept so."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Any, Self

ROOM = 80  # characters of a value in a message or a table


class Record:
    """A frozen dataclass that can be written as JSON."""

    def to_json(self) -> dict[str, Any]:
        return {name: _as_json(value) for name, value in vars(self).items()}


def _as_json(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_json()
    if isinstance(value, tuple) and value and isinstance(value[0], Record):
        return [item.to_json() for item in value]
    return value


@dataclass(frozen=True)
class Code(Record):
    """One block of a page. `lines` says for each line of `source` which file and line it came from."""

    source: str
    name: str
    lines: tuple[tuple[str, int], ...]
    run: bool = True
    figures: bool = True
    raises: str | None = None

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        lines = tuple((file, line) for file, line in data["lines"])
        return cls(data["source"], data["name"], lines, data["run"], data["figures"], data["raises"])


@dataclass(frozen=True)
class Expression(Record):
    """An expression to evaluate; `after` counts the blocks above its own place on the page."""

    text: str
    after: int


@dataclass(frozen=True)
class Program(Record):
    """What a page runs and asks; `path` is relative to the root."""

    path: str
    blocks: tuple[Code, ...]
    expressions: tuple[Expression, ...] = ()

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        blocks = tuple(Code.from_json(block) for block in data["blocks"])
        return cls(data["path"], blocks, tuple(Expression(**expression) for expression in data["expressions"]))


@dataclass(frozen=True)
class Value(Record):
    """What an expression gave.

    `kind` is int, fraction, float, decimal, complex, bool, text, tuple, expr (a SymPy expression with free symbols) or
    none. `text` is exact: digits, "n/d", `float.hex()`, `str(Decimal)`, `repr(complex)`, the text itself, or the
    `srepr` of an expr. `shown` is for a reader.
    """

    kind: str
    text: str
    items: tuple[Value, ...] = ()
    shown: str = ""

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        return cls(data["kind"], data["text"], tuple(cls.from_json(item) for item in data["items"]), data["shown"])

    @property
    def brief(self) -> str:
        """What is shown where there is room for one line: a long text or tuple is cut and says how long it is."""
        return brief(self.shown, f"{self._leaves():,} values" if self.items else "")

    def _leaves(self) -> int:
        return sum(item._leaves() for item in self.items) if self.items else 1


@dataclass(frozen=True)
class Failure(Record):
    """Why a block or an expression came to nothing.

    `kind` is error, syntax, timeout, died, output or unbound. `line` indexes the block's lines from 0. `frames` are
    the (file, line, function) of the traceback that lie in the page, in a snippet or in the repository.
    """

    kind: str
    message: str
    line: int | None = None
    frames: tuple[tuple[str, int, str], ...] = ()
    exception: str = ""

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        frames = tuple((file, line, function) for file, line, function in data["frames"])
        return cls(data["kind"], data["message"], data["line"], frames, data["exception"])


@dataclass(frozen=True)
class BlockResult(Record):
    """What became of a block: `status` is ran, raised (as its `raises` says), failed, not-run or static.

    `output` holds standard output and standard error in order. `failure` is set when the block failed, and for a
    raised block it describes the exception that was expected.
    """

    status: str
    output: str = ""
    figures: tuple[str, ...] = ()
    failure: Failure | None = None

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        failure = data["failure"] and Failure.from_json(data["failure"])
        return cls(data["status"], data["output"], tuple(data["figures"]), failure)


@dataclass(frozen=True)
class Evaluation(Record):
    """An expression's value at the end of the page, or why there is none, and `early`, its value at its own place."""

    value: Value | None
    failure: Failure | None = None
    early: Value | None = None

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        return cls(
            data["value"] and Value.from_json(data["value"]),
            data["failure"] and Failure.from_json(data["failure"]),
            data["early"] and Value.from_json(data["early"]),
        )


@dataclass(frozen=True)
class Result(Record):
    """What a page gave.

    `files` are the files of the repository that it opened; a folder that it listed ends in "/". A result is
    `cacheable` if all went well and the page started no process and no connection. `started` is in seconds since 1970.
    """

    blocks: tuple[BlockResult, ...]
    evaluations: tuple[Evaluation, ...] = ()
    files: tuple[str, ...] = ()
    cacheable: bool = False
    seconds: float = 0.0
    started: float = 0.0

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        blocks = tuple(BlockResult.from_json(block) for block in data["blocks"])
        evaluations = tuple(Evaluation.from_json(evaluation) for evaluation in data["evaluations"])
        return cls(blocks, evaluations, tuple(data["files"]), data["cacheable"], data["seconds"], data["started"])

    @property
    def clean(self) -> bool:
        """Whether every block did what it should and every expression has a value."""
        blocks = all(block.status in ("ran", "raised", "static") for block in self.blocks)
        return blocks and all(evaluation.failure is None for evaluation in self.evaluations)


def brief(text: str, size: str = "", room: int = ROOM) -> str:
    """A text cut to ``room`` characters, with its size behind: ``(1, 2, …, 801 values``."""
    if len(text) <= room:
        return text
    return f"{text[:room].rstrip(' ,')}, …, {size}" if size else f"{text[:room].rstrip()}…, {len(text):,} characters"


def death(code: int) -> Failure:
    """A process that ended by itself; `code` is negative for a signal."""
    return Failure("died", f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}")


def timeout(limit: float) -> Failure:
    return Failure("timeout", f"took longer than {limit:g} seconds")
