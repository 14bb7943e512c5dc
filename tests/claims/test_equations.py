from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claims.arithmetic import Arithmetic, NotArithmetic, identical, numbers, run_on, symbolic
from claims.equations import shown_tex, split_equation, unbound_macro
from claims.results import Value
from claims.values import describe


def parts(tex):
    return [(part.kind, part.text, part.expression) for part in split_equation(tex)]


@pytest.mark.parametrize(
    ("tex", "value"),
    [
        (r"2\cdot 8\cdot 128\cdot 2", 4096),
        (r"131{,}072", 131072),
        (r"131\,072", 131072),
        ("131,072", 131072),
        (r"\frac{8}{3} \times 6", 16),
        (r"\tfrac12", Fraction(1, 2)),
        (r"\tfrac23", Fraction(2, 3)),
        (r"\dfrac 1{16}", Fraction(1, 16)),
        (r"\sqrt4", 2),
        ("2^{10}", 1024),
        ("2^3 + 1", 9),
        ("-2^2", -4),
        (r"\sqrt{16}", 4),
        (r"\lceil 7/2 \rceil", 4),
        (r"\lfloor 7/2 \rfloor", 3),
        ("18 / 2 * 2", 18),
        ("18 / (2 * 2)", Fraction(9, 2)),
        (r"3 \left(1 + 2\right)", 9),
        ("1 - 2 - 3", -4),
        ("0.1 + 0.2", Fraction(3, 10)),
        (r"\dfrac{1}{2}(4)", 2),
        ("{2}{3}", 6),
        ("5^{-1}", Fraction(1, 5)),
        ("3^{40}", 3**40),
        ("0^{0}", 1),
        ("0^{0.5}", 0),
    ],
)
def test_arithmetic_is_exact(tex, value):
    parsed = Arithmetic(tex)
    assert parsed.value == value
    assert eval(parsed.python) == pytest.approx(float(value), rel=1e-12)


@pytest.mark.parametrize(
    "tex",
    [
        "", "2 +", "(2", r"\frac{1}{0}", "0^{-1}", "2^{9^9}", "1000000000^{9999}", r"\sum_i x_i", "x'", "x_", "x_{}",
        r"\sqrt{-1}", "(" * 5000, "2..3", r"2 \cdotx", r"2 \cdotx(2)",
    ],
)  # fmt: skip
def test_what_is_no_arithmetic(tex):
    with pytest.raises(NotArithmetic):
        Arithmetic(tex)


@pytest.mark.parametrize(
    ("tex", "python"),
    [
        ("2 L d", "2 * L * d"),
        ("d_{ff}", "d_ff"),
        (r"d_{\text{kv}}", "d_kv"),
        (r"\lambda / \theta", "lambda_ / theta"),
        ("h_q^2", "h_q**2"),
    ],
)
def test_names_become_python(tex, python):
    assert Arithmetic(tex).python == python


@pytest.mark.parametrize(
    ("tex", "expected"),
    [
        (r"2 \cdot 3 = 6", [("chain", "6", "2 * 3")]),
        (r"6 = 2 \cdot 3", [("chain", "6", "2 * 3")]),
        (r"\frac{8}{3} \approx 2.67", [("chain", "≈ 2.67", "8/3")]),
        (r"H = 32", [("chain", "32", "H")]),
        (r"32 = H", [("chain", "32", "H")]),
        (r"H \le 32", [("chain", "≤ 32", "H")]),
        (r"32 > H", [("chain", "< 32", "H")]),
        (r"2 L d = 64 = 2 \cdot 32", [("chain", "64", "2 * L * d"), ("chain", "64", "2 * 32"), ("number", "2", "")]),
        (r"L = 32,\quad K = 8", [("chain", "32", "L"), ("chain", "8", "K")]),
        (r"x &= 2 + 3 \\ &= 5", [("chain", "5", "x"), ("chain", "5", "2 + 3")]),
        (r"131{,}072\ \text{bytes} = 128\ \text{KiB}", [("chain", "128 KiB", "131072")]),
        (r"12\% = 0.12", [("chain", "0.12", "3/25")]),
        (r"\claim{4{,}096}{per_layer}", [("claim", "4{,}096", "per_layer")]),
        (r"P = \claim{100}{a} + 24", [("claim", "100", "a"), ("chain", "124", "P")]),
        (r"24 B T D", [("number", "24", "")]),
        (r"f(12, x)", [("number", "12", "")]),
        (r"x_{12} + \hspace{14pt} y", []),
        (r"\given{K = 1} \Rightarrow L = 12", [("chain", "12", "L")]),
        (r"\given{K = 11}", [("number", "11", "")]),
        (r"12 \to 13", [("number", "12", ""), ("number", "13", "")]),
    ],
)
def test_parts(tex, expected):
    assert parts(tex) == expected


def test_spans_are_the_numbers():
    tex = r"2 \cdot 3{,}000 = 6{,}000 \quad \claim{17}{x[1]} + 19 y"
    assert [tex[part.start : part.end] for part in split_equation(tex)] == ["17", r"6{,}000", "19"]


def test_claims_are_shown_without_their_expressions():
    assert shown_tex(r"a = \claim{12%}{x_1[{}]} \given{K = 1}") == r"a = 12\% K = 1"
    assert unbound_macro(r"a \claim{1}") == 2 and unbound_macro(r"\claim{1}{2}") is None


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(1, 10**4))
def test_a_wrong_right_side_is_seen(a, b, error):
    (part,) = split_equation(rf"{a} \cdot {b} + {a} = {a * b + a + error}")
    assert eval(part.expression) != int(part.text)


@given(st.text(st.sampled_from(r"\{}()_^&=<>12,.;abxkK /frctsqmie$%"), max_size=60))
def test_any_formula_is_cut(tex):
    for part in split_equation(tex):
        assert 0 <= part.start <= part.end <= len(tex)
    shown_tex(tex), unbound_macro(tex), symbolic(tex)


def test_identities_are_of_functions_not_of_text():
    sympy = pytest.importorskip("sympy")
    d, heads, width = sympy.symbols("d H h", positive=True)
    assert identical("2 d H h (1 + 1)", describe(4 * d * heads * width))
    assert identical(r"P = \frac{d H}{2}", describe(d * heads / 2))
    assert not identical("2 d H h", describe(4 * d * heads * width))
    assert not identical(r"\sum_i d", describe(d))


@pytest.mark.parametrize("other", ["Symbol('d').nothing", "Symbol('d') > 2", "Integer('x')", "Integer(1) % Integer(0)"])
def test_what_cannot_be_compared_is_not_the_same(other):
    pytest.importorskip("sympy")
    assert not identical("2 d", Value("expr", other))


def test_a_point_begins_no_argument_of_one_digit():
    assert list(numbers("2^.5")) == [(0, 1), (2, 4)] and list(numbers(r"\frac12")) == [(5, 6), (6, 7)]


@pytest.mark.parametrize(
    ("tex", "shown"),
    [
        (r"\tfrac23", ["2", "3"]),
        (r"\frac{a_{1}}23 + 45", ["1", "2", "3", "45"]),
        (r"\frac1{16}", ["1", "16"]),
        (r"\frac d{64}", ["64"]),
        (r"\sqrt2 \cdot 12", ["2", "12"]),
        ("x^12", ["1", "2"]),
        ("x^{12} + 4{,}096", ["12", "4{,}096"]),
    ],
)
def test_numbers_are_what_latex_shows(tex, shown):
    assert [tex[start:end] for start, end in numbers(tex)] == shown


@pytest.mark.parametrize(("tex", "rest"), [("x^12", "2"), ("x_{1}^123", "23"), (r"\sqrt16", "6"), (r"\frac234", "4")])
def test_digits_that_latex_leaves_out(tex, rest):
    assert run_on(tex)["rest"] == rest


@pytest.mark.parametrize("tex", ["x^{12}", "x^1 2", r"\frac23", r"\frac1{16}", r"\sqrt{16}", "12_3"])
def test_digits_that_latex_takes_in(tex):
    assert run_on(tex) is None
