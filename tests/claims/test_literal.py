from dataclasses import FrozenInstanceError
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claims.agree import Disagreement, agree, decimal, number_of, show
from claims.literal import LiteralError, plain, read, tuple_items
from claims.values import describe
from claims.words import words_to_number

NOUNS = frozenset({"layers", "heads", "tokens", "per", "token"})


def slug(text, value):
    found = agree(text, describe(value), NOUNS)
    return found and found.slug


@pytest.mark.parametrize(
    ("text", "factor"),
    [
        ("B", 1),
        ("bytes", 1),
        ("KiB", 2**10),
        ("MiB", 2**20),
        ("GiB", 2**30),
        ("TiB", 2**40),
        ("PiB", 2**50),
        ("EiB", 2**60),
        ("kB", 10**3),
        ("MB", 10**6),
        ("GB", 10**9),
        ("TB", 10**12),
        ("PB", 10**15),
        ("EB", 10**18),
        ("byte", 1),
        ("thousand", 10**3),
        ("million", 10**6),
        ("billion", 10**9),
        ("trillion", 10**12),
        ("%", Fraction(1, 100)),
        ("percent", Fraction(1, 100)),
        ("×", 1),
        ("times", 1),
        ("x", 1),
        ("fold", 1),
        ("°", 1),
        ("FLOPs", 1),
        ("kFLOP", 10**3),
        ("MFLOPs", 10**6),
        ("GFLOPs", 10**9),
        ("TFLOP/s", 10**12),
        ("PFLOPs", 10**15),
        ("EFLOP", 10**18),
        ("ZFLOPs", 10**21),
        ("ns", Fraction(1, 10**9)),
        ("µs", Fraction(1, 10**6)),
        ("us", Fraction(1, 10**6)),
        ("ms", Fraction(1, 1000)),
        ("s", 1),
        ("second", 1),
        ("seconds", 1),
        ("B/s", 1),
        ("GB/s", 10**9),
        ("KiB/s", 2**10),
        ("layers", 1),
        ("KiB per token", 2**10),
        ("million tokens", 10**6),
    ],
)
def test_units(text, factor):
    assert slug(f"7 {text}", 7 * Fraction(factor)) is None
    assert slug(f"7 {text}", 8 * Fraction(factor)) == "drift"


@pytest.mark.parametrize(("suffix", "factor"), [("K", 10**3), ("M", 10**6), ("B", 10**9), ("T", 10**12)])
def test_counts_stand_right_behind_the_digits(suffix, factor):
    assert slug(f"8.5{suffix}", Fraction(17, 2) * factor) is None


def test_a_gap_makes_bytes_of_b():
    assert slug("8 B", 8) is None
    assert slug("8B", 8) == "drift"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("131,072", 131072),
        ("131072", 131072),
        ("131\u202f072", 131072),
        ("128\u00a0KiB", 131072),
        ("−3", -3),
        ("-3", -3),
        ("–3", -3),
        ("+3", 3),
        ("−0", 0),
        ("0", 0),
        ("0.0", 0),
        ("0.1", 0.1),
        (".5", 0.5),
        ("1e-5", 1e-5),
        ("3.2 × 10^24", Decimal("3.2e24")),
        ("3×10⁹", 3 * 10**9),
        ("2^17", 131072),
        ("10⁻³", 0.001),
        ("2^-1", 0.5),
        ("0^2", 0),
        ("0^0", 1),
        ("−2^2", -4),
        ("5e+2", 500),
        ("12{,}500", 12500),
        ("2e400", 2 * 10**400),
        ("2e-400", Fraction(2, 10**400)),
        pytest.param("9" * 400, 10**400 - 1, id="400 digits"),
        ("⅓", Fraction(1, 3)),
        ("−1/3", Fraction(-1, 3)),
        ("7-fold", 7),
        ("[1, 2]", (1, 2)),
        ("(1; 2)", (1, 2)),
        ("one hundred twenty one million one hundred one thousand one hundred one", 121_101_101),
        ("1/3", Fraction(1, 3)),
        ("½", 0.5),
        ("25%", 0.25),
        ("four times", 4),
        ("half", 0.5),
        ("two thirds", Fraction(2, 3)),
        ("twelve layers", 12),
        ("twenty four", 24),
        ("twelvefold", 12),
        ("one hundred twenty eight", 128),
        ("three million", 3_000_000),
        ("**4,096**", 4096),
        ("`4096`", 4096),
        ("4{,}096", 4096),
        ("(2, 8, 128)", (2, 8, 128)),
        ("(1,024, 2)", [1024, 2]),
        ("((1, 2), (3, 4))", [[1, 2], [3, 4]]),
        ("GPT-2", "GPT-2"),
        ("bfloat16", "bfloat16"),
        ("7B-chat", "7B-chat"),
        ("yes", True),
        ("no", False),
        ("(a, b)", ("a", "b")),
        ("≈ (1.50, 2.50)", (1.499, 2.501)),
        ("< 3", 2.9),
        ("≤ 3", 3),
        ("> 3", 3.1),
        (">= 3", 3),
        ("~ 35,600", 35_649),
        ("about 12", 12.4),
        ("≈ 1.5e3", 1549),
        ("≈ 1.50e3", 1504.9),
        ("≈ 3.29 × 10^24", 3.2856e24),
        ("≈ three hundred", 349),
        ("≈ 0", 0.4),
        ("≈ 10.0", 10.04),
        ("≈ twelve", 12.3),
    ],
)
def test_agrees(text, value):
    assert slug(text, value) is None


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("131,071", 131072, "drift"),
        ("128 kB", 131072, "drift"),
        ("131 KiB", 131072, "drift"),
        ("73.7 kB", 73728, "inexact"),
        ("0.3", 0.1 + 0.2, "inexact"),
        ("0.33", Fraction(1, 3), "inexact"),
        ("128 KB", 131072, "bad-literal"),
        ("128 kib", 131072, "bad-literal"),
        ("1,31,072", 131072, "bad-literal"),
        ("1,0000", 10000, "bad-literal"),
        ("0,001", 1, "bad-literal"),
        ("0128", 128, "bad-literal"),
        ("12 parsecs", 12, "bad-literal"),
        ("1/0", 1, "bad-literal"),
        ("0^-1", 1, "bad-literal"),
        ("1e401", 10**401, "bad-literal"),
        ("1e-401", Fraction(1, 10**401), "bad-literal"),
        ("1e999", 1, "bad-literal"),
        pytest.param("1e" + "9" * 5000, 1, "bad-literal", id="endless exponent"),
        pytest.param("9" * 401, 10**401 - 1, "bad-literal", id="endless number"),
        pytest.param("0." + "3" * 400, 1, "bad-literal", id="endless decimals"),
        ("01", 1, "bad-literal"),
        ("1 000", 1000, "bad-literal"),
        ("1,000\u202f000", 1_000_000, "bad-literal"),
        ("≈ 2^17", 131072, "bad-literal"),
        ("≈ 1/3", 1 / 3, "bad-literal"),
        ("≈ 1.5e3", 1551, "drift"),
        ("≈ three hundred", 351, "drift"),
        ("≈ 10.0", 10.06, "drift"),
        ("≈ 0", 0.6, "drift"),
        ("(1,2)", (1, 2), "drift"),
        ("1, 2", (1, 2), "bad-literal"),
        ("one hundred twenty one million one hundred twenty one thousand one hundred one", 121_121_101, "drift"),
        ("≈ half", 0.5, "bad-literal"),
        ("(1, 2)", (1, 3), "drift"),
        ("(1, 2)", (1, 2, 3), "drift"),
        ("float16", "bfloat16", "drift"),
        ("four times", 3, "drift"),
        ("< 3", 3, "drift"),
        ("≤ 3", 3.01, "drift"),
        ("> 3", 3, "drift"),
        ("≥ 3", 2.99, "drift"),
        ("nothing", 3, "drift"),
        ("3", None, "drift"),
        ("3", float("inf"), "drift"),
        ("3", float("nan"), "drift"),
        ("3", 3 + 1j, "drift"),
    ],
)
def test_disagrees(text, value, expected):
    assert slug(text, value) == expected


@pytest.mark.parametrize(
    ("text", "value", "agrees"),
    [
        ("≈ 0.12", Fraction(125, 1000), True),
        ("≈ 0.13", Fraction(125, 1000), False),  # half to even
        ("≈ 0.14", Fraction(135, 1000), True),
        ("≈ 4.77", 4.7749, True),
        ("≈ 4", 4.77, False),  # never cut off
        ("≈ 35,600", 35_650, True),
        ("≈ 35,600", 35_651, False),
        ("≈ 35,700", 35_650, False),
        ("≈ 1.50", 1.5049, True),
        ("≈ 1.50", 1.5051, False),
        ("≈ 93.8 MiB", 98_304_000, True),
    ],
)
def test_approximate_is_half_a_unit_of_the_last_digit(text, value, agrees):
    assert (slug(text, value) is None) is agrees


def test_messages_give_both_values_in_both_units():
    found = agree("128 KiB", describe(98304))
    assert found.message == "the text says 128 KiB (131,072 bytes), the code gives 96 KiB (98,304 bytes)"
    found = agree("128 KB", describe(131072))
    assert found.message == "KB is neither unit: write kB (1,000 bytes) or KiB (1,024 bytes)"


@pytest.mark.parametrize(
    ("text", "value", "message"),
    [
        ("8B", 9 * 10**9, "the text says 8B (8,000,000,000), the code gives 9B (9,000,000,000)"),
        ("8 B", 9, "the text says 8 B, the code gives 9 B"),
        ("8 B", 8.25, "the text says 8 B, the code gives 8.25 bytes"),
        ("1KiB", 2048, "the text says 1KiB (1,024 bytes), the code gives 2KiB (2,048 bytes)"),
        ("7 ms", 0.008, "the text says 7 ms (0.007 s), the code gives 8 ms (0.008 s)"),
        ("3 GFLOPs", 10**9, "the text says 3 GFLOPs (3,000,000,000), the code gives 1 GFLOPs (1,000,000,000)"),
        ("128 kib", 1, "kib is not a unit this book knows: write KiB"),
        ("12 parsecs", 1, "parsecs is not a unit this book knows"),
        ("1/0", 1, "1/0 is a division by zero"),
        ("0^-1", 1, "0^-1 is a division by zero"),
        ("1,31,072", 1, "the thousands separators of 1,31,072 are wrong: write 131,072"),
        ("0,5", 5, "the thousands separators of 0,5 are wrong: write 5"),
        ("0128", 1, "0128 begins with a zero: write 128"),
        ("1e401", 1, "the exponent of 1e401 is beyond 400"),
        pytest.param("9" * 401, 1, "a number of more than 400 digits", id="401 digits"),
    ],
)
def test_messages(text, value, message):
    assert agree(text, describe(value), NOUNS).message == message


def test_a_literal_knows_its_parts():
    found = read("≈ 1,500 KiB per token", NOUNS)
    assert (found.relation, found.number, found.step, found.digits, found.words) == ("≈", 1500, 100, "1,500", False)
    assert (found.unit.name, found.unit.factor, found.unit.gap, found.value) == ("KiB", 1024, " ", 1_536_000)
    found = read("**twelve layers**", NOUNS)
    assert (found.text, found.number, found.step, found.words) == ("twelve layers", 12, 1, True)
    assert read("one-hundred", NOUNS).number == 100
    assert read("*", NOUNS) is None and read("", NOUNS) is None
    half = read("½")
    assert (half.number, half.step, half.words) == (Fraction(1, 2), 0, True)
    for frozen in (found, found.unit):
        with pytest.raises(AttributeError):
            frozen.text = "other"


@pytest.mark.parametrize("words", ["four five", "layers", "half two", "", "and the", "third party"])
def test_other_words_are_no_numbers(words):
    assert words_to_number(words.split()) is None


def test_what_is_around_a_literal():
    assert [plain(text) for text in ("**12**", "*`12`*", "$4{,}096$", " 12 ", "*", "**", "*12", "12\\,000")] == [
        "12", "12", "4,096", "12", "*", "", "*12", "12000"
    ]  # fmt: skip


def test_tuples_are_cut_at_their_own_level():
    assert tuple_items("(1,024, (2, 3); x)") == ["1,024", "(2, 3)", "x"]
    assert tuple_items("1, 2") is None and tuple_items("()") is None
    assert tuple_items("≈ [(1, 2), 3]") == ["≈ (1, 2)", "≈ 3"]
    assert tuple_items("(1;2)") == ["1", "2"]
    assert tuple_items("(1,)") == ["1"] and tuple_items("(1, 2)") == ["1", "2"]


WHOLE = st.integers(-(10**15), 10**15)
DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, places=5, min_value=-(10**9), max_value=10**9)


@given(WHOLE, st.sampled_from(["", " KiB", " MB", "%", " million", " heads"]))
def test_a_written_number_is_read_back(number, unit):
    literal = read(f"{number:,}{unit}", NOUNS)
    assert literal.number == number
    assert slug(f"{number:,}{unit}", literal.value) is None


@given(st.one_of(WHOLE, DECIMALS, st.fractions(max_denominator=10**6)))
def test_exact_values_shown_agree_with_themselves(number):
    value = Fraction(number)
    if abs(value) < 10**30 and (value * 10**12).denominator == 1:
        assert slug(show(value), value) is None


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_its_shortest_decimal(number):
    assert number_of(describe(number)) == Fraction(repr(number))


@given(DECIMALS, st.data())
def test_any_other_digit_disagrees(number, data):
    text = f"{number:,.5f}"
    places = [i for i, char in enumerate(text) if char.isdigit()]
    at = data.draw(st.sampled_from(places))
    digit = data.draw(st.sampled_from([d for d in "0123456789" if d != text[at]]))
    changed = text[:at] + digit + text[at + 1 :]
    for sign in ("", "≈ "):
        assert slug(sign + text, number) is None
        assert slug(sign + changed, number) is not None


@given(st.integers(1, 10**9), st.permutations(["KiB", "kB", "MiB", "MB", "GiB", "GB", "B", "KB", "kiB"]))
def test_any_other_unit_disagrees(number, units):
    right, wrong = [unit for unit in units if unit not in ("KB", "kiB")][:1][0], units
    value = read(f"{number} {right}").value
    for unit in wrong:
        assert (slug(f"{number} {unit}", value) is None) == (unit == right)


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text):
    try:
        read(text, NOUNS)
    except LiteralError as error:
        assert str(error)


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (Fraction(0), "0"),
        (Fraction(-1234567), "-1,234,567"),
        (Fraction(10**30 - 1), "999," * 9 + "999"),
        (Fraction(10**30), "1e+30"),
        (Fraction(1, 2), "0.5"),
        (Fraction(-9, 8), "-1.125"),
        (Fraction(1, 10**12), "0.000000000001"),
        (Fraction(1, 10**13), "1e-13"),
        (Fraction(1, 3), "0.333333"),
        (Fraction(1, 9999), "0.000100"),
        (Fraction(1, 10001), "9.999e-05"),
        (Fraction(3 * 10**9 - 1, 3), "999,999,999.666667"),
        (Fraction(3 * 10**9 + 1, 3), "1e+09"),
        (Fraction(7 * 10**400 + 1, 7), "10^400 and more"),
        (Fraction(-(10**400)), "-10^400 and more"),
    ],
)
def test_a_number_is_shown_exactly_where_that_is_short(number, shown):
    assert show(number) == shown


def test_decimals_keep_their_zeros_and_sign():
    shown = [decimal(Fraction(hundredths, 100), 2) for hundredths in (0, 1, -1, 123456)]
    assert shown == ["0.00", "0.01", "-0.01", "1,234.56"]
    assert (decimal(Fraction(5, 2), 0), decimal(Fraction(-1, 3), 3)) == ("2", "-0.333")


def test_an_empty_tuple_is_written_as_one():
    assert agree("()", describe(())) is None
    assert agree("( )", describe((1,))) == Disagreement("drift", "the text says ( ), the code gives (1,)")
    with pytest.raises(FrozenInstanceError):
        Disagreement("drift", "").slug = "inexact"
