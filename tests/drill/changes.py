"""What the drill may change: one digit of a number, or one operator of a formula, at a place drawn by chance."""

from __future__ import annotations

import io
import random
import re
import tokenize
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from claims.project import Project

SHARES = {"formula": 6, "code": 10, "models": 4, "prose": 14, "fact": 4, "snippet": 4, "figure": 8}  # of fifty

NUMBER = re.compile(r"(?<![\w.])(?<!--)\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][+-]?\d+)?")
FIGURE = re.compile(r"^(?P<fence>`{3,})python [^\n]*\balt=.*?^(?P=fence)$", re.M | re.S)
PROGRAM = re.compile(r"^(?P<fence>`{3,})python(?P<info>[^\n]*)\n(?P<code>.*?)^(?P=fence)$", re.M | re.S)
FACT = re.compile(r"^\[(?P<key>[\w.-]+)\]\n(?:(?!\[).*\n?)*", re.M)
SKIPPED = re.compile(  # commands, and readers of files, whose numbers no page speaks of
    r"^(__main__|ablate/\w+|atlas|audit|check\w*|config_json|config_keys|emblem|formula|model_types|mutation|onefile|"
    r"parity|pretrained|site_assets|training)\.py$"
)
OPPOSITE = {"+": "-", "-": "+", "*": "+"}


@dataclass(frozen=True)
class Change:
    """``text[start:end]`` of a file becomes ``new``."""

    kind: str
    path: str
    text: str
    start: int
    end: int
    new: str

    @property
    def old(self) -> str:
        return self.text[self.start : self.end]

    @property
    def line(self) -> int:
        return self.text.count("\n", 0, self.start) + 1

    @property
    def before(self) -> str:
        """Its line, up to it."""
        return self.text[self.text.rfind("\n", 0, self.start) + 1 : self.start]

    def applied(self, new: str | None = None) -> str:
        return f"{self.text[: self.start]}{self.new if new is None else new}{self.text[self.end :]}"

    def within(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """What matches a pattern and holds the change."""
        return next((found for found in pattern.finditer(self.text) if found.start() <= self.start < found.end()), None)

    def program(self) -> tuple[str, int]:
        """The Python text that it stands in, and where in the file that begins; an empty text for other places."""
        if self.path.endswith(".py"):
            return self.text, 0
        found = self.within(PROGRAM) if self.path.endswith(".md") else None
        return (found["code"], found.start("code")) if found and found.start("code") <= self.start else ("", 0)

    def token(self) -> int | None:
        """The kind of Python token that it stands in."""
        text, at = self.program()
        return next((kind for kind, _, start, end in tokens(text) if start <= self.start - at < end), None)

    def fact(self) -> tuple[str, str]:
        """The key of the recorded fact and the field that it changes."""
        found = self.within(FACT)
        return (found["key"], self.before.partition("=")[0].strip()) if found else ("", "")

    def __str__(self) -> str:
        after = self.text[self.end : self.end + 20].partition("\n")[0]
        return f"{self.path}:{self.line}: {self.before[-30:].lstrip()}[{self.old} -> {self.new}]{after}"


def changes(project: Project, seed: int) -> Iterator[Change]:
    """Changes without end, of all kinds by their shares; the seed decides."""
    chance = random.Random(seed)
    places = {kind: list(find(project)) for kind, find in PLACES.items()}
    while True:
        kinds = [kind for kind, share in SHARES.items() for _ in range(share)]
        chance.shuffle(kinds)
        for kind in kinds:
            path, start, end = chance.choice(places[kind])
            text = (project.root / path).read_text("utf-8")
            yield Change(kind, path, text, start, end, altered(text[start:end], chance))


def altered(old: str, chance: random.Random) -> str:
    """Another operator, or the number with another digit at one place."""
    if old in OPPOSITE:
        return OPPOSITE[old]
    at = chance.choice([index for index, char in enumerate(old) if char.isdigit()])
    digits = "123456789" if at == 0 and len(old) > 1 else "0123456789"
    return old[:at] + chance.choice([digit for digit in digits if digit != old[at]]) + old[at + 1 :]


# --- places ----------------------------------------------------------------------------------------------------------

Place = tuple[str, int, int]


def numbers(project: Project, names: list[str], within: re.Pattern[str] | None = None) -> Iterator[Place]:
    """Where the files have numbers; only within what a pattern matches, if one is given."""
    for name in names:
        text = (project.root / name).read_text("utf-8")
        spans = [found.span() for found in within.finditer(text)] if within else [(0, len(text))]
        for span in spans:
            yield from ((name, *found.span()) for found in NUMBER.finditer(text, *span))


def formula(project: Project) -> Iterator[Place]:
    """The operators and numbers of the formulas in budget.py."""
    name = "src/decoder/budget.py"
    text = (project.root / name).read_text("utf-8")
    first, last = text.index("# --- Parameters."), text.index("@cache")
    for kind, string, start, end in tokens(text):
        if first <= start < last and (kind == tokenize.NUMBER or string in OPPOSITE):
            yield name, start, end


def tokens(text: str) -> Iterator[tuple[int, str, int, int]]:
    """Kind, text, start and end of each token of a Python text; a broken one ends them early."""
    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    with suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(io.StringIO(text).readline) if text else ():
            (row, column), (last_row, last_column) = token.start, token.end
            if last_row <= len(starts):
                yield token.type, token.string, starts[row - 1] + column, starts[last_row - 1] + last_column


def files(project: Project, pattern: str) -> list[str]:
    found = (path.relative_to(project.root) for path in project.root.glob(pattern))
    return sorted(path.as_posix() for path in found if not any(part.startswith(".") for part in path.parts))


def modules(project: Project) -> list[str]:
    return [
        name for name in files(project, "src/decoder/**/*.py") if not SKIPPED.match(name.removeprefix("src/decoder/"))
    ]


def texts(project: Project) -> list[str]:
    return [name for name in project.pages() if name.endswith(".md")]


PLACES: dict[str, Callable[[Project], Iterator[Place]]] = {
    "formula": formula,
    "code": lambda project: numbers(project, modules(project)),
    "models": lambda project: numbers(project, ["src/decoder/released.json"]),
    "prose": lambda project: numbers(project, texts(project)),
    "fact": lambda project: numbers(project, [project.facts]),
    "snippet": lambda project: numbers(project, files(project, "snippets/*/*.*")),
    "figure": lambda project: numbers(project, texts(project), FIGURE),
}
