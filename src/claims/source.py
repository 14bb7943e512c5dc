"""The text of a page with its snippets in place, and where each line of it came from.

What runs is what is shown, so includes are expanded by pymdownx.snippets itself. A percent notebook (``# %%`` cells in
a Python file) becomes a page too: its Markdown cells are prose, its code cells are blocks.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import markdown
from markdown.preprocessors import Preprocessor
from pymdownx.snippets import SnippetExtension, SnippetMissingError

BOM = "\ufeff"
FRONT_MATTER = re.compile(r"---[ \t]*\r?\n(?P<yaml>.*?\r?\n)?(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.S)
INCLUDE = re.compile(r"^(?P<space>[ \t>]*)-{1,}8<-{1,}(?P<target>[ \t]+(?:\"[^\"]+\"|'[^']+'))?[ \t]*$")


class SourceError(ValueError):
    """The page cannot be read; ``line`` is where, from 1."""

    def __init__(self, message: str, line: int = 1, slug: str = "unreadable") -> None:
        super().__init__(message)
        self.line = line
        self.slug = slug


@dataclass(frozen=True)
class Place:
    """A stretch of one line of a file; lines and columns count from 1, columns in characters, the end is exclusive."""

    path: str
    line: int
    column: int
    end_column: int
    via: str = ""  # where the page includes that file, as "path:line"


@dataclass(frozen=True)
class Line:
    """One line: its text and the file, line and column that it begins at."""

    text: str
    path: str
    number: int
    shift: int = 0  # characters of the file's line that stand before the text
    via: str = ""


@dataclass(frozen=True)
class Source:
    """The expanded text. Lines end in ``\\n``, whatever they end in on disk."""

    path: str
    lines: tuple[Line, ...]
    raw: str = ""  # as on disk

    @cached_property
    def body(self) -> str:
        """What a Markdown engine is given: the raw text without its front matter."""
        found = FRONT_MATTER.match(self.raw)
        return self.raw[found.end() :] if found else self.raw

    @cached_property
    def text(self) -> str:
        return "".join(line.text + "\n" for line in self.lines)

    @cached_property
    def starts(self) -> list[int]:
        starts, at = [], 0
        for line in self.lines:
            starts.append(at)
            at += len(line.text) + 1
        return starts

    def row(self, offset: int) -> int:
        """The index of the line that holds ``offset``."""
        return max(0, bisect_right(self.starts, offset) - 1)

    def place(self, start: int, end: int) -> Place:
        """Where the text from ``start`` to ``end`` stands; what runs over a line's end is cut there."""
        if not self.lines:
            return Place(self.path, 1, 1, 1)
        row = self.row(start)
        line, begin = self.lines[row], self.starts[row]
        column = start - begin + line.shift + 1
        stop = min(end - begin, len(line.text)) + line.shift + 1
        return Place(line.path, line.number, column, max(stop, column), line.via)


def read(root: Path, path: str) -> Source:
    """Read the page at ``root / path``.

    Raises SourceError for a page that is not UTF-8, a loop of links, a missing snippet.
    """
    try:
        raw = (root / path).read_bytes()
    except OSError as error:
        raise SourceError(f"cannot be read: {error.strerror or error}") from None
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise SourceError(f"not UTF-8: byte 0x{raw[error.start]:02x} cannot be read", line) from None
    return from_text(root, path, text)


def from_text(root: Path, path: str, text: str) -> Source:
    """The same for a text already at hand."""
    text = text.removeprefix(BOM)
    lines = [Line(row, path, number) for number, row in enumerate(split_lines(text), 1)]
    if path.endswith(".py"):
        lines = _notebook(lines)
    return Source(path, tuple(_expand(root, lines)), text)


def split_lines(text: str) -> list[str]:
    """The lines as an editor numbers them, without their ends."""
    rows = re.split(r"\r\n|\r|\n", text.removeprefix(BOM))
    return rows[:-1] if rows[-1] == "" else rows


# --- includes --------------------------------------------------------------------------------------------------------


def _preprocessor(root: Path) -> Preprocessor:
    """A fresh one each time, since it remembers which folders exist."""
    md = markdown.Markdown(extensions=[SnippetExtension(base_path=[str(root)], check_paths=True, url_download=False)])
    return md.preprocessors["snippet"]


def _expand(root: Path, lines: list[Line]) -> list[Line]:
    expanded: list[Line] = []
    rows = iter(lines)
    for line in rows:
        found = INCLUDE.match(line.text)
        if not found:
            expanded.append(line)
            continue
        group = [line]
        if found.group("target") is None:  # the block form: one target a line until the marker again
            for row in rows:
                group.append(row)
                if INCLUDE.match(row.text):
                    break
            else:
                raise SourceError("this include is never closed", line.number, "missing-snippet")
        expanded.extend(_included(root, group))
    return expanded


def _included(root: Path, group: list[Line]) -> list[Line]:
    first = group[0]
    quote = first.text[: first.text.rfind(">", 0, first.text.find("-")) + 1]  # pymdownx looks for white space only
    named = [line.text.strip(" \t>") for line in group[1:-1]] or re.findall(r"[\"']([^\"']+)[\"']", first.text)
    target = next((name for name in named if name and not name.startswith(";")), "nothing")
    try:
        texts = _preprocessor(root).run([line.text[len(quote) :] for line in group])
    except (SnippetMissingError, OSError, ValueError, RecursionError) as error:
        raise SourceError(f"snippet {target}: {_reason(error)}", first.number, "missing-snippet") from None
    return list(_origins(root, target.partition(":")[0].strip(), [quote + text for text in texts], first))


def _reason(error: Exception) -> str:
    if isinstance(error, SnippetMissingError):
        return "there is no such file, line or section"
    return str(error) or type(error).__name__


def _origins(root: Path, target: str, texts: list[str], first: Line) -> Iterator[Line]:
    """Find the included lines in the file they came from, so that messages can name its line too."""
    own: list[str] = []
    if (root / target).is_file():
        own = [*split_lines((root / target).read_bytes().decode("utf-8")), ""]
    bare = [text.strip(" \t>") for text in texts]
    stripped = [row.strip() for row in own]
    span = len(bare)
    start = next((i for i in range(len(own) - span + 1) if stripped[i : i + span] == bare), None)
    via = f"{first.path}:{first.number}"
    for index, text in enumerate(texts):
        if start is None:
            yield Line(text, first.path, first.number, 0)
        else:
            indent = len(text) - len(text.lstrip(" \t>"))
            shift = len(own[start + index]) - len(stripped[start + index]) - indent
            yield Line(text, target, start + index + 1, shift, via)


# --- percent notebooks -----------------------------------------------------------------------------------------------

CELL = re.compile(r"^# %%(?:[ \t]+(?P<kind>\[\w+\]))?(?P<options>.*)$")


def _notebook(lines: list[Line]) -> list[Line]:
    """A percent notebook as Markdown: ``# %% [markdown]`` cells lose their ``# ``, the others become python fences.

    A header between ``# ---`` lines above the first cell, where jupytext keeps it, is the front matter.
    """
    cells: list[tuple[Line, str, str, list[Line]]] = []
    header: list[Line] = []
    for line in lines:
        found = CELL.match(line.text)
        if found:
            cells.append((line, found.group("kind") or "", found.group("options").strip(), []))
        elif cells:
            cells[-1][3].append(line)
        else:
            header.append(line)
    page = [_uncomment(line) for line in header] if header and header[0].text.rstrip() == "# ---" else []
    for marker, kind, options, body in cells:
        while body and not body[-1].text.strip():
            body = body[:-1]
        if kind in ("[markdown]", "[md]"):
            page.extend(_uncomment(line) for line in body)
        else:
            page.append(Line(f"```python {options}".rstrip(), marker.path, marker.number, marker.shift))
            page.extend(body)
            page.append(Line("```", marker.path, body[-1].number if body else marker.number))
        page.append(Line("", marker.path, body[-1].number if body else marker.number))
    return page


def _uncomment(line: Line) -> Line:
    found = re.match(r"#[ \t]?", line.text)
    cut = found.end() if found else 0
    return Line(line.text[cut:], line.path, line.number, line.shift + cut, line.via)
