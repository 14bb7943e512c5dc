"""A page as data: its blocks, claims, citations, equations and loose numbers, each with its exact span.

Offsets are into ``Page.text``, the text with its snippets in place; ``Page.place`` turns a span into the file, line
and column that an author can open. ``claims.parse`` makes a Page of a source text; nothing here runs.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cached_property

from claims.code import bindings, names_in
from claims.source import Place, Source


@dataclass(frozen=True)
class Problem:
    """Something wrong with the page's own text, found without running it."""

    slug: str
    start: int
    end: int
    message: str
    hint: str = ""


@dataclass(frozen=True)
class Option:
    """``name="value"`` of an info string; ``start`` is where the value begins."""

    value: str
    start: int
    end: int


@dataclass(frozen=True)
class Block:
    """A fenced block. ``code`` is dedented: its line ``i`` is row ``row + i`` of the source, less ``cuts[i]``."""

    start: int
    end: int
    prefix: str  # what stands before the fence on its line
    language: str
    options: dict[str, Option]
    flags: frozenset[str]
    code: str
    row: int
    cuts: tuple[int, ...]
    number: int = -1  # its number among the page's python blocks, from 0

    @property
    def runs(self) -> bool:
        return "static" not in self.options

    def option(self, name: str) -> str | None:
        return self.options[name].value if name in self.options else None


@dataclass(frozen=True)
class Claim:
    """A literal bound to an expression. ``start``–``end`` is the literal, ``outer`` the whole mark-up.

    ``kind`` says where it stands: link, comment, math (``\\claim``) or chain (two sides of an equation).
    """

    kind: str
    start: int
    end: int
    literal: str
    expression: str
    expression_at: tuple[int, int]
    outer: tuple[int, int]
    after: int  # number of python blocks above it
    optional: bool = False  # a side of an equation whose name the page may not define


@dataclass(frozen=True)
class Citation:
    """A literal, or words, bound to a recorded fact or a reference."""

    start: int
    end: int
    literal: str
    key: str
    key_at: tuple[int, int]
    outer: tuple[int, int]


@dataclass(frozen=True)
class Equation:
    """Math on the page: ``tex`` without its dollar signs."""

    start: int
    end: int
    tex: str
    tex_at: int
    display: bool


@dataclass(frozen=True)
class Loose:
    """A number that nothing binds."""

    start: int
    end: int
    text: str
    where: str  # prose, math, comment, output


@dataclass(frozen=True)
class Waiver:
    """A number that the page's front matter lets stand, and why. ``kind`` is waive or constant."""

    kind: str
    text: str
    reason: str
    start: int
    end: int


@dataclass
class Page:
    """Everything the checker knows of a page before running it."""

    source: Source
    front: int = 0  # where the body begins
    meta: dict = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    citations: list[Citation] = field(default_factory=list)
    equations: list[Equation] = field(default_factory=list)
    loose: list[Loose] = field(default_factory=list)
    waivers: list[Waiver] = field(default_factory=list)
    opaque: list[tuple[int, int]] = field(default_factory=list)  # blocks, mark-up, targets: what is not running text
    problems: list[Problem] = field(default_factory=list)

    @property
    def path(self) -> str:
        return self.source.path

    @cached_property
    def text(self) -> str:
        return self.source.text

    @cached_property
    def python(self) -> list[Block]:
        """The blocks that run, or would but for ``static``; not to be asked for before all blocks are in."""
        return [block for block in self.blocks if block.language == "python"]

    @cached_property
    def _python_starts(self) -> list[int]:
        return [block.start for block in self.python]

    def blocks_above(self, offset: int) -> int:
        """How many python blocks begin above an offset."""
        return bisect_left(self._python_starts, offset)

    def place(self, start: int, end: int) -> Place:
        return self.source.place(start, end)

    def problem(self, slug: str, start: int, end: int, message: str, hint: str = "") -> None:
        self.problems.append(Problem(slug, start, end, message, hint))

    @cached_property
    def bound_rows(self) -> dict[str, tuple[int, Block]]:
        """For each name that blocks bind, the source row where it was bound last, and the block."""
        bound: dict[str, tuple[int, Block]] = {}
        for block in self.python:
            for name, row in bindings(block.code).items():
                if row < len(block.cuts):
                    bound[name] = (block.row + row, block)
        return bound

    def binding(self, expression: str) -> tuple[Place, Block] | None:
        """Where, and in which block, the page last binds a name of an expression."""
        found = [self.bound_rows[name] for name in names_in(expression) if name in self.bound_rows]
        if not found:
            return None
        row, block = max(found, key=lambda pair: pair[0])
        begin = self.source.starts[row]
        return self.place(begin, begin + 1), block
