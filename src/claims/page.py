"""A page as data: its blocks, claims, citations, equations and loose numbers, each with its exact span.

Nothing runs here. Offsets are into ``Page.text``, the text with its snippets in place; ``Page.place`` turns a span into the file, line
and column that an author can open.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from claims import source
from claims.equations import Part, split_equation
from claims.lexicon import Lexicon
from claims.source import Place, Source

LANGUAGES = frozenset({"python", "text", "console", "toml", "json", "yaml"})
OPTIONS = frozenset({"title", "hl_lines", "raises", "alt", "caption", "static"})
PROSE_OPTIONS = ("title", "alt", "caption", "static")


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


@dataclass(frozen=True)
class Block:
    """A fenced block. ``code`` is dedented; line ``i`` of it is row ``row + i`` of the source, less ``cuts[i]`` characters."""

    start: int
    end: int
    prefix: str
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
    """A number that the page's front matter lets stand, and why."""

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
    problems: list[Problem] = field(default_factory=list)

    @property
    def path(self) -> str:
        return self.source.path

    @property
    def text(self) -> str:
        return self.source.text

    @property
    def python(self) -> list[Block]:
        return [block for block in self.blocks if block.language == "python"]

    def place(self, start: int, end: int) -> Place:
        return self.source.place(start, end)


def read(root: Path, path: str, lexicon: Lexicon) -> Page:
    """Read and parse one page; what is wrong with it stands in ``problems``."""
    try:
        return parse(source.read(root, path), lexicon)
    except source.SourceError as error:
        empty = Source(path, (source.Line("", path, error.line),))
        page = Page(empty)
        page.problems.append(Problem(error.slug, 0, 0, str(error)))
        return page


def parse(src: Source, lexicon: Lexicon) -> Page:
    """Parse a source into a page."""
    page = Page(src)
    parser = _Parser(page, lexicon)
    parser.front_matter()
    parser.fences()
    parser.prose()
    for block in page.blocks:
        parser.block(block)
    parser.numbers()
    page.claims.sort(key=lambda claim: claim.start)
    return page


# --- fences ----------------------------------------------------------------------------------------------------------

FENCE = re.compile(r"^(?P<prefix>[ \t]*(?:>[ \t]?)*[ \t]*)(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)$")
LIST_FENCE = re.compile(r"^[ \t]*(?:[-*+]|\d+[.)])[ \t]+(?P<fence>`{3,}|~{3,})")
ATTRIBUTE = re.compile(
    r"""(?P<name>[\w-]+)=(?P<quote>["'])(?P<value>(?:\\.|(?!(?P=quote)).)*)(?P=quote)|(?P<flag>\S+)"""
)
CONTAINER = re.compile(
    r"^(?P<indent>[ \t]*)(?:(?:!!!|\?\?\?\+?|===[!+]?|///)[ \t]?|[-*+][ \t]|\d+[.)][ \t]|\[\^[^\]]+\]:|:[ \t]{1,3}\S)"
)
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
    |(?P<attributes>\{:?[ ]*[\#.][^{}\n]*\})
    |(?P<entity>&(?:\#\d+|\#x[0-9a-fA-F]+|[A-Za-z]\w*);)
    """,
    re.X,
)
DEFINITION = re.compile(r"^ {0,3}\[(?!\^)[^\]\n]+\]:[ \t]*(?P<target>\S+).*$", re.M)
BLANK = re.compile(r"\n[ \t>]*\n")


class _Parser:
    """One pass over one page. ``opaque`` gathers the stretches in which a digit is no number of the prose."""

    def __init__(self, page: Page, lexicon: Lexicon) -> None:
        self.page = page
        self.text = page.text
        self.lexicon = lexicon
        self.opaque: list[tuple[int, int]] = []
        self.hidden: list[tuple[int, int]] = []  # fences and front matter: no inline mark-up there either
        self.block_starts: list[int] = []

    def problem(self, slug: str, start: int, end: int, message: str, hint: str = "") -> None:
        self.page.problems.append(Problem(slug, start, end, message, hint))

    # --- block structure ---

    def front_matter(self) -> None:
        found = source.FRONT_MATTER.match(self.text)
        if not found:
            return
        self.page.front = found.end()
        self.hidden.append((0, found.end()))
        body, at = found.group(1) or "", found.start(1)
        try:
            meta = yaml.safe_load(body) or {}
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            start = at + (mark.index if mark else 0)
            self.problem(
                "bad-front-matter",
                start,
                start + 1,
                f"the front matter is not YAML: {getattr(error, 'problem', error)}",
            )
            return
        if not isinstance(meta, dict):
            self.problem("bad-front-matter", at, at + 1, "the front matter must be a mapping of names to values")
            return
        self.page.meta = meta
        self._waivers((meta.get("claims") or {}), body, at)

    def _waivers(self, settings: object, body: str, at: int) -> None:
        waivers = settings.get("waive") if isinstance(settings, dict) else None
        if settings and not (isinstance(settings, dict) and isinstance(waivers, dict) and set(settings) == {"waive"}):
            self.problem(
                "bad-front-matter",
                at,
                at + 1,
                "claims: holds only waive:, a mapping of a number as written to the reason",
            )
            return
        for text, reason in (waivers or {}).items():
            text = str(text)
            start = at + max(0, body.find(text, max(0, body.find("waive"))))
            if not isinstance(reason, str) or len(reason.split()) < 3:
                self.problem(
                    "bad-front-matter", start, start + len(text), f"the waiver of {text} needs a reason in words"
                )
                continue
            self.page.waivers.append(Waiver(text, reason, start, start + len(text)))

    def fences(self) -> None:
        lines, starts = self.page.source.lines, self.page.source.starts
        row = self.page.source.row(self.page.front) if self.page.front else 0
        containers: list[int] = []
        after_blank = True
        comment = False
        while row < len(lines):
            line = lines[row].text
            if comment or (line.lstrip().startswith("<!--")):
                comment = "-->" not in line
                row += 1
                continue
            found = FENCE.match(line)
            if found and not ("`" in found["info"] and found["fence"][0] == "`"):
                row = self._fence(row, found)
                after_blank = False
                continue
            if LIST_FENCE.match(line):
                start = starts[row] + LIST_FENCE.match(line).start("fence")
                self.problem("unrecognised-block", start, starts[row] + len(line), "a fence on a list marker's own line is not a block",
                             "put the fence on the next line, indented by four")  # fmt: skip
            if line.strip():
                self._indented(row, line, containers, after_blank)
            after_blank = not line.strip()
            row += 1

    def _indented(self, row: int, line: str, containers: list[int], after_blank: bool) -> None:
        """Report an indented code block: nothing would run it."""
        indent = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
        opener = CONTAINER.match(line)
        while containers and indent <= containers[-1] and not (opener and indent == containers[-1]):
            containers.pop()
        if opener:
            while containers and indent <= containers[-1]:
                containers.pop()
            containers.append(indent)
            return
        allowed = (containers[-1] + 4) if containers else 0
        if after_blank and indent >= allowed + 4:
            start = self.page.source.starts[row]
            self.problem(
                "unrecognised-block",
                start,
                start + len(line),
                "an indented code block is not run",
                "use a ```python fence",
            )

    def _fence(self, row: int, found: re.Match[str]) -> int:
        """Take in the fence that opens at ``row``; the row after it is returned."""
        lines, starts = self.page.source.lines, self.page.source.starts
        close = re.compile(rf"^[ \t>]*{re.escape(found['fence'])}[ \t]*$")
        last = next((i for i in range(row + 1, len(lines)) if close.match(lines[i].text)), None)
        start = starts[row]
        open_end = start + len(lines[row].text)
        if last is None:
            self.problem("unrecognised-block", start + found.start("fence"), open_end, "this fence is never closed")
            last = len(lines) - 1
            end = len(self.text)
        else:
            end = starts[last] + len(lines[last].text)
        self.hidden.append((start, end))
        prefix = found["prefix"]
        cuts, code = [], []
        for line in lines[row + 1 : last]:
            cut = _common(prefix, line.text)
            cuts.append(cut)
            code.append(line.text[cut:])
        block = self._info(found, start, end, row + 1, "\n".join(code), tuple(cuts))
        if block:
            self.page.blocks.append(block)
        return last + 1

    def _info(
        self, found: re.Match[str], start: int, end: int, row: int, code: str, cuts: tuple[int, ...]
    ) -> Block | None:
        info, at = found["info"], start + found.start("info")
        language, _, rest = info.strip().partition(" ")
        span = (start + found.start("fence"), start + found.end("info"))
        if found["fence"][0] == "~" or language not in LANGUAGES:
            self.problem(
                "unrecognised-block",
                *span,
                _unknown_block(found["fence"] + info, language),
                "write ```python to run it, or ```text",
            )
            return None
        rest_at = at + info.find(rest) if rest else at
        options: dict[str, Option] = {}
        flags = set()
        for part in ATTRIBUTE.finditer(rest):
            where = (rest_at + part.start(), rest_at + part.end())
            name = part["name"] or part["flag"]
            if part["flag"] == "fold" and language == "python":
                flags.add("fold")
            elif part["name"] in OPTIONS and (language == "python" or part["name"] in ("title", "hl_lines")):
                value = part["value"].replace("\\" + part["quote"], part["quote"])
                options[part["name"]] = Option(value, rest_at + part.start("value"))
            else:
                known = ", ".join(sorted(OPTIONS | {"fold"})) if language == "python" else "title, hl_lines"
                self.problem("bad-option", *where, f"{name} is no option of a {language} block", f"known: {known}")
        number = len(self.block_starts) if language == "python" else -1
        if language == "python":
            self.block_starts.append(start)
        return Block(start, end, found["prefix"], language, options, frozenset(flags), code, row, cuts, number)

    # --- inline mark-up ---

    def prose(self) -> None:
        self.hidden.sort()
        at = 0
        for start, end in [*self.hidden, (len(self.text), len(self.text))]:
            if at < start:
                self._definitions(at, start)
                self._inline(at, start)
            at = max(at, end)
        for block in self.page.blocks:
            for name in PROSE_OPTIONS:
                if name in block.options:
                    option = block.options[name]
                    self._inline(option.start, option.start + len(option.value))

    def _definitions(self, start: int, end: int) -> None:
        for found in DEFINITION.finditer(self.text, start, end):
            self.opaque.append(found.span())
            if found["target"].strip("<>").startswith(("claim:", "cite:")):
                self.problem(
                    "bad-expression",
                    *found.span("target"),
                    "a claim stands in the link itself, not in a reference definition",
                )

    def _inline(self, start: int, end: int) -> None:
        at = start
        skip = dict(span for span in self.opaque if start <= span[0] < end)
        while found := TOKEN.search(self.text, at, end):
            for begin in [begin for begin, stop in skip.items() if stop <= found.start()]:
                del skip[begin]
            beyond = [stop for begin, stop in skip.items() if begin <= found.start()]
            at = max(beyond) if beyond else self._token(found, end, skip)

    def _token(self, found: re.Match[str], end: int, skip: dict[int, int]) -> int:
        kind, start, stop = found.lastgroup, found.start(), found.end()
        if kind == "link":
            return self._link(found, end, skip)
        if kind == "comment":
            close = self.text.find("-->", stop, end)
            stop = end if close < 0 else close + 3
        elif kind == "raw":
            close = re.compile(r"</(?:script|style)>", re.I).search(self.text, stop, end)
            stop = close.end() if close else end
        elif kind == "code":
            return self._code(start, stop, end)
        elif kind in ("math", "display"):
            return self._math(kind == "display", start, stop, end)
        self.opaque.append((start, stop))
        return stop

    def _code(self, start: int, stop: int, end: int) -> int:
        """A code span is code, but one that holds nothing besides a number is a number."""
        ticks = self.text[start:stop]
        close = re.compile(rf"(?<!`){ticks}(?!`)").search(self.text, stop, end)
        if not close or BLANK.search(self.text, stop, close.start()):
            return stop
        if not re.fullmatch(
            r"\s*[≈~<>≤≥−-]?\s*\d[\d,._]*(?:e[+-]?\d+)?\s*(?:[KMGT]i?B|kB|bytes|%)?\s*", self.text[stop : close.start()]
        ):
            self.opaque.append((start, close.end()))
        return close.end()

    def _math(self, display: bool, start: int, stop: int, end: int) -> int:
        if display:
            close = self.text.find("$$", stop, end)
            if close < 0:
                self.problem("bad-math", start, stop, "this $$ is never closed")
                return stop
        else:
            pattern = re.compile(r"(?<![\\\s])\$(?!\d)")
            match = pattern.search(self.text, stop + 1, end) if stop < end and not self.text[stop].isspace() else None
            if not match or BLANK.search(self.text, stop, match.start()):
                return stop
            close = match.start()
        size = 2 if display else 1
        self.opaque.append((start, close + size))
        self.page.equations.append(Equation(start, close + size, self.text[stop:close], stop, display))
        return close + size

    def _link(self, found: re.Match[str], end: int, skip: dict[int, int]) -> int:
        """A link: a claim, a citation, or a target in which digits do not count."""
        start, inside = found.start(), found.end()
        bracket = _closing(self.text, inside, end, "[", "]")
        if bracket is None or self.text[bracket + 1 : bracket + 2] != "(":
            if bracket is not None and (reference := re.compile(r"\[[^\]\n]*\]").match(self.text, bracket + 1, end)):
                self.opaque.append(reference.span())
                skip[reference.start()] = reference.end()
            return inside
        target = bracket + 2
        scheme = re.compile(r"[ \t]*(?P<angle><)?(?P<scheme>claim|cite):").match(self.text, target, end)
        close = self._target_end(target, end, scheme)
        if close is None:
            if scheme:
                self.problem("bad-expression", target, min(end, target + 20), "the link of this claim is never closed")
            return inside
        if not scheme:
            self.opaque.append((bracket, close + 1))
            skip[bracket] = close + 1
            return inside
        self.opaque.append((start, close + 1))
        self._bind(scheme, start, (inside, bracket), (target, close))
        return close + 1

    def _target_end(self, target: int, end: int, scheme: re.Match[str] | None) -> int | None:
        if scheme and scheme["angle"]:
            close = re.compile(r">[ \t]*\)").search(self.text, scheme.end(), end)
            if not close or BLANK.search(self.text, target, close.start()):
                return None
            # an expression may compare: the last ">" before ")" that leaves the parentheses balanced closes it
            while not _balanced(self.text[scheme.end() : close.start()]):
                later = re.compile(r">[ \t]*\)").search(self.text, close.end(), end)
                if not later or "\n" in self.text[close.end() : later.start()]:
                    return None
                close = later
            return close.end() - 1
        return _closing(self.text, target, end, "(", ")")

    def _bind(self, scheme: re.Match[str], start: int, literal: tuple[int, int], target: tuple[int, int]) -> None:
        at, stop = scheme.end(), target[1]
        inner = self.text[at:stop]
        if scheme["angle"]:
            inner = inner.rstrip()[:-1]
        expression = inner.strip()
        span = (at + len(inner) - len(inner.lstrip()), at + len(inner.rstrip()))
        outer = (start, target[1] + 1)
        words = self.text[literal[0] : literal[1]]
        if not scheme["angle"] and re.search(r"\s", inner):
            self.problem(
                "bad-expression",
                at,
                stop,
                "an expression with spaces needs angle brackets",
                f"write (<{scheme['scheme']}:{expression}>)",
            )
            return
        if scheme["scheme"] == "cite":
            if not re.fullmatch(r"[\w:+-]+(?:\.[\w-]+)?", expression):
                self.problem(
                    "bad-expression", *span, f"{expression or 'nothing'} is not the name of a fact or a reference"
                )
                return
            self.page.citations.append(Citation(*literal, words, expression, span, outer))
            return
        if not words.strip():
            self.problem("bad-literal", *outer, "this claim says nothing")
            return
        if message := syntax_error(expression):
            self.problem("bad-expression", *span, f"{expression or 'nothing'} is not a Python expression: {message}")
            return
        self.page.claims.append(Claim("link", *literal, words, expression, span, outer, self._after(start)))

    def _after(self, offset: int) -> int:
        return bisect_left(self.block_starts, offset)

    # --- numbers in blocks and math ---

    def block(self, block: Block) -> None:
        if block.language == "python":
            self._comments(block)
            self._highlight(block)
        elif block.language in ("text", "console"):
            for i, line in enumerate(block.code.split("\n")):
                at = self.page.source.starts[block.row + i] + block.cuts[i] if i < len(block.cuts) else 0
                if not (block.language == "console" and re.match(r"\s*(?:\$|>|PS>) ", line)):
                    self._loose(line, at, "output")

    def _highlight(self, block: Block) -> None:
        option = block.options.get("hl_lines")
        if not option:
            return
        rows = block.code.split("\n")
        for found in re.finditer(r"\S+", option.value):
            span = (option.start + found.start(), option.start + found.end())
            ends = re.fullmatch(r"(\d+)(?:-(\d+))?", found.group())
            if not ends:
                self.problem("stale-highlight", *span, f"hl_lines holds line numbers and ranges, not {found.group()}")
                continue
            for number in range(int(ends[1]), min(int(ends[2] or ends[1]), len(rows) + 1) + 1):
                if not 1 <= number <= len(rows):
                    self.problem("stale-highlight", *span, f"line {number} is highlighted, the block has {len(rows)}")
                    break
                if not rows[number - 1].strip():
                    self.problem("stale-highlight", *span, f"line {number} is highlighted and blank")

    def _comments(self, block: Block) -> None:
        """``# = 131,072`` behind an expression is a claim; any other number in a comment is loose."""
        statements = _statements(block.code)
        for row, column, comment in _comment_tokens(block.code):
            at = self.page.source.starts[block.row + row] + block.cuts[row] + column
            found = re.match(r"#\s*(?P<sign>=|≈|<|≤|>|≥)\s*(?P<literal>\S.*?)\s*$", comment)
            if not found:
                self._loose(comment, at, "comment")
                continue
            start = at + (found.start("literal") if found["sign"] == "=" else found.start("sign"))
            literal = self.text[start : at + found.end("literal")]
            span = (start, at + found.end("literal"))
            expression = statements.get(row)
            if not block.runs or expression is None:
                self.problem(
                    "bad-expression",
                    *span,
                    "no expression or plain assignment ends on this line, so nothing binds this comment",
                )
                continue
            self.page.claims.append(Claim("comment", *span, literal, expression, span, span, block.number + 1))

    def numbers(self) -> None:
        for equation in self.page.equations:
            for part in split_equation(equation.tex):
                self._equation_part(equation, part)
        visible = list(self.text)
        for start, end in [*self.hidden, *self.opaque]:
            for i in range(start, end):
                if visible[i] != "\n":
                    visible[i] = "\x00"
        masked = "".join(visible)
        masked = re.sub(r"(?m)^[ \t>]*\d+[.)](?=[ \t])", lambda m: "\x00" * len(m.group()), masked)
        masked = re.sub(r"(?m)^#{1,6}[ \t]+\d+(?:\.\d+)*\.?(?=[ \t])", lambda m: "\x00" * len(m.group()), masked)
        self._loose(masked, 0, "prose")
        for block in self.page.blocks:
            for name in PROSE_OPTIONS:
                if name in block.options:
                    option = block.options[name]
                    spans = [
                        (s - option.start, e - option.start)
                        for s, e in self.opaque
                        if option.start <= s < option.start + len(option.value)
                    ]
                    self._loose(_blank(option.value, spans), option.start, "prose")

    def _equation_part(self, equation: Equation, part: Part) -> None:
        start, end = equation.tex_at + part.start, equation.tex_at + part.end
        if part.kind == "problem":
            self.problem("bad-math", start, end, part.message)
        elif part.kind == "number":
            if not self.lexicon.bare(part.text):
                self.page.loose.append(Loose(start, end, part.text, "math"))
        else:
            if message := syntax_error(part.expression):
                self.problem(
                    "bad-expression",
                    start,
                    end,
                    f"{part.expression or 'nothing'} is not a Python expression: {message}",
                )
                return
            kind = "math" if part.kind == "claim" else "chain"
            self.page.claims.append(
                Claim(
                    kind,
                    start,
                    end,
                    part.text,
                    part.expression,
                    (start, end),
                    (start, end),
                    self._after(start),
                    part.optional,
                )
            )

    def _loose(self, text: str, at: int, where: str) -> None:
        for start, end in self.lexicon.loose(text):
            self.page.loose.append(Loose(at + start, at + end, text[start:end].strip("\x00"), where))


# --- small parsers ---------------------------------------------------------------------------------------------------


def syntax_error(expression: str) -> str | None:
    """Why this is no Python expression, or None."""
    try:
        compile(expression.strip(), "<claim>", "eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return getattr(error, "msg", None) or str(error) or type(error).__name__
    return None


def _blank(text: str, spans: list[tuple[int, int]]) -> str:
    chars = list(text)
    for start, end in spans:
        for i in range(max(0, start), min(end, len(chars))):
            chars[i] = "\x00"
    return "".join(chars)


def _common(prefix: str, text: str) -> int:
    """How many characters of a container's prefix stand before this line."""
    cut = 0
    while cut < len(prefix) and cut < len(text) and text[cut] in " \t>":
        cut += 1
    return cut


def _unknown_block(fence: str, language: str) -> str:
    if re.search(r"py", fence, re.I):
        return f"{fence.strip()} looks like Python and would not run"
    if not language:
        return "a block needs a language"
    return f"{fence.strip()} is no block this book knows: {', '.join(sorted(LANGUAGES))}"


def _closing(text: str, at: int, end: int, opening: str, closing: str) -> int | None:
    """The offset of the bracket that closes the one before ``at``; None if a blank line or the end comes first."""
    depth, end = 1, min(end, at + 4000)
    while at < end:
        char = text[at]
        if char == "\\" or (char == "\n" and not text[at + 1 : end].split("\n", 1)[0].strip(" \t>")):
            if char == "\n":
                return None
            at += 2
            continue
        if char == "`" and opening == "[":
            ticks = re.compile(r"`+").match(text, at).group()
            close = re.compile(rf"(?<!`){ticks}(?!`)").search(text, at + len(ticks), end)
            at = close.end() if close else at + len(ticks)
            continue
        if char in "\"'" and opening == "(":
            close = text.find(char, at + 1, end)
            if close > 0 and "\n" not in text[at:close]:
                at = close + 1
                continue
        depth += (char == opening) - (char == closing)
        if depth == 0:
            return at
        at += 1
    return None


def _balanced(text: str) -> bool:
    text = re.sub(r"\"[^\"]*\"|'[^']*'", "", text)
    return text.count("(") == text.count(")")


def _comment_tokens(code: str) -> Iterator[tuple[int, int, str]]:
    """``(row, column, comment)``, as far as the code can be read."""
    try:
        for token in tokenize.generate_tokens(io.StringIO(code + "\n").readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0] - 1, token.start[1], token.string
    except (tokenize.TokenError, SyntaxError):
        return


def _statements(code: str) -> dict[int, str]:
    """For each row on which a top-level expression or plain assignment ends, the expression that a comment there is about."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    ends: dict[int, str] = {}
    for node in tree.body:
        row = (node.end_lineno or 1) - 1
        if isinstance(node, ast.Expr):
            value = node.value
            if (
                isinstance(value, ast.Call)
                and isinstance(value.func, ast.Name)
                and value.func.id == "print"
                and len(value.args) == 1
            ):
                value = value.args[0]
            ends[row] = ast.unparse(value)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            ends[row] = node.targets[0].id
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            ends[row] = node.target.id
    return ends
