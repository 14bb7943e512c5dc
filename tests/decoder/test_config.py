import dataclasses

import pytest

from decoder.config import Config, Experts, LatentAttention, RopeScaling


def test_the_defaults_are_the_books_design():
    c = Config()
    assert (c.vocab, c.width, c.layers, c.heads, c.kv_heads, c.head_width, c.hidden, c.context) == (
        32_000, 768, 12, 12, 4, 64, 2_048, 2_048,
    )  # fmt: skip
    assert (c.norm, c.norm_placement, c.positions, c.rope_pairing) == ("rms", "pre", "rotary", "adjacent")
    assert (c.rope_base, c.norm_eps, c.tied) == (10_000.0, 1e-6, True)
    with pytest.raises(dataclasses.FrozenInstanceError):
        c.width = 1024


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden": 0}, "hidden must be a whole number from 1, got 0"),
        ({"layers": True}, "layers must be a whole number from 1, got True"),
        ({"width": 7.5}, "width must be a whole number from 1, got 7.5"),
        ({"heads": 5, "kv_heads": 5}, "width must be divisible by heads when head_width is not given, got 768 and 5"),
        ({"kv_heads": 5}, "heads must be divisible by kv_heads, got 12 and 5"),
        ({"kv_heads": 0}, "kv_heads must be a whole number from 1, got 0"),
        ({"head_width": 3}, "rotary_width must be even and at most 3, the width of a rotated head, got 3"),
        ({"rope_base": 0}, "rope_base must be a finite number above 0, got 0"),
        ({"norm_eps": float("nan")}, "norm_eps must be a finite number above 0, got nan"),
        ({"norm": "batch"}, "norm must be one of 'rms', 'layer', got 'batch'"),
        ({"attention_bias": "kq"}, "attention_bias must be letters of 'qkvo' in that order, got 'kq'"),
        ({"windowed_layers": (1,)}, "windowed_layers needs a window, got (1,) and window None"),
        ({"window": 4, "windowed_layers": (12,)}, "windowed_layers must be rising layer numbers from 0 to 11"),
        ({"block": "parallel", "norm_placement": "post"}, "a parallel block needs norm_placement 'pre', got 'post'"),
        ({"norm_bias": True}, "norm_bias belongs to a LayerNorm with a scale"),
        ({"tied": 1}, "tied must be True or False, got 1"),
    ],
)
def test_what_cannot_be_built_is_refused_by_name(changes, message):
    with pytest.raises(ValueError) as refusal:
        Config(**changes)
    assert str(refusal.value).startswith(message)


def test_derived_fields():
    c = Config(head_width=32, window=8)
    assert (c.rotary_width, c.position_rows, c.windowed_layers) == (32, 2_048, tuple(range(12)))


def test_latent_and_experts_sizes_are_checked():
    with pytest.raises(ValueError, match=r"experts.per_token must be at most experts.count 4, got 5"):
        Experts(count=4, per_token=5, hidden=8)
    with pytest.raises(ValueError, match=r"latent.kv_rank must be a whole number from 1, got 0"):
        LatentAttention(kv_rank=0, rope_width=2, nope_width=4, value_width=4)


def test_scaling_is_checked():
    with pytest.raises(ValueError, match=r"rope_scaling.kind must be one of .* got 'abf'"):
        RopeScaling("abf")
    with pytest.raises(ValueError, match=r"^rope_scaling.original_context must be a whole number from 2, got 1$"):
        RopeScaling("longrope", original_context=1, short_factors=(1.0,), long_factors=(2.0,))
    with pytest.raises(ValueError, match=r"^rope_base must be above 1 for rope_scaling.kind 'yarn', got 1.0$"):
        Config(rope_base=1.0, rope_scaling=RopeScaling("yarn", 2.0))
    with pytest.raises(ValueError, match=r"^rotary_width must be at least 4 for rope_scaling.kind 'ntk', got 2$"):
        Config(rotary_width=2, rope_scaling=RopeScaling("ntk", 2.0))
    scaling = RopeScaling("longrope", short_factors=(1.0,), long_factors=(2.0,))
    with pytest.raises(ValueError, match=r"rope_scaling.short_factors must hold 32 numbers"):
        Config(rope_scaling=scaling)


def test_replace_derives_again_what_was_derived():
    narrow = Config(width=60, heads=5, kv_heads=1, layers=3, context=32).replace(heads=6, layers=4, context=40)
    assert (narrow.head_width, narrow.rotary_width, narrow.position_rows) == (10, 10, 40)
    assert narrow.replace(window=7).windowed_layers == (0, 1, 2, 3)


def test_replace_keeps_what_was_stated():
    stated = Config(
        width=60, heads=5, kv_heads=1, head_width=16, rotary_width=8, layers=3, window=7, windowed_layers=(1,)
    )
    changed = stated.replace(heads=4, layers=6)
    assert (changed.head_width, changed.rotary_width, changed.windowed_layers) == (16, 8, (1,))
