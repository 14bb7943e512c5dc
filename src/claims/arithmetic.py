"""Arithmetic in LaTeX: worked out in exact fractions where it holds only numbers, and turned into Python."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fractions import Fraction

from claims.results import Value

NUMBER = re.compile(r"\d(?:[\d]|\{,\}|,(?=\d{3}(?!\d))|\\,(?=\d{3}))*(?:\.\d+)?|\.\d+")
# After these LaTeX takes one digit where it takes no braces: \\frac23 is 2/3, and x^12 shows as x^1 2.
ONE_DIGIT = re.compile(
    r"(?:[\^_]|\\(?:sqrt|[td]?frac(?:\s*(?:\d|[A-Za-z](?![A-Za-z])|\{(?:[^{}]|\{[^{}]*\})*\}))?)(?![A-Za-z]))\s*\Z"
)
RUN_ON = re.compile(r"(?:[\^_]|\\sqrt|\\[td]?frac\s*\d)\s*\d(?P<rest>\d+)")
SPACES = re.compile(
    r"(?:\\[,;:! ]|\\\\|~|\s|&|\\displaystyle"
    r"|\\left(?=[(\[|])|\\right(?=[)\]|])|\\(?:big|Big|bigg|Bigg)[lr]?(?=[(\[|)\]]))+"
)
_GREEK = (
    "alpha beta gamma delta epsilon varepsilon zeta eta theta lambda mu nu xi pi rho sigma tau phi varphi chi psi "
    "omega Gamma Delta Theta Lambda Sigma Phi Psi Omega ell"
)
GREEK = frozenset(_GREEK.split())
FACTOR = re.compile(r"[({A-Za-z]|\\(?:frac|tfrac|dfrac|sqrt|lceil|lfloor)(?![A-Za-z])")
INDEX = re.compile(
    r"_(?:\{\s*(?:\\(?:text|mathrm)\{)?([A-Za-z\d]+)\}?\s*\}|\\(?:text|mathrm)\{([A-Za-z\d]+)\}|([A-Za-z\d]))"
)
MOST_BITS = 100_000  # of a power; what is longer is no number that a book states

Term = tuple[Fraction | None, str]  # its value, unless it holds names, and its Python


def numbers(tex: str) -> Iterator[tuple[int, int]]:
    """The spans of the numbers that a formula shows."""
    at = 0
    while found := NUMBER.search(tex, at):
        argument = ONE_DIGIT.search(tex, max(0, found.start() - 80), found.start())
        at = found.start() + 1 if argument and found[0][0].isdigit() else found.end()
        yield found.start(), at


def run_on(tex: str) -> re.Match[str] | None:
    """The first exponent, index or argument whose later digits LaTeX leaves out of it."""
    return RUN_ON.search(tex)


class NotArithmetic(ValueError):
    """This is not arithmetic over numbers and names."""


class Arithmetic:
    """One side of an equation. ``value`` is None where it holds ``names``; ``python`` computes the same.

    Raises NotArithmetic for anything but sums, products, fractions, powers, roots and rounding of numbers and names.
    """

    def __init__(self, tex: str) -> None:
        self.tex, self.at = tex, 0
        self.names: set[str] = set()
        try:
            self.value, self.python = self._sum()
        except (RecursionError, OverflowError):
            raise NotArithmetic(tex) from None
        self._space()
        if self.at != len(self.tex) or (self.value is None and not self.names):
            raise NotArithmetic(tex)

    def _space(self) -> None:
        if found := SPACES.match(self.tex, self.at):
            self.at = found.end()

    def _take(self, *tokens: str) -> str | None:
        self._space()
        for token in tokens:
            end = self.at + len(token)
            if self.tex.startswith(token, self.at) and not (token[-1].isalpha() and self.tex[end : end + 1].isalpha()):
                self.at = end
                return token
        return None

    def _sum(self) -> Term:
        value, python = self._product()
        while sign := self._take("+", "-", "−"):
            other, text = self._product()
            value = _apply(_add if sign == "+" else _subtract, value, other)
            python = f"{python} {'+' if sign == '+' else '-'} {text}"
        return value, python

    def _product(self) -> Term:
        value, python = self._signed()
        while True:
            operator = self._take("\\cdot", "\\times", "*", "·", "×", "/", "\\div")
            if operator is None and not self._at_factor():
                return value, python
            other, text = self._signed()
            divides = operator in ("/", "\\div")
            value = _apply(_divide if divides else _multiply, value, other)
            python = f"{python} {'/' if divides else '*'} {text}"

    def _at_factor(self) -> bool:
        self._space()
        return bool(FACTOR.match(self.tex, self.at)) or self._greek() is not None

    def _greek(self) -> str | None:
        found = re.compile(r"\\([A-Za-z]+)").match(self.tex, self.at)
        return found[1] if found and found[1] in GREEK else None

    def _signed(self) -> Term:
        if self._take("-", "−"):
            value, python = self._signed()
            return _apply(_subtract, Fraction(0), value), f"-{python}"
        value, python = self._base()
        if self._take("^"):
            power, text = self._group()
            return _apply(_power, value, power), f"{python}**{text}"
        return value, python

    def _group(self) -> Term:
        """What an exponent or ``\\frac`` takes: braces, or one digit, or one name."""
        self._space()
        if self.tex.startswith("{", self.at):
            return self._bracketed("{", "}")
        if found := re.compile(r"\d").match(self.tex, self.at):
            self.at += 1
            return Fraction(found[0]), found[0]
        return self._base()

    def _bracketed(self, opening: str, closing: str) -> Term:
        if not self._take(opening):
            raise NotArithmetic(self.tex)
        value, python = self._sum()
        if not self._take(closing):
            raise NotArithmetic(self.tex)
        return value, f"({python})"

    def _base(self) -> Term:
        self._space()
        if found := NUMBER.match(self.tex, self.at):
            self.at = found.end()
            text = re.sub(r"[^\d.]", "", found[0])
            return Fraction(text), text.lstrip("0") or "0"
        if self._take("\\frac", "\\tfrac", "\\dfrac"):
            (top, above), (bottom, below) = self._group(), self._group()
            return _apply(_divide, top, bottom), f"({above} / {below})"
        if self._take("\\sqrt"):
            value, python = self._group()
            return _apply(_power, value, Fraction(1, 2)), f"{python}**0.5"
        if self.tex.startswith("\\lceil", self.at):
            value, python = self._bracketed("\\lceil", "\\rceil")
            return (None if value is None else Fraction(-(-value // 1))), f"(-(-{python} // 1))"
        if self.tex.startswith("\\lfloor", self.at):
            value, python = self._bracketed("\\lfloor", "\\rfloor")
            return (None if value is None else Fraction(value // 1)), f"({python} // 1)"
        for opening, closing in (("(", ")"), ("{", "}")):
            if self.tex.startswith(opening, self.at):
                return self._bracketed(opening, closing)
        return self._name()

    def _name(self) -> Term:
        greek = self._greek()
        found = re.compile(rf"\\{greek}(?![A-Za-z])" if greek else r"[A-Za-z]").match(self.tex, self.at)
        if not found:
            raise NotArithmetic(self.tex)
        name = (greek or found[0]).replace("varepsilon", "epsilon").replace("lambda", "lambda_")
        self.at = found.end()
        if index := INDEX.match(self.tex, self.at):
            name += "_" + next(group for group in index.groups() if group)
            self.at = index.end()
        self.names.add(name)
        return None, name


def _apply(
    operation: Callable[[Fraction, Fraction], Fraction], a: Fraction | None, b: Fraction | None
) -> Fraction | None:
    return None if a is None or b is None else operation(a, b)


def _add(a: Fraction, b: Fraction) -> Fraction:
    return a + b


def _subtract(a: Fraction, b: Fraction) -> Fraction:
    return a - b


def _multiply(a: Fraction, b: Fraction) -> Fraction:
    return a * b


def _divide(a: Fraction, b: Fraction) -> Fraction:
    if b == 0:
        raise NotArithmetic("division by zero")
    return a / b


def _power(a: Fraction, b: Fraction) -> Fraction:
    if a == 0 and b < 0:
        raise NotArithmetic("division by zero")
    if b.denominator == 1:
        if abs(b) * max(a.numerator.bit_length(), a.denominator.bit_length()) > MOST_BITS:
            raise NotArithmetic("a power out of reach")
        return a ** int(b)
    root = float(a) ** float(b)
    if isinstance(root, complex) or root in (float("inf"), float("-inf")):
        raise NotArithmetic("not a real number")
    return Fraction(repr(root))


# --- identities ------------------------------------------------------------------------------------------------------


def symbolic(tex: str) -> str | None:
    """A formula of symbols, less its ``name =``, as a Python expression; None if it is not one."""
    try:
        parsed = Arithmetic(re.sub(r"^\s*\S+\s*=(?!=)", "", tex))
    except NotArithmetic:
        return None
    return parsed.python if parsed.names else None


def identical(tex: str, expression: Value) -> bool:
    """Whether a formula in LaTeX and a SymPy expression of the page are the same function of their symbols."""
    import sympy

    left = symbolic(tex)
    if left is None:
        return False
    names = {name: sympy.Symbol(name) for name in re.findall(r"[A-Za-z_]\w*", left)}
    try:
        right = sympy.sympify(expression.text)
        right = right.subs({symbol: sympy.Symbol(symbol.name) for symbol in right.free_symbols})
        return bool(sympy.simplify(sympy.sympify(left.replace("lambda_", "lamda"), locals=names) - right) == 0)
    except (AttributeError, TypeError, ValueError, ArithmeticError, RecursionError):
        return False  # what cannot be compared is not shown to be the same
