"""Block structure: which lines are fenced blocks, and what their info strings say.

A block must never be skipped in silence, so whatever looks like one and would not run is a problem of the page.
"""

from __future__ import annotations

import re

from claims.page import Block, Option, Page

LANGUAGES = ("console", "json", "python", "text", "toml", "yaml")
OPTIONS = ("alt", "caption", "hl_lines", "raises", "static", "title")
FLAGS = ("fold", "html")  # shown folded; prints HTML, shown as it is

FENCE = re.compile(r"(?P<prefix>[ \t]*(?:>[ \t]?)*[ \t]*)(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)$")
LIST_FENCE = re.compile(r"[ \t]*(?:[-*+]|\d+[.)])[ \t]+(?P<fence>`{3,}|~{3,})")
ATTRIBUTE = re.compile(
    r"""(?P<name>[\w-]+)=(?P<quote>["'])(?P<value>(?:\\.|(?!(?P=quote)).)*)(?P=quote)|(?P<flag>\S+)"""
)
CONTAINER = re.compile(
    r"(?P<indent>[ \t]*)(?:(?:!!!|\?\?\?\+?|===[!+]?|///)[ \t]?|[-*+][ \t]|\d+[.)][ \t]|\[\^[^\]]+\]:|:[ \t]{1,3}\S)"
)
TAB = 4


def read(page: Page) -> list[tuple[int, int]]:
    """Fill in ``page.blocks``; the spans of all fences are returned, readable or not."""
    return _Fences(page).read()


class _Fences:
    def __init__(self, page: Page) -> None:
        self.page, self.lines, self.starts = page, page.source.lines, page.source.starts
        self.spans: list[tuple[int, int]] = []
        self.pythons = 0
        self.containers: list[int] = []  # indents of the list items, admonitions, tabs that are open

    def read(self) -> list[tuple[int, int]]:
        row = self.page.source.row(self.page.front) if self.page.front else 0
        if self.page.front >= len(self.page.text):
            return self.spans
        after_blank = True
        while row < len(self.lines):
            line = self.lines[row].text
            if line.lstrip().startswith("<!--"):
                row = self._comment(row)
                continue
            found = FENCE.match(line)
            if found and not ("`" in found["info"] and found["fence"][0] == "`"):
                row = self._fence(row, found)
                after_blank = False
                continue
            if listed := LIST_FENCE.match(line):
                self._unrecognised(
                    self.starts[row] + listed.start("fence"),
                    self.starts[row] + len(line),
                    "a fence on a list marker's own line is not a block",
                    "put the fence on the next line, indented by four",
                )
            if line.strip():
                self._indented(row, line, after_blank)
            after_blank = not line.strip()
            row += 1
        return self.spans

    def _unrecognised(self, start: int, end: int, message: str, hint: str = "") -> None:
        self.page.problem("unrecognised-block", start, end, message, hint)

    def _comment(self, row: int) -> int:
        """The row after an HTML comment."""
        last = next((i for i in range(row, len(self.lines)) if "-->" in self.lines[i].text), None)
        if last is None:
            line = self.lines[row].text
            start = self.starts[row] + len(line) - len(line.lstrip())
            self._unrecognised(start, start + 4, "this comment is never closed, so nothing below it would be checked")
            last = len(self.lines) - 1
        return last + 1

    def _indented(self, row: int, line: str, after_blank: bool) -> None:
        """Report an indented code block: nothing would run it."""
        indent = _width(line[: len(line) - len(line.lstrip())])
        opener = CONTAINER.match(line)
        while self.containers and indent <= self.containers[-1] and not (opener and indent == self.containers[-1]):
            self.containers.pop()
        if opener:
            while self.containers and indent <= self.containers[-1]:
                self.containers.pop()
            self.containers.append(indent)
            return
        allowed = self.containers[-1] + TAB if self.containers else 0
        if after_blank and indent >= allowed + TAB:
            start = self.starts[row]
            self._unrecognised(start, start + len(line), "an indented code block is not run", "use a ```python fence")

    def _fence(self, row: int, found: re.Match[str]) -> int:
        """Take in the fence that opens at ``row``; the row after it is returned."""
        start = self.starts[row]
        close = re.compile(rf"[ \t>]*{re.escape(found['fence'])}[ \t]*$")
        last = next((i for i in range(row + 1, len(self.lines)) if close.match(self.lines[i].text)), None)
        if last is None:
            self._unrecognised(
                start + found.start("fence"), start + len(self.lines[row].text), "this fence is never closed"
            )
            last, end = len(self.lines), len(self.page.text)
        else:
            end = self.starts[last] + len(self.lines[last].text)
        self.spans.append((start, end))
        width = _width(found["prefix"])
        cuts, code = [], []
        for i in range(row + 1, last):
            text = self.lines[i].text
            cut = _cut(text, width)
            if text[cut:].strip() and _width(text[:cut]) < width:
                self._unrecognised(
                    self.starts[i], self.starts[i] + len(text), "this line is indented less than its fence"
                )
            cuts.append(cut)
            code.append(text[cut:])
        self._block(found, start, end, row + 1, "\n".join(code), tuple(cuts))
        return last + 1

    def _block(self, found: re.Match[str], start: int, end: int, row: int, code: str, cuts: tuple[int, ...]) -> None:
        info = found["info"]
        language, _, rest = info.strip().partition(" ")
        if found["fence"][0] == "~" or language not in LANGUAGES:
            self._unrecognised(
                start + found.start("fence"),
                start + len(found[0].rstrip()),
                _unknown(found["fence"] + info, language),
                "write ```python to run it, or ```text",
            )
            return
        options, flags = self._options(language, rest, start + found.start("info") + (info.find(rest) if rest else 0))
        number = self.pythons if language == "python" else -1
        self.pythons += language == "python"
        self.page.blocks.append(Block(start, end, found["prefix"], language, options, flags, code, row, cuts, number))

    def _options(self, language: str, rest: str, at: int) -> tuple[dict[str, Option], frozenset[str]]:
        options: dict[str, Option] = {}
        flags: set[str] = set()
        allowed = OPTIONS if language == "python" else ("hl_lines", "title")
        for part in ATTRIBUTE.finditer(rest):
            if part["flag"] in FLAGS and language == "python":
                flags.add(part["flag"])
            elif part["name"] in allowed:
                value = part["value"].replace("\\" + part["quote"], part["quote"])
                options[part["name"]] = Option(value, at + part.start("value"), at + part.end("value"))
            else:
                known = ", ".join(sorted([*allowed, *FLAGS] if language == "python" else allowed))
                message = f"{part['name'] or part['flag']} is no option of a {language} block"
                self.page.problem("bad-option", at + part.start(), at + part.end(), message, f"known: {known}")
        return options, frozenset(flags)


def _unknown(fence: str, language: str) -> str:
    if re.search(r"py", fence, re.I):
        return f"{fence.strip()} looks like Python and would not run"
    if not language:
        return "a block needs a language"
    return f"{fence.strip()} is no block this book knows: {', '.join(LANGUAGES)}"


def _width(space: str) -> int:
    """How many columns a stretch of white space and ``>`` takes."""
    return len(space.expandtabs(TAB))


def _cut(text: str, width: int) -> int:
    """How many characters of a container's prefix, ``width`` columns wide, stand before this line."""
    cut = 0
    while cut < len(text) and text[cut] in " \t>" and _width(text[:cut]) < width:
        cut += 1
    return cut
