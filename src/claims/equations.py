"""Arithmetic in LaTeX: which numbers of an equation can be checked, against what.

``split_equation`` cuts a formula at its relations. A side that is plain arithmetic is worked out in exact fractions and compared with
its neighbour; a number beside symbols is compared with what the page's names give; ``\\claim{…}{…}`` binds anything else. ``\\given{K = 1}``
marks a supposition. What is left over is a number that nothing checks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from claims.literal import LiteralError, agree, read
from claims.session import Value

RELATION = re.compile(
    r"\\(?:approx|leq?|geq?|neq?|equiv|simeq|sim|ll|gg|to|mapsto|rightarrow|Rightarrow|iff|propto)(?![A-Za-z])|:=|[=<>≈≤≥]"
)
SIGNS = {
    "=": "",
    "\\equiv": "",
    ":=": "",
    "\\approx": "≈ ",
    "≈": "≈ ",
    "\\simeq": "≈ ",
    "<": "< ",
    ">": "> ",
    "\\le": "≤ ",
    "\\leq": "≤ ",
}
SIGNS |= {"≤": "≤ ", "\\ge": "≥ ", "\\geq": "≥ ", "≥": "≥ "}
MIRROR = {"< ": "> ", "> ": "< ", "≤ ": "≥ ", "≥ ": "≤ ", "≈ ": "≈ ", "": ""}
BREAK = re.compile(
    r"\\\\|\\q?quad(?![A-Za-z])|;(?!\w)|,(?!\d\d\d(?!\d))|&(?!=)|\\(?:text|mathrm|quad)\{\s*(?:and|or|if|for|so|but|with)\b[^}]*\}"
)
NUMBER = re.compile(r"\d(?:[\d]|\{,\}|,(?=\d{3}(?!\d))|\\,(?=\d{3}))*(?:\.\d+)?|\.\d+")
UNIT = r"(?:\\[,;: ]|~|\s)*(?:\\(?:text|mathrm|textrm|operatorname)\{\s*(?P<unit>[A-Za-zµ%/]+)\s*\}|(?P<percent>\\%)|(?P<times>\\times$))?"
PLAIN = re.compile(rf"^(?P<minus>-?)(?P<number>{NUMBER.pattern}){UNIT}$")
SPACES = re.compile(
    r"(?:\\[,;:! ]|~|\s|&|\\displaystyle|\\left(?=[(\[|])|\\right(?=[)\]|])|\\(?:big|Big|bigg|Bigg)[lr]?(?=[(\[|)\]]))+"
)
GREEK = ["alpha", "beta", "gamma", "delta", "epsilon", "varepsilon", "zeta", "eta", "theta", "lambda", "mu", "nu", "xi", "pi", "rho", "sigma", "tau", "phi", "varphi", "chi", "psi", "omega", "Gamma", "Delta", "Theta", "Lambda", "Sigma", "Phi", "Psi", "Omega", "ell"]


@dataclass(frozen=True)
class Part:
    """A piece of an equation: ``claim`` or ``chain`` (``text`` against ``expression``), ``number`` (bound by nothing) or ``problem``."""

    kind: str
    start: int
    end: int
    text: str
    expression: str = ""
    optional: bool = False
    message: str = ""


class NotArithmetic(ValueError):
    """This side is not arithmetic over numbers and names."""


@dataclass(frozen=True)
class _Side:
    start: int
    end: int
    literal: str | None  # a plain number with its unit, as ``claims.literal`` reads it
    value: Fraction | None  # of a side without names
    python: str | None  # of a side with names
    arithmetic: str  # of a side without names: Python that works it out exactly
    sign: str  # the relation before it


def split_equation(tex: str) -> Iterator[Part]:
    """The parts of one formula; offsets are into ``tex``."""
    covered: list[tuple[int, int]] = []
    flat = tex
    for start, end, literal, expression in _bound(tex):
        inner = tex.index("{", start) + 1
        yield Part("claim", inner, inner + len(literal), literal, expression)
        covered.append((start, end))
        flat = flat[:start] + _centred(literal, end - start) + flat[end:]
    for found in re.finditer(r"\\given\{((?:[^{}]|\{[^{}]*\})*)\}", tex):
        flat = flat[: found.start()] + " " * len(found.group()) + flat[found.end() :]
        covered.extend(
            m.span() for m in NUMBER.finditer(tex, *found.span()) if m.group().isdigit() and int(m.group()) <= 10
        )
    for begin, stop in _chains(flat):
        yield from _chain(flat, begin, stop, covered)
    for found in NUMBER.finditer(tex):
        if not any(start <= found.start() < end for start, end in covered) and not _is_name(tex, found.start()):
            text = found.group().replace("{,}", ",")
            yield Part("number", *found.span(), text)


def _centred(literal: str, width: int) -> str:
    return (" " * ((width - len(literal)) // 2) + literal).ljust(width)


def _bound(tex: str) -> Iterator[tuple[int, int, str, str]]:
    for found in re.finditer(r"\\claim\s*(?=\{)", tex):
        first = _braces(tex, found.end())
        second = _braces(tex, first) if first and tex[first : first + 1] == "{" else None
        if first and second:
            expression = tex[first + 1 : second - 1].replace("\\_", "_").replace("\\%", "%").strip()
            yield found.start(), second, tex[found.end() + 1 : first - 1], expression


def _braces(tex: str, at: int) -> int | None:
    depth = 0
    for i in range(at, len(tex)):
        depth += (tex[i] == "{") - (tex[i] == "}")
        if depth == 0:
            return i + 1
    return None


def unbound_macro(tex: str) -> int | None:
    """Where a ``\\claim`` stands that lacks one of its two arguments."""
    bound = {start for start, *_ in _bound(tex)}
    return next((m.start() for m in re.finditer(r"\\claim(?![A-Za-z])", tex) if m.start() not in bound), None)


def shown_tex(tex: str) -> str:
    """The formula as readers see it: ``\\claim{a}{b}`` shows a, ``\\given{a}`` shows a."""
    brace = r"\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}"
    tex = re.sub(rf"\\claim\s*{brace}\s*{brace}", lambda m: m.group(1).replace("%", r"\%").replace(r"\\%", r"\%"), tex)
    return re.sub(rf"\\given\s*{brace}", r"\1", tex)


def _is_name(tex: str, at: int) -> bool:
    """A digit inside a command's argument that names something: ``x_{12}``, ``\\hspace{12pt}``."""
    return bool(
        re.search(
            r"(?:\\(?:hspace|vspace|begin|end|label|tag|hphantom|phantom)\*?\{[^{}]*|_\{?[A-Za-z\d,]*)$", tex[:at]
        )
    )


def _chains(tex: str) -> Iterator[tuple[int, int]]:
    """Stretches that hold one chain of relations, cut at depth 0."""
    start, depth, at = 0, 0, 0
    while at < len(tex):
        if found := BREAK.match(tex, at):
            if depth <= 0 or found.group().startswith(("\\\\", "\\q")):
                yield start, at
                start, depth = found.end(), 0
            at = found.end()
            continue
        depth += (tex[at] in "({[") - (tex[at] in ")}]")
        at += 2 if tex[at] == "\\" and at + 1 < len(tex) and not tex[at + 1].isalpha() else 1
    yield start, len(tex)


def _chain(tex: str, begin: int, stop: int, covered: list[tuple[int, int]]) -> Iterator[Part]:
    sides = list(_sides(tex, begin, stop))
    last: _Side | None = None
    approximate = False
    for side in sides:
        if side.sign not in MIRROR:
            last = None
        if side.literal is None and side.value is None and side.python is None:
            approximate = approximate or side.sign == "≈ "
            continue
        if last is not None:
            sign = "≈ " if approximate and side.sign == "" else side.sign
            yield from _compare(last, side, sign, covered)
        last, approximate = side, False


def _sides(tex: str, begin: int, stop: int) -> Iterator[_Side]:
    depth, at, start, sign = 0, begin, begin, ""
    cuts: list[tuple[int, int, str]] = []
    while at < stop:
        found = RELATION.match(tex, at, stop)
        if found and depth == 0:
            cuts.append((start, at, sign))
            start, sign = found.end(), SIGNS.get(found.group(), found.group())
            at = found.end()
            continue
        depth += (tex[at] in "({[") - (tex[at] in ")}]")
        at += 1
    cuts.append((start, stop, sign))
    if len(cuts) == 1:
        return
    for start, end, sign in cuts:
        body = tex[start:end]
        lead = re.match(rf"(?:{SPACES.pattern})?", body).end()
        tail = len(body.rstrip(" .&~\n")) or lead
        yield _side(tex[start + lead : start + tail], start + lead, sign)


def _side(body: str, at: int, sign: str) -> _Side:
    end = at + len(body)
    plain = PLAIN.match(body.strip())
    if plain:
        unit = "%" if plain["percent"] else "×" if plain["times"] else plain["unit"] or ""
        number = plain["minus"] + plain["number"].replace("{,}", ",").replace("\\,", ",")
        return _Side(at, end, f"{number} {unit}".strip(), None, None, "", sign)
    try:
        parsed = _Parser(body)
    except NotArithmetic:
        return _Side(at, end, None, None, None, "", sign)
    if parsed.names:
        return _Side(at, end, None, None, parsed.python, "", sign)
    whole = not re.search(r"[./]", parsed.python)
    return _Side(at, end, None, parsed.value, None, parsed.python if whole else _exact(parsed.value), sign)


def _compare(left: _Side, right: _Side, sign: str, covered: list[tuple[int, int]]) -> Iterator[Part]:
    number, other, relation = (right, left, sign) if right.python is None else (left, right, MIRROR.get(sign, sign))
    if number.python is not None or relation not in MIRROR:
        return
    text = relation + _literal(number)
    if other.python is not None:
        covered.append((number.start, number.end))
        yield Part("chain", number.start, number.end, text, other.python, optional=True)
        return
    if number.literal is None and other.literal is not None:
        number, other, relation = other, number, MIRROR[relation]
        text = relation + _literal(number)
    covered.extend([(left.start, left.end), (right.start, right.end)])
    yield Part("chain", number.start, number.end, text, other.arithmetic or _exact(_plain_value(other)))


def _literal(side: _Side) -> str:
    return side.literal if side.literal is not None else _exact(side.value)


def _plain_value(side: _Side) -> Fraction:
    try:
        return read(side.literal).value
    except LiteralError:
        return Fraction(re.sub(r"[^\d.-]", "", side.literal))


def _exact(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    return f"{value.numerator}/{value.denominator}"


# --- a small parser of arithmetic -------------------------------------------------------------------------------------


class _Parser:
    """TeX arithmetic to an exact value (no names) and to a Python expression."""

    def __init__(self, tex: str) -> None:
        self.tex, self.at, self.names = tex, 0, set()
        self.value, self.python = self._sum()
        self._space()
        if self.at != len(self.tex):
            raise NotArithmetic(tex)
        if self.names:
            self.value = None
        elif self.value is None:
            raise NotArithmetic(tex)

    def _space(self) -> None:
        found = SPACES.match(self.tex, self.at)
        if found:
            self.at = found.end()

    def _take(self, *tokens: str) -> str | None:
        self._space()
        for token in tokens:
            if self.tex.startswith(token, self.at):
                after = self.tex[self.at + len(token) : self.at + len(token) + 1]
                if token[-1].isalpha() and after.isalpha():
                    continue
                self.at += len(token)
                return token
        return None

    def _sum(self):
        value, python = self._product()
        while sign := self._take("+", "-", "−"):
            other, text = self._product()
            value = _apply((lambda a, b: a + b) if sign == "+" else (lambda a, b: a - b), value, other)
            python = f"{python} {'+' if sign == '+' else '-'} {text}"
        return value, python

    def _product(self):
        value, python = self._unary()
        while True:
            operator = self._take("\\cdot", "\\times", "*", "·", "×", "/", "\\div")
            if operator is None and not self._starts_factor():
                return value, python
            other, text = self._unary()
            if operator in ("/", "\\div"):
                value, python = _apply(_divide, value, other), f"{python} / {text}"
            else:
                value, python = _apply(lambda a, b: a * b, value, other), f"{python} * {text}"

    def _starts_factor(self) -> bool:
        self._space()
        rest = self.tex[self.at :]
        return bool(rest) and (
            rest[0] in "({"
            or rest[0].isalpha()
            or bool(re.match(r"\\(?:frac|tfrac|dfrac|sqrt|lceil|lfloor|mathit|left)", rest))
            or self._greek() is not None
        )

    def _greek(self) -> str | None:
        found = re.match(r"\\([A-Za-z]+)", self.tex[self.at :])
        return found.group(1) if found and found.group(1) in GREEK else None

    def _unary(self):
        if self._take("-", "−"):
            value, python = self._unary()
            return _apply(lambda a, _: -a, value, Fraction(0)), f"-{python}"
        value, python = self._base()
        if self._take("^"):
            power, text = self._group()
            return _apply(_power, value, power), f"{python}**{text}"
        return value, python

    def _group(self):
        self._space()
        if self.tex[self.at : self.at + 1] == "{":
            return self._bracketed("{", "}")
        found = re.match(r"\d", self.tex[self.at :])
        if found:
            self.at += 1
            return Fraction(found.group()), found.group()
        return self._base()

    def _bracketed(self, opening: str, closing: str):
        if not self._take(opening):
            raise NotArithmetic(self.tex)
        value, python = self._sum()
        if not self._take(closing):
            raise NotArithmetic(self.tex)
        return value, f"({python})"

    def _base(self):
        self._space()
        found = NUMBER.match(self.tex, self.at)
        if found:
            self.at = found.end()
            text = re.sub(r"[^\d.]", "", found.group())
            return Fraction(text), text
        if self._take("\\frac", "\\tfrac", "\\dfrac"):
            top, above = self._group()
            bottom, below = self._group()
            return _apply(_divide, top, bottom), f"({above} / {below})"
        if self._take("\\sqrt"):
            value, python = self._group()
            return _apply(_power, value, Fraction(1, 2)), f"{python}**0.5"
        for opening, closing, name in (("\\lceil", "\\rceil", "ceil"), ("\\lfloor", "\\rfloor", "floor")):
            if self.tex.startswith(opening, self.at):
                value, python = self._bracketed(opening, closing)
                sign = "-" if name == "ceil" else ""
                rounding: Callable = (
                    (lambda a, _: Fraction(-(-a // 1))) if name == "ceil" else (lambda a, _: Fraction(a // 1))
                )
                return _apply(rounding, value, Fraction(0)), f"({sign}({sign}{python} // 1))"
        for opening, closing in (("(", ")"), ("{", "}")):
            if self.tex.startswith(opening, self.at):
                return self._bracketed(opening, closing)
        return self._name()

    def _name(self):
        greek = self._greek()
        found = re.match(rf"\\{greek}(?![A-Za-z])" if greek else r"[A-Za-z]", self.tex[self.at :])
        if not found:
            raise NotArithmetic(self.tex)
        name = (greek or found.group()).replace("varepsilon", "epsilon").replace("lambda", "lambda_")
        self.at += found.end()
        index = re.match(
            r"_(?:\{\s*(?:\\(?:text|mathrm)\{)?([A-Za-z\d]+)\}?\s*\}|\\(?:text|mathrm)\{([A-Za-z\d]+)\}|([A-Za-z\d]))",
            self.tex[self.at :],
        )
        if index:
            name += "_" + next(group for group in index.groups() if group)
            self.at += index.end()
        elif self.tex[self.at : self.at + 1] in ("_", "'"):
            raise NotArithmetic(self.tex)
        self.names.add(name)
        return None, name


def _apply(operation: Callable, a: Fraction | None, b: Fraction | None) -> Fraction | None:
    return None if a is None or b is None else operation(a, b)


def _divide(a: Fraction, b: Fraction) -> Fraction:
    if b == 0:
        raise NotArithmetic("division by zero")
    return a / b


def _power(a: Fraction, b: Fraction) -> Fraction:
    if abs(b) > 4096 or (a == 0 and b < 0):
        raise NotArithmetic("a power out of reach")
    if b.denominator == 1:
        return a ** int(b)
    result = float(a) ** float(b)
    if isinstance(result, complex):
        raise NotArithmetic("not a real number")
    exact = Fraction(repr(result))
    return exact


# --- identities ------------------------------------------------------------------------------------------------------


def symbolic(tex: str) -> str | None:
    """A formula of symbols as a Python expression; None if it is not one."""
    try:
        parsed = _Parser(re.sub(r"^\s*\S\s*=(?!=)", "", tex) if "=" in tex else tex)
    except NotArithmetic:
        return None
    return parsed.python if parsed.names else None


def identical(tex: str, expression: Value) -> bool:
    """Whether a formula in LaTeX and a SymPy expression of the page are the same function of their symbols."""
    import sympy

    left = symbolic(tex)
    if left is None:
        return agree(tex, expression) is None
    names = {name: sympy.Symbol(name) for name in re.findall(r"[A-Za-z_]\w*", left)}
    right = sympy.sympify(expression.text)
    right = right.subs({symbol: sympy.Symbol(symbol.name) for symbol in right.free_symbols})
    return sympy.simplify(sympy.sympify(left.replace("lambda_", "lamda"), locals=names) - right) == 0
