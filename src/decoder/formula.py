"""One expression, three faces: exact Python, LaTeX and exact JavaScript.

A count is a SymPy expression over whole numbers. Both printers keep every intermediate result a whole number: a
division is allowed only inside ``ceiling`` and ``floor``, where it becomes one integer division, and anything else
that could leave the whole numbers is refused. JavaScript gets BigInt, so no figure is rounded at 2**53.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import sympy
from sympy.printing.printer import Printer


class _ExactPrinter(Printer):
    """The whole-number subset of SymPy, printed so that evaluation is exact; all else is refused."""

    printmethod = "_exact"

    language = "Python"
    literal = "{}"
    ceiling = "(-(-({0}) // ({1})))"
    floor = "(({0}) // ({1}))"

    def emptyPrinter(self, expr: sympy.Basic) -> str:
        raise ValueError(f"{self.language}: no exact form for {type(expr).__name__} in {expr}")

    def _print_Symbol(self, expr: sympy.Symbol) -> str:
        return expr.name

    def _print_Integer(self, expr: sympy.Integer) -> str:
        return self.literal.format(expr.p)

    def _print_Rational(self, expr: sympy.Rational) -> str:
        raise ValueError(f"{self.language}: {expr} is not a whole number; wrap the division in ceiling or floor")

    def _print_Add(self, expr: sympy.Add) -> str:
        return "(" + " + ".join(self._print(term) for term in expr.as_ordered_terms()) + ")"

    def _print_Mul(self, expr: sympy.Mul) -> str:
        return "(" + " * ".join(self._print(factor) for factor in expr.as_ordered_factors()) + ")"

    def _print_Pow(self, expr: sympy.Pow) -> str:
        if not (expr.exp.is_Integer and expr.exp.p > 0):
            raise ValueError(f"{self.language}: {expr} is not a whole-number power")
        return f"({self._print(expr.base)} ** {self._print(expr.exp)})"

    def _quotient(self, form: str, expr: sympy.Expr) -> str:
        numerator, denominator = sympy.fraction(sympy.together(expr.args[0]))
        return form.format(self._print(numerator), self._print(denominator))

    def _print_ceiling(self, expr: sympy.ceiling) -> str:
        return self._quotient(self.ceiling, expr)

    def _print_floor(self, expr: sympy.floor) -> str:
        return self._quotient(self.floor, expr)

    def _print_Min(self, expr: sympy.Min) -> str:
        return f"min({', '.join(self._print(arg) for arg in expr.args)})"

    def _print_Max(self, expr: sympy.Max) -> str:
        return f"max({', '.join(self._print(arg) for arg in expr.args)})"


class _JavaScriptPrinter(_ExactPrinter):
    language = "JavaScript"
    literal = "{}n"
    ceiling = "ceilDiv({0}, {1})"
    floor = "floorDiv({0}, {1})"


def python(expr: sympy.Expr) -> str:
    """A Python expression over ints, exact. Raises ValueError where ``expr`` may leave the whole numbers."""
    return _ExactPrinter().doprint(expr)


def javascript(expr: sympy.Expr) -> str:
    """A JavaScript expression over BigInts, exact; needs ``ceilDiv``, ``floorDiv``, ``min``, ``max`` of ``PRELUDE``."""
    return _JavaScriptPrinter().doprint(expr)


def latex(expr: sympy.Expr, symbols: Iterable[sympy.Symbol] = ()) -> str:
    """The formula as displayed, the factors of a product in the order of ``symbols``."""
    ranked = {symbol: sympy.Symbol(f"s{rank:03}", **symbol.assumptions0) for rank, symbol in enumerate(symbols)}
    shown = {stand_in: _letter(symbol.name) for symbol, stand_in in ranked.items()}
    return sympy.latex(expr.subs(ranked), mul_symbol=r"\,", symbol_names=shown)


def _letter(name: str) -> str:
    letter, _, index = name.partition("_")
    letter = letter if len(letter) == 1 else rf"\mathrm{{{letter}}}"
    return f"{letter}_{{{index}}}" if index else letter


def evaluator(expr: sympy.Expr, symbols: Iterable[sympy.Symbol]) -> Callable[[Mapping[str, int]], int]:
    """``expr`` as a fast exact function of a mapping from symbol names to ints."""
    names = sorted(symbol.name for symbol in expr.free_symbols)
    unknown = set(names) - {symbol.name for symbol in symbols}
    if unknown:
        raise ValueError(f"formula uses {', '.join(sorted(unknown))}, which the notation does not list")
    function = eval(f"lambda {', '.join(names)}: {python(expr)}", {"min": min, "max": max})
    return lambda values: function(*(values[name] for name in names))


PRELUDE = """\
const floorDiv = (a, b) => a / b - (a % b !== 0n && (a < 0n) !== (b < 0n) ? 1n : 0n);
const ceilDiv = (a, b) => -floorDiv(-a, b);
const min = (...all) => all.reduce((a, b) => (a < b ? a : b));
const max = (...all) => all.reduce((a, b) => (a > b ? a : b));

// The double nearest to a / b, for a >= 0n and b > 0n: 66 bits of quotient and a sticky bit, rounded once.
export function ratio(a, b) {
  if (a === 0n) return 0;
  const shift = BigInt(66 - a.toString(2).length + b.toString(2).length);
  const top = shift > 0n ? a << shift : a;
  const bottom = shift < 0n ? b << -shift : b;
  const quotient = top / bottom;
  return Number(top % bottom === 0n ? quotient : quotient | 1n) * 2 ** -Number(shift);
}
"""


def javascript_module(formulas: Mapping[str, sympy.Expr], symbols: Iterable[sympy.Symbol]) -> str:
    """An ES module: ``formulas.NAME(values)`` with ``values`` an object of whole numbers, results BigInt.

    ``ratio(a, b)`` gives the double nearest to a quotient of two results. A value that is missing, or not a
    non-negative whole number that JavaScript holds exactly, throws a RangeError naming it.
    """
    known = ", ".join(f'"{symbol.name}"' for symbol in symbols)
    lines = [
        "// Generated by decoder.budget: do not edit.",
        PRELUDE,
        f"export const names = [{known}];",
        "",
        "function whole(values, name) {",
        "  const value = values[name];",
        '  const exact = typeof value === "bigint" || Number.isSafeInteger(value);',
        "  if (exact && value >= 0) return BigInt(value);",
        "  throw new RangeError(`${name} must be a whole number from 0, got ${value}`);",
        "}",
        "",
        "export const formulas = {",
    ]
    for name, expr in formulas.items():
        used = sorted(symbol.name for symbol in expr.free_symbols)
        lines.append(f"  {name}(values) {{")
        if used:
            listed = ", ".join(f'"{name}"' for name in used)
            lines.append(f"    const [{', '.join(used)}] = [{listed}].map((name) => whole(values, name));")
        lines += [f"    return {javascript(expr)};", "  },"]
    return "\n".join([*lines, "};", ""])
