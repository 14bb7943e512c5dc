import math

import pytest
import torch
import torch.nn.functional as F

from decoder.attention import (
    Attention,
    View,
    alibi_bias,
    attend,
    causal_mask,
    make_attention,
    repeat_kv,
    softcap,
)
from decoder.config import Config, LatentAttention
from decoder.positions import alibi_slopes, layer_rotation


def qkv(heads=6, kv_heads=3, queries=5, keys=7, width=4):
    draw = lambda n, t: torch.randn(2, n, t, width, dtype=torch.float64)
    return draw(heads, queries), draw(kv_heads, keys), draw(kv_heads, keys)


def span(start, stop):
    return torch.arange(start, stop)[None]


def test_each_key_value_head_is_repeated_next_to_itself():
    # the fault of onnx/onnx#7274: the list of heads tiled
    heads = torch.arange(3.0).view(1, 3, 1, 1)
    assert repeat_kv(heads, 2).flatten().tolist() == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("kv_heads", [6, 3, 2, 1])
def test_the_reference_with_repetition_equals_grouped_sdpa(kv_heads):
    q, k, v = qkv(kv_heads=kv_heads)
    mask = causal_mask(span(2, 7), span(0, 7))
    peer = F.scaled_dot_product_attention(q, k, v, mask, scale=0.3, enable_gqa=True)
    torch.testing.assert_close(attend(q, k, v, mask, 0.3), peer, atol=1e-13, rtol=1e-13)


def test_a_decode_query_sees_the_whole_cache():
    # the fault of pytorch/pytorch#103082: the mask aligned to the top left
    q, k = torch.zeros(1, 1, 1, 4).double(), torch.zeros(1, 1, 5, 4).double()
    v = torch.arange(5.0).double().view(1, 1, 5, 1).expand(1, 1, 5, 4)
    mask = causal_mask(span(4, 5), span(0, 5))
    assert int(mask.sum()) == 5
    assert attend(q, k, v, mask, 0.5)[0, 0, 0, 0] == pytest.approx(2.0)
    attention = Attention(Config(width=4, heads=1, kv_heads=1)).double()
    assert attention._attend(q, k, v, None)[0, 0, 0, 0] == pytest.approx(2.0)


def test_a_window_counts_the_current_token():
    # the fault of huggingface/transformers#39408: one key too many
    visible = causal_mask(span(0, 6), span(0, 6), window=4)
    assert visible.sum(-1).flatten().tolist() == [1, 2, 3, 4, 4, 4]


def test_masks_are_aligned_to_the_bottom_right():
    full = causal_mask(span(0, 7), span(0, 7), window=3)
    assert torch.equal(causal_mask(span(4, 7), span(0, 7), window=3), full[:, :, 4:])


def test_padding_is_seen_by_padding_only():
    row = torch.arange(5)[None] - 2  # two tokens of padding
    expected = [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 1, 1, 0], [0, 0, 1, 1, 1]]
    assert causal_mask(row, row)[0, 0].int().tolist() == expected


def test_alibi_takes_the_slope_off_per_position():
    bias = alibi_bias(span(3, 5), span(0, 5), causal_mask(span(3, 5), span(0, 5)), 6, torch.float64)
    for head, slope in enumerate(alibi_slopes(6).tolist()):
        rows = [[-3 * slope, -2 * slope, -slope, 0, -torch.inf], [-4 * slope, -3 * slope, -2 * slope, -slope, 0]]
        torch.testing.assert_close(bias[0, head], torch.tensor(rows).double())


def test_softcap_bounds_keeps_order_and_leaves_small_scores():
    x = torch.tensor([-1e9, -60, 0, 1e-3, 60, 1e9], dtype=torch.float64)
    y = softcap(x, 50.0)
    assert float(y.abs().max()) == 50
    assert y[3] == pytest.approx(1e-3, rel=1e-6) and float(y[4]) == pytest.approx(50 * math.tanh(1.2))


def test_cap_and_sinks_against_the_formula():
    q, k, v = qkv(kv_heads=6, queries=1)
    sinks = torch.randn(6).double()
    scores = 5 * torch.tanh(q @ k.mT * 0.7 / 5)  # (2, 6, 1, 7)
    weights = scores.exp() / (scores.exp().sum(-1, keepdim=True) + sinks.exp().view(1, 6, 1, 1))
    mask = torch.ones(1, 7, dtype=torch.bool)
    torch.testing.assert_close(attend(q, k, v, mask, 0.7, cap=5.0, sinks=sinks), weights @ v)


def test_a_sink_of_minus_infinity_is_no_sink():
    q, k, v = qkv()
    mask = causal_mask(span(2, 7), span(0, 7))
    sinks = torch.full((6,), -torch.inf).double()
    torch.testing.assert_close(attend(q, k, v, mask, 0.5, sinks=sinks), attend(q, k, v, mask, 0.5))


def test_softmax_of_half_types_is_taken_in_32_bits():
    q = torch.full((1, 1, 1, 4), 8.0).bfloat16()
    k = torch.randn(1, 1, 64, 4).bfloat16()
    v = torch.randn(1, 1, 64, 4).bfloat16()
    exact = attend(q.double(), k.double(), v.double(), torch.ones(1, 64, dtype=torch.bool), 0.5)
    found = attend(q, k, v, torch.ones(1, 64, dtype=torch.bool), 0.5)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.double(), exact, atol=0.03, rtol=0.03)


def test_the_scale_comes_from_the_head_width():
    # the fault of huggingface/transformers#31891: width / heads taken for it
    gemma = Config(vocab=7, width=3584, heads=16, kv_heads=16, head_width=256, layers=1)
    with torch.device("meta"):
        assert Attention(gemma).scale == 0.0625
        assert Attention(gemma.replace(attention_scale=224**-0.5)).scale == 224**-0.5


def test_the_written_out_path_takes_over_where_a_cap_is_asked_for(small, build):
    x, view = torch.randn(2, 5, 12).double(), View()
    fast = build(small).blocks[0].attention
    slow = build(small.replace(attention_softcap=1e9)).blocks[0].attention
    torch.testing.assert_close(slow(x, view), fast(x, view))


@pytest.mark.parametrize("cap", [None, 1e9])
def test_without_a_mask_two_tokens_are_causal_and_one_sees_every_key(small, build, cap):
    attention = build(small.replace(attention_softcap=cap)).blocks[0].attention
    x = torch.randn(2, 2, 12).double()
    torch.testing.assert_close(attention(x, View())[:, :1], attention(x[:, :1], View()))
    q, k, v = qkv(queries=1)
    weights = (q @ repeat_kv(k, 2).mT / 2).softmax(-1)  # the head width is 4
    torch.testing.assert_close(attention._attend(q, k, v, None), weights @ repeat_kv(v, 2))
    q, k, v = qkv(queries=3, keys=3)
    hidden = torch.ones(3, 3).triu(1) * -1e30
    weights = (q @ repeat_kv(k, 2).mT / 2 + hidden).softmax(-1)
    torch.testing.assert_close(attention._attend(q, k, v, None), weights @ repeat_kv(v, 2))


@pytest.mark.parametrize(("cap", "sinks"), [(0.5, False), (None, True), (0.5, True)])
def test_a_cap_and_sinks_reach_the_scores(small, build, cap, sinks):
    attention = build(small.replace(attention_softcap=cap, sinks=sinks)).blocks[0].attention
    q, k, v = qkv(queries=4, keys=4)
    scores = q @ repeat_kv(k, 2).mT / 2
    scores = scores if cap is None else cap * torch.tanh(scores / cap)
    terms = scores.exp() * torch.ones(4, 4).tril()
    beside = attention.sinks.exp().view(1, 6, 1, 1) if sinks else 0
    expected = terms / (terms.sum(-1, keepdim=True) + beside) @ repeat_kv(v, 2)
    torch.testing.assert_close(attention._attend(q, k, v, None), expected)


def test_written_out_without_a_mask_the_last_queries_are_aligned_with_the_last_keys(small):
    attention = Attention(small.replace(attention_softcap=1e9)).double()
    q, k, v = qkv(queries=3, keys=7)
    expected = attend(q, k, v, causal_mask(span(4, 7), span(0, 7)), 0.5)
    torch.testing.assert_close(attention._attend(q, k, v, None), expected)


def test_a_bias_as_mask_is_added_to_the_scores():
    q, k, v = qkv()
    bias = torch.randn(2, 6, 5, 7).double()
    peer = F.scaled_dot_product_attention(q, k, v, bias, scale=0.3, enable_gqa=True)
    torch.testing.assert_close(attend(q, k, v, bias, 0.3), peer)


def test_some_layers_do_not_turn(small, build):
    config = small.replace(no_rope_layers=(1,))
    x, positions = torch.randn(2, 5, 12).double(), torch.arange(5)[None]
    view = View(layer_rotation(config, positions, False, torch.float64))
    for layer, block in enumerate(build(config).blocks):
        turned = not torch.equal(block.attention(x, view), block.attention(x, View()))
        assert turned == (layer != 1)
    learned = build(small.replace(positions="learned")).blocks[0].attention
    assert torch.equal(learned(x, view), learned(x, View()))


def test_a_view_is_shared_and_so_cannot_be_changed():
    with pytest.raises(AttributeError):
        View().mask = torch.ones(1)


def test_the_kind_of_attention_is_that_of_the_config(small):
    latent = LatentAttention(kv_rank=10, rope_width=2, nope_width=6, value_width=5)
    assert type(make_attention(small, 0)) is Attention
    assert type(make_attention(small.replace(latent=latent), 0)).__name__ == "MultiHeadLatentAttention"
    turns = [make_attention(small.replace(no_rope_layers=(1,)), layer).rotary for layer in range(3)]
    assert turns == [True, False, True]
    assert not Attention(small.replace(no_rope_layers=(0,))).rotary  # the first layer, where none is named


@pytest.mark.parametrize("bias", ["", "q", "qkv", "o", "qkvo"])
def test_biases_stand_where_they_are_named(small, bias):
    attention = Attention(small.replace(attention_bias=bias))
    assert "".join(name for name in "qkvo" if getattr(attention, name).bias is not None) == bias


@pytest.mark.parametrize(
    ("qk_norm", "shapes"),
    [("head", [(4,), (4,)]), ("full", [(24,), (12,)]), ("per_head_weights", [(6, 4), (3, 4)])],
)
def test_qk_norm(small, build, qk_norm, shapes):
    attention = build(small.replace(qk_norm=qk_norm)).blocks[0].attention
    assert [tuple(attention.q_norm.weight.shape), tuple(attention.k_norm.weight.shape)] == shapes
    x, eps = torch.randn(2, 5, 12).double(), small.norm_eps

    def normed(linear, weight):
        y = F.linear(x, linear.weight)
        if qk_norm == "full":
            return F.rms_norm(y, (y.shape[-1],), weight, eps).unflatten(-1, (-1, 4)).transpose(1, 2)
        return (F.rms_norm(y.unflatten(-1, (-1, 4)), (4,), None, eps) * weight).transpose(1, 2)

    q, k = normed(attention.q, attention.q_norm.weight), normed(attention.k, attention.k_norm.weight)
    v = F.linear(x, attention.v.weight).unflatten(-1, (-1, 4)).transpose(1, 2)
    heads = F.scaled_dot_product_attention(query=q, key=k, value=v, enable_gqa=True, is_causal=True)
    expected = F.linear(heads.transpose(1, 2).flatten(2), attention.o.weight)
    torch.testing.assert_close(attention(x, View()), expected)


def test_normed_queries_and_keys_bound_the_scores():
    q, k = (F.rms_norm(1e3 * torch.randn(100, 128), (128,)) for _ in range(2))
    assert float((q @ k.T / 128**0.5).abs().max()) <= 128**0.5
