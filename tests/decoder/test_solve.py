"""The solvers against counts, published shapes and plain search."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoder.budget import parameters
from decoder.config import Config, Experts, LatentAttention
from decoder.solve import (
    MatchedHidden,
    Sized,
    continuous_width,
    depth_for,
    matched_hidden,
    padded_vocab,
    valid_kv_heads,
    width_for,
)

BOOK = Config()
TOTAL = 100_092_672


@pytest.mark.parametrize(("layers", "width"), [(8, 911.6), (12, 768.0), (16, 677.7)])
def test_the_whole_count_at_three_depths(layers, width):
    found = continuous_width(BOOK.replace(layers=layers), TOTAL, Fraction(8, 3), Fraction(1, 3))
    assert round(found, 1) == width


def test_the_square_root_rule_misses():
    rule = 768 * (12 / 8) ** 0.5
    assert continuous_width(BOOK.replace(layers=8), TOTAL) < rule - 25


def test_the_default_design_solves_to_itself():
    for found in (depth_for(BOOK, TOTAL), width_for(BOOK, TOTAL), width_for(BOOK, TOTAL, keep="heads")):
        assert found == Sized(BOOK, TOTAL, TOTAL)
        assert (found.difference, found.relative) == (0, 0.0)
    assert str(depth_for(BOOK, TOTAL + 100)) == (
        "12 layers x width 768, 12 heads of 64 (4 kv), hidden 2048: 100,092,672 parameters, "
        "-100 (-0.00%) from 100,092,772"
    )


def test_seven_billion_is_nearly_the_llama_shape():
    shape = Config(
        vocab=32000, width=1024, layers=32, heads=8, kv_heads=8, head_width=128, hidden=2752, tied=False,
    )  # fmt: skip
    found = width_for(shape, 6_738_415_616, ffn_ratio=Fraction(8, 3), hidden_multiple=256)
    assert (found.config.width, found.config.heads, found.config.hidden) == (4096, 32, 11008)
    assert found.difference == 0


@given(
    st.integers(1, 6), st.sampled_from([(4, 2), (6, 2), (5, 5), (3, 1)]), st.sampled_from(["head_width", "heads"]),
    st.integers(100_000, 3_000_000), st.sampled_from([1, 8, 64]),
)  # fmt: skip
@settings(max_examples=30, deadline=None)
def test_no_other_width_is_nearer(layers, heads, keep, total, multiple):
    config = Config(
        vocab=500, width=heads[0] * 8, layers=layers, heads=heads[0], kv_heads=heads[1], hidden=heads[0] * 21
    )
    found = width_for(config, total, keep=keep, hidden_multiple=multiple)
    got = found.config
    assert found.total == parameters(got).total
    assert Fraction(got.kv_heads, got.heads) == Fraction(*reversed(heads))
    assert got.width == got.heads * got.head_width
    assert got.hidden % multiple == 0
    step = config.head_width * (heads[0] // heads[1]) if keep == "head_width" else 2 * heads[0]
    for width in (got.width - step, got.width + step):
        if width > 0:
            grown = width * got.heads // got.width if keep == "head_width" else got.heads
            kv_heads = grown * heads[1] // heads[0]
            hidden = max(multiple * int(Fraction(21, 8) * width / multiple + Fraction(1, 2)), multiple)
            other = config.replace(
                width=width, heads=grown, kv_heads=kv_heads, head_width=width // grown, rotary_width=None, hidden=hidden
            )
            assert abs(parameters(other).total - total) >= abs(found.difference)


@given(st.integers(20_000, 5_000_000))
@settings(max_examples=30, deadline=None)
def test_no_other_depth_is_nearer(total):
    config = Config(vocab=300, width=24, layers=2, heads=3, kv_heads=1, hidden=40, window=9)
    found = depth_for(config, total)
    for layers in (found.config.layers - 1, found.config.layers + 1):
        if layers:
            other = parameters(config.replace(layers=layers, windowed_layers=None)).total
            assert abs(other - total) >= abs(found.difference)


@given(st.integers(1, 400))
def test_kv_heads_are_the_divisors(heads):
    assert valid_kv_heads(heads) == tuple(kv for kv in range(1, heads + 1) if heads % kv == 0)


def test_gate_that_keeps_the_weights():
    assert matched_hidden(768, 3072) == MatchedHidden(2048, Fraction(2048), 4_718_592, 4_718_592)
    assert matched_hidden(5, 2) == MatchedHidden(1, Fraction(4, 3), 20, 15)
    llama = matched_hidden(4096, 4 * 4096, multiple=256, rounding="up")
    assert (llama.hidden, llama.exact, llama.difference) == (11_008, Fraction(32_768, 3), 1_048_576)


@given(st.integers(1, 5000), st.integers(3, 20_000), st.integers(1, 300), st.sampled_from(["nearest", "up", "down"]))
def test_matched_hidden_rounds_as_named(width, plain, multiple, rounding):
    exact = Fraction(2 * plain, 3)
    if rounding == "up":
        expected = next(h for h in range(multiple, 2 * plain + multiple, multiple) if h >= exact)
    elif rounding == "down":
        expected = max((h for h in range(0, int(exact) + 1, multiple)), default=0)
    else:
        near = range(0, 2 * plain + 2 * multiple, multiple)
        expected = max(near, key=lambda h: (-abs(h - exact), h))
    if expected == 0:
        with pytest.raises(ValueError, match="multiple must be at most 2/3 of plain_hidden"):
            matched_hidden(width, plain, multiple, rounding)
        return
    found = matched_hidden(width, plain, multiple, rounding)
    assert found.hidden == expected
    assert found.difference == 3 * width * expected - 2 * width * plain


@pytest.mark.parametrize(
    ("entries", "multiple", "rows"), [(250_680 + 200, 1024, 250_880), (50_257, 64, 50_304), (50_304, 64, 50_304)]
)
def test_padded_vocabularies(entries, multiple, rows):
    assert padded_vocab(entries, multiple) == rows


ALIKE = "depth_for needs layers that are all alike"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: depth_for(BOOK, 1), "total must be at least 30,869,760, what one layer needs, got 1"),
        (lambda: depth_for(BOOK, 1.5), "total must be a whole number from 1, got 1.5"),
        (lambda: depth_for(BOOK.replace(window=8, windowed_layers=(1,)), TOTAL), ALIKE),
        (lambda: depth_for(BOOK.replace(no_rope_layers=(1,)), TOTAL), ALIKE),
        (lambda: depth_for(BOOK.replace(experts=Experts(4, 2, 64, dense_layers=(0,))), TOTAL), ALIKE),
        (lambda: width_for(BOOK, 1000), "total must be at least"),
        (lambda: width_for(BOOK, TOTAL, keep="kv"), "keep must be one of 'head_width', 'heads', got 'kv'"),
        (lambda: width_for(BOOK, TOTAL, ffn_ratio=-1), "ffn_ratio must be above 0, got -1"),
        (lambda: width_for(BOOK, TOTAL, hidden_multiple=0), "hidden_multiple must be a whole number from 1, got 0"),
        (
            lambda: width_for(BOOK.replace(latent=LatentAttention(8, 4, 4, 4), rotary_width=4), TOTAL),
            "width_for sizes decoders without latent attention",
        ),
        (lambda: valid_kv_heads(0), "heads must be a whole number from 1, got 0"),
        (lambda: matched_hidden(8, 8, rounding="even"), "rounding must be one of 'nearest', 'up', 'down', got 'even'"),
        (lambda: padded_vocab(10, 0), "multiple must be a whole number from 1, got 0"),
        (lambda: matched_hidden(8, True), "plain_hidden must be a whole number from 1, got True"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError) as caught:
        call()
    assert str(caught.value).startswith(message)
