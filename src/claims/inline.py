"""Inline mark-up: links that claim or cite, math, and the stretches in which a digit is no number of the prose."""

from __future__ import annotations

import heapq
import re

from claims.code import syntax_error
from claims.page import Citation, Claim, Equation, Page

Span = tuple[int, int]

PROSE_OPTIONS = ("title", "alt", "caption", "static")
TOKEN = re.compile(
    r"""(?P<escape>\\[\\`*_{}\[\]()\#+\-.!$|<>~^"'])
    |(?P<comment><!--)
    |(?P<code>`+)
    |(?P<display>\$\$)
    |(?P<math>\$)
    |(?P<footnote>\[\^[^\]\s]+\]:?)
    |(?P<link>!?\[)
    |(?P<raw><(?:script|style)\b)
    |(?P<tag></?[A-Za-z](?:"[^"\n]*"|'[^'\n]*'|[^<>"'])*>)
    |(?P<auto><(?:https?|mailto):[^>\s]*>)
    |(?P<url>\bhttps?://[^\s)\]>]+)
    |(?P<attributes>\{:?[ ]*(?:[\#.]|[\w-]+=)[^{}\n]*\})
    |(?P<entity>&(?:\#\d+|\#x[0-9a-fA-F]+|[A-Za-z]\w*);)
    """,
    re.X,
)
DEFINITION = re.compile(r"^ {0,3}\[(?!\^)[^\]\n]+\]:[ \t]*(?P<target>\S+).*$", re.M)
BLANK = re.compile(r"\n[ \t>]*\n")
SCHEME = re.compile(r"[ \t]*(?P<angle><)?(?P<scheme>claim|cite):")
REFERENCE = re.compile(r"\[[^\]\n]*\]")
CLOSING_ANGLE = re.compile(r">[ \t]*\)")
CLOSING_DOLLAR = re.compile(r"(?<![\\\s])\$(?!\d)")
CLOSING_RAW = re.compile(r"</(?:script|style)>", re.I)
# A code span that is a number.
NUMBER_SPAN = re.compile(r"\s*[≈~<>≤≥−-]?\s*\d[\d,._]*(?:e[+-]?\d+)?\s*(?:[KMGT]i?B|kB|bytes|%)?\s*")
KEY = re.compile(r"[\w:+-]+(?:\.[\w-]+)?")
LONGEST_LINK = 4000


def read(page: Page, hidden: list[Span]) -> list[Span]:
    """Fill in the page's claims, citations and equations; the opaque stretches are returned."""
    inline = _Inline(page)
    at = 0
    for start, end in [*sorted(hidden), (len(page.text), len(page.text))]:
        if at < start:
            inline.definitions(at, start)
            inline.read(at, start)
        at = max(at, end)
    for block in page.blocks:
        for name in PROSE_OPTIONS:
            if name in block.options:
                inline.read(block.options[name].start, block.options[name].end)
    return inline.opaque


class _Inline:
    def __init__(self, page: Page) -> None:
        self.page, self.text = page, page.text
        self.opaque: list[Span] = []
        self.skip: list[Span] = []  # opaque stretches ahead, nearest first

    def read(self, at: int, end: int) -> None:
        while found := TOKEN.search(self.text, at, end):
            while self.skip and self.skip[0][1] <= found.start():
                heapq.heappop(self.skip)
            if self.skip and self.skip[0][0] <= found.start():
                at = heapq.heappop(self.skip)[1]
            else:
                at = self._token(found, end)
        self.skip.clear()

    def definitions(self, start: int, end: int) -> None:
        """``[name]: target`` lines; a claim in one would have no text of its own."""
        for found in DEFINITION.finditer(self.text, start, end):
            self.opaque.append(found.span())
            heapq.heappush(self.skip, found.span())
            if found["target"].strip("<>").startswith(("claim:", "cite:")):
                message = "a claim stands in the link itself, not in a reference definition"
                self.page.problem("bad-expression", *found.span("target"), message)

    def _token(self, found: re.Match[str], end: int) -> int:
        """Take in what a token opens; the offset after it is returned."""
        kind, start, stop = found.lastgroup, found.start(), found.end()
        if kind == "link":
            return self._link(start, stop, end)
        if kind == "code":
            return self._code(start, stop, end)
        if kind in ("math", "display"):
            return self._math(kind == "display", start, stop, end)
        if kind == "comment":
            stop = self._comment(start, stop, end)
        elif kind == "raw":
            close = CLOSING_RAW.search(self.text, stop, end)
            stop = close.end() if close else end
        self.opaque.append((start, stop))
        return stop

    def _comment(self, start: int, stop: int, end: int) -> int:
        close = self.text.find("-->", stop, end)
        if close >= 0:
            return close + 3
        message = "this comment is never closed before the next block or the end of the page"
        if self.text[self.text.rfind("\n", 0, start) + 1 : start].strip():  # else the block structure reported it
            self.page.problem("unrecognised-block", start, stop, message)
        return end

    def _code(self, start: int, stop: int, end: int) -> int:
        """A code span is code, but one that holds nothing besides a number is a number."""
        close = _closing_ticks(self.text, start, stop, end)
        if close is None:
            return stop
        if not NUMBER_SPAN.fullmatch(self.text, stop, close - (stop - start)):
            self.opaque.append((start, close))
        return close

    def _math(self, display: bool, start: int, stop: int, end: int) -> int:
        if display:
            close = self.text.find("$$", stop, end)
            if close < 0:
                self.page.problem("bad-math", start, stop, "this $$ is never closed")
                return stop
        else:
            opens = stop < end and not self.text[stop].isspace()
            found = CLOSING_DOLLAR.search(self.text, stop + 1, min(end, stop + LONGEST_LINK)) if opens else None
            if not found or BLANK.search(self.text, stop, found.start()):
                return stop
            close = found.start()
        after = close + stop - start
        self.opaque.append((start, after))
        self.page.equations.append(Equation(start, after, self.text[stop:close], stop, display))
        return after

    # --- links ---

    def _link(self, start: int, inside: int, end: int) -> int:
        """A link: a claim, a citation, or a target in which digits do not count."""
        bracket = _closing(self.text, inside, end, "[", "]")
        if bracket is None:
            return inside
        if not self.text.startswith("(", bracket + 1):
            if reference := REFERENCE.match(self.text, bracket + 1, end):
                self._skip(*reference.span())
            return inside
        target = bracket + 2
        scheme = SCHEME.match(self.text, target, end)
        close = self._target_end(target, end, scheme)
        if close is None:
            if scheme:
                message = "the link of this claim is never closed"
                self.page.problem("bad-expression", target, min(end, target + 20), message)
            return inside
        if not scheme:
            self._skip(bracket, close + 1)
            return inside
        self.opaque.append((start, close + 1))
        self._bind(scheme, start, (inside, bracket), (target, close))
        return close + 1

    def _skip(self, start: int, end: int) -> None:
        self.opaque.append((start, end))
        heapq.heappush(self.skip, (start, end))

    def _target_end(self, target: int, end: int, scheme: re.Match[str] | None) -> int | None:
        """Where the ``)`` of a link stands. Expressions may compare: the first ``>)`` that leaves one balanced."""
        if not (scheme and scheme["angle"]):
            return _closing(self.text, target, end, "(", ")", quotes=bool(scheme))
        at = scheme.end()
        while close := CLOSING_ANGLE.search(self.text, at, min(end, target + LONGEST_LINK)):
            if BLANK.search(self.text, target, close.start()):
                return None
            if _balanced(self.text[scheme.end() : close.start()]):
                return close.end() - 1
            at = close.start() + 1
        return None

    def _bind(self, scheme: re.Match[str], start: int, literal: Span, target: Span) -> None:
        inner = self.text[scheme.end() : target[1]]
        if scheme["angle"]:
            inner = inner.rstrip()[:-1]
        expression = inner.strip()
        at = scheme.end() + len(inner) - len(inner.lstrip())
        span = (at, at + len(expression))
        outer = (start, target[1] + 1)
        words = self.text[literal[0] : literal[1]]
        shown = expression or "nothing"
        if not scheme["angle"] and re.search(r"\s", inner):
            message = "an expression with spaces needs angle brackets"
            self.page.problem("bad-expression", *span, message, f"write (<{scheme['scheme']}:{expression}>)")
        elif not words.strip():
            self.page.problem("bad-literal", *outer, f"this {scheme['scheme']} link says nothing")
        elif scheme["scheme"] == "cite":
            if KEY.fullmatch(expression):
                self.page.citations.append(Citation(*literal, words, expression, span, outer))
            else:
                self.page.problem("bad-expression", *span, f"{shown} is not the name of a fact or a reference")
        elif message := syntax_error(expression) or "":
            self.page.problem("bad-expression", *span, f"{shown} is not a Python expression: {message}")
        else:
            above = self.page.blocks_above(start)
            self.page.claims.append(Claim("link", *literal, words, expression, span, outer, above))


# --- brackets --------------------------------------------------------------------------------------------------------


def _closing(text: str, at: int, end: int, opening: str, closing: str, quotes: bool = False) -> int | None:
    """The offset of the bracket that closes the one before ``at``; None if a blank line or the end comes first."""
    stops = re.compile(r"[\\\n`\"'\[\]()]")
    depth, end = 1, min(end, at + LONGEST_LINK)
    while found := stops.search(text, at, end):
        char, at = found[0], found.end()
        if char == "\\":
            at += 1
        elif char == "\n":
            if BLANK.match(text, at - 1, end):
                return None
        elif char == "`" and opening == "[":
            at = _closing_ticks(text, at - 1, at, end) or at
        elif char in "\"'" and quotes:
            close = text.find(char, at, end)
            at = close + 1 if close >= 0 and "\n" not in text[at:close] else at
        elif char in (opening, closing):
            depth += 1 if char == opening else -1
            if depth == 0:
                return at - 1
    return None


def _closing_ticks(text: str, start: int, stop: int, end: int) -> int | None:
    """Where the code span ends that the backticks at ``start`` open; None if a blank line or the end comes first."""
    while stop < end and text[stop] == "`":
        stop += 1
    close = re.compile(rf"(?<!`){'`' * (stop - start)}(?!`)").search(text, stop, min(end, stop + LONGEST_LINK))
    if not close or BLANK.search(text, stop, close.start()):
        return None
    return close.end()


def _balanced(text: str) -> bool:
    text = re.sub(r"\"[^\"]*\"|'[^']*'", "", text)
    return text.count("(") == text.count(")") and not re.search(r"[\"']", text)
