"""The numbers of a page that no link binds: in formulas, in comments, in typed output, and loose in the prose."""

from __future__ import annotations

import re
from bisect import bisect_left

from claims.code import comments, statement_ends, syntax_error
from claims.equations import Part, split_equation
from claims.inline import PROSE_OPTIONS, Span
from claims.lexicon import Lexicon
from claims.page import Block, Claim, Equation, Loose, Page

COMMENT = re.compile(r"#\s*(?P<sign>=|≈|<|≤|>|≥)\s*(?P<literal>\S.*?)\s*$")
# Numbered lists and headings.
STRUCTURE = re.compile(r"^[ \t>]*\d+[.)](?=[ \t])|^#{1,6}[ \t]+\d+(?:\.\d+)*\.?(?=[ \t])", re.M)
PROMPT = re.compile(r"\s*(?:\$|>|PS>) ")
BLOT = "\x00"  # stands for a character that is not prose


def read(page: Page, lexicon: Lexicon, hidden: list[Span], opaque: list[Span]) -> None:
    """Fill in the claims of formulas and comments, and ``page.loose``."""
    numbers = _Numbers(page, lexicon)
    for block in page.blocks:
        numbers.block(block)
    for equation in page.equations:
        for part in split_equation(equation.tex):
            numbers.part(equation, part)
    numbers.prose(hidden, opaque)


class _Numbers:
    def __init__(self, page: Page, lexicon: Lexicon) -> None:
        self.page, self.lexicon = page, lexicon

    def block(self, block: Block) -> None:
        self._highlight(block)
        if block.language == "python":
            self._comments(block)
        elif block.language in ("text", "console"):
            for row, line in enumerate(block.code.split("\n") if block.cuts else []):
                if not (block.language == "console" and PROMPT.match(line)):
                    self._loose(line, self._at(block, row), "output")

    def _at(self, block: Block, row: int) -> int:
        return self.page.source.starts[block.row + row] + block.cuts[row]

    def _highlight(self, block: Block) -> None:
        option = block.options.get("hl_lines")
        if not option:
            return
        rows = block.code.split("\n")
        for found in re.finditer(r"\S+", option.value):
            span = (option.start + found.start(), option.start + found.end())
            ends = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", found[0])
            if not ends:
                message = f"hl_lines holds line numbers and ranges, not {found[0]}"
                self.page.problem("stale-highlight", *span, message)
                continue
            first, last = int(ends[1]), int(ends[2] or ends[1])
            wrong = first if not 1 <= first <= len(rows) else last
            if not 1 <= first <= last <= len(rows):
                message = f"line {wrong} is highlighted, the block has {len(rows)}"
                self.page.problem("stale-highlight", *span, message)
            elif blank := next((i for i in range(first, last + 1) if not rows[i - 1].strip()), None):
                self.page.problem("stale-highlight", *span, f"line {blank} is highlighted and blank")

    def _comments(self, block: Block) -> None:
        """``# = 131,072`` behind an expression is a claim; any other number in a comment is loose."""
        statements: dict[int, str] | None = None
        for row, column, comment in comments(block.code):
            at = self._at(block, row) + column
            found = COMMENT.match(comment)
            if not found:
                self._loose(comment, at, "comment")
                continue
            start = at + found.start("literal" if found["sign"] == "=" else "sign")
            span = (start, at + found.end("literal"))
            statements = statement_ends(block.code) if statements is None else statements
            expression = statements.get(row)
            if not block.runs or expression is None:
                message = "no expression or plain assignment ends on this line, so nothing binds this comment"
                self.page.problem("bad-expression", *span, message)
                continue
            literal = self.page.text[slice(*span)]
            self.page.claims.append(Claim("comment", *span, literal, expression, span, span, block.number + 1))

    def part(self, equation: Equation, part: Part) -> None:
        span = (equation.tex_at + part.start, equation.tex_at + part.end)
        if part.kind == "number":
            if not self.lexicon.bare(part.text):
                self.page.loose.append(Loose(*span, part.text, "math"))
        elif message := syntax_error(part.expression):
            shown = part.expression or "nothing"
            self.page.problem("bad-expression", *span, f"{shown} is not a Python expression: {message}")
        else:
            kind = "math" if part.kind == "claim" else "chain"
            above = self.page.blocks_above(span[0])
            claim = Claim(kind, *span, part.text, part.expression, span, span, above, part.optional)
            self.page.claims.append(claim)

    def prose(self, hidden: list[Span], opaque: list[Span]) -> None:
        masked = _blot(self.page.text, sorted([*hidden, *opaque]))
        self._loose(STRUCTURE.sub(lambda found: BLOT * len(found[0]), masked), 0, "prose")
        ordered = sorted(opaque)
        starts = [start for start, _ in ordered]
        for block in self.page.blocks:
            for option in [block.options[name] for name in PROSE_OPTIONS if name in block.options]:
                inside = ordered[bisect_left(starts, option.start) : bisect_left(starts, option.end)]
                text = self.page.text[option.start : option.end]
                own = [(start - option.start, end - option.start) for start, end in inside]
                self._loose(_blot(text, own), option.start)

    def _loose(self, text: str, at: int, where: str = "prose") -> None:
        for start, end in self.lexicon.loose(text):
            self.page.loose.append(Loose(at + start, at + end, text[start:end].strip(BLOT), where))


def _blot(text: str, spans: list[Span]) -> str:
    """The text with every character of the spans, which are sorted, blotted out but for line ends."""
    parts, at = [], 0
    for start, end in spans:
        start = max(start, at)
        if start < end:
            parts += [text[at:start], "\n".join(BLOT * len(line) for line in text[start:end].split("\n"))]
            at = end
    return "".join([*parts, text[at:]])
