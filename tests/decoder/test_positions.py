import math

import pytest
import torch
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor

from decoder.config import Config, RopeScaling
from decoder.positions import (
    alibi_slopes,
    apply_rotary,
    half_from_adjacent,
    layer_rotation,
    rotary_frequencies,
    rotary_magnitude,
    rotary_tables,
    sinusoidal_positions,
)


def turn(x, positions, pairing="adjacent", **kwargs):
    return apply_rotary(x, *rotary_tables(positions, rotary_frequencies(x.shape[-1], **kwargs)), pairing)


def test_the_pairs_of_both_conventions():
    # the fault of huggingface/transformers#25199: one convention taken for the other
    x = torch.tensor([1.0, 2, 3, 4]).double().view(1, 1, 1, 4)
    adjacent, half = turn(x, torch.tensor([1])), turn(x, torch.tensor([1]), "half")
    assert adjacent.flatten().tolist() == pytest.approx([-1.14264, 1.922076, 2.959851, 4.0298], abs=1e-6)
    assert half.flatten().tolist() == pytest.approx([-1.984111, 1.959901, 2.462378, 4.0198], abs=1e-6)


def test_frequencies_from_one_turn_in_two_pi_positions_down():
    wavelengths = 2 * math.pi / rotary_frequencies(64)
    assert float(wavelengths[0]) == pytest.approx(6.28, abs=0.005)
    assert float(wavelengths[-1]) == pytest.approx(47_117, abs=0.5)


def test_a_score_sees_the_offset_only():
    q, k = torch.randn(2, 1, 1, 1, 8).double()
    scores = [float((turn(q, torch.tensor([m])) * turn(k, torch.tensor([m + 3]))).sum()) for m in (0, 1, 40, 9_000)]
    assert scores == pytest.approx([scores[0]] * 4, abs=1e-9)


@pytest.mark.parametrize("rotary_width", [8, 4])
def test_the_permutation_leads_from_adjacent_to_half_and_back(rotary_width):
    order = half_from_adjacent(8, rotary_width)
    tables = rotary_tables(torch.arange(5), rotary_frequencies(rotary_width))
    x = torch.randn(2, 3, 5, 8).double()
    adjacent, half = apply_rotary(x, *tables), apply_rotary(x[..., order], *tables, "half")
    torch.testing.assert_close(half, adjacent[..., order])
    torch.testing.assert_close(apply_rotary(x[..., order], *tables, "half")[..., order.argsort()], adjacent)
    assert not torch.allclose(apply_rotary(x, *tables, "half"), adjacent)


def test_rows_turn_by_positions_of_their_own():
    positions = torch.tensor([[0, 1, 2, 3, 4], [-2, -1, 0, 1, 2]])
    x = torch.randn(2, 3, 5, 8).double()
    tables = rotary_tables(positions[:, None], rotary_frequencies(6))  # (2, 1, 5, 3)
    alone = torch.stack([apply_rotary(x[i], *rotary_tables(positions[i], rotary_frequencies(6))) for i in range(2)])
    torch.testing.assert_close(apply_rotary(x, *tables), alone)


def test_partial_rotation_passes_the_rest():
    x = torch.randn(1, 2, 5, 10).double()
    y = apply_rotary(x, *rotary_tables(torch.arange(5), rotary_frequencies(6)))
    assert torch.equal(y[..., 6:], x[..., 6:])
    torch.testing.assert_close(y[..., :6], turn(x[..., :6], torch.arange(5)))


def peer_frequencies(kind, rotary_width, base, length, max_position, **parameters):
    """transformers' own: (frequencies, attention factor)."""
    config = LlamaConfig(
        hidden_size=7 * rotary_width,
        num_attention_heads=7,
        head_dim=rotary_width,
        max_position_embeddings=max_position,
        rope_parameters={"rope_type": kind, "rope_theta": base, **parameters},
    )
    return ROPE_INIT_FUNCTIONS[kind](config, device="cpu", seq_len=length)


SHORT, LONG = tuple(1 + i / 7 for i in range(12)), tuple(3 + i * i / 5 for i in range(12))


@pytest.mark.parametrize(
    ("scaling", "length", "kind", "parameters"),
    [
        (RopeScaling("linear", 4.0), 9, "linear", {"factor": 4.0}),
        (RopeScaling("dynamic", 3.0, 64), 40, "dynamic", {"factor": 3.0}),
        (RopeScaling("dynamic", 3.0, 64), 200, "dynamic", {"factor": 3.0}),
        (RopeScaling("ntk", 5.0, 64), 9, "dynamic", {"factor": 1.0, "length": 320}),
        (RopeScaling("yarn", 8.0, 64), 9, "yarn", {"factor": 8.0}),
        (
            RopeScaling("yarn", 8.0, 64, beta_fast=20.0, beta_slow=2.0, truncate=False),
            9,
            "yarn",
            {"factor": 8.0, "beta_fast": 20.0, "beta_slow": 2.0, "truncate": False},
        ),
        (RopeScaling("yarn", 8.0, 6), 9, "yarn", {"factor": 8.0, "original_max_position_embeddings": 6}),  # no ramp
        (
            RopeScaling("yarn", 8.0, 2_000_000, beta_fast=1e5),  # a ramp inside, which would end beyond the last pair
            9,
            "yarn",
            {"factor": 8.0, "original_max_position_embeddings": 2_000_000, "beta_fast": 1e5},
        ),
        (RopeScaling("yarn", 8.0, 64, attention_factor=0.7), 9, "yarn", {"factor": 8.0, "attention_factor": 0.7}),
        (RopeScaling("yarn", 1.5, 64), 9, "yarn", {"factor": 1.5}),
        (RopeScaling("yarn", 8.0, 64, mscale=0.7), 9, "yarn", {"factor": 8.0, "mscale": 0.7}),
        (
            RopeScaling("yarn", 8.0, 64, mscale=0.7, mscale_all_dim=1.3),
            9,
            "yarn",
            {"factor": 8.0, "mscale": 0.7, "mscale_all_dim": 1.3},
        ),
        (
            RopeScaling("llama3", 8.0, 64, low_frequency=1.0, high_frequency=4.0),
            9,
            "llama3",
            {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
        ),
        (
            RopeScaling("longrope", 8.0, 64, short_factors=SHORT, long_factors=LONG),
            64,
            "longrope",
            {"factor": 8.0, "short_factor": SHORT, "long_factor": LONG},
        ),
        (
            RopeScaling("longrope", 8.0, 64, short_factors=SHORT, long_factors=LONG),
            65,
            "longrope",
            {"factor": 8.0, "short_factor": SHORT, "long_factor": LONG},
        ),
    ],
)
def test_scalings_are_those_of_transformers(scaling, length, kind, parameters):
    parameters = {"original_max_position_embeddings": 64, **parameters}
    peer_length = parameters.pop("length", length)
    peer, magnitude = peer_frequencies(kind, 24, 500.0, peer_length, 64, **parameters)
    ours = rotary_frequencies(24, 500.0, scaling, length, torch.float32)
    torch.testing.assert_close(ours, peer, rtol=2e-6, atol=0)
    assert not torch.allclose(ours, rotary_frequencies(24, 500.0, dtype=torch.float32)) or length == 40
    assert rotary_magnitude(scaling) == pytest.approx(magnitude, rel=1e-12)


@pytest.mark.parametrize("factor", [0.5, 1.0])
@pytest.mark.parametrize("kind", ["yarn", "longrope"])
def test_what_stretches_nothing_sharpens_nothing(kind, factor):
    assert rotary_magnitude(RopeScaling(kind, factor, 64, short_factors=SHORT, long_factors=LONG)) == 1


def test_ntk_stretches_the_slowest_pair_by_the_factor_and_the_fastest_not_at_all():
    plain, scaled = rotary_frequencies(24), rotary_frequencies(24, scaling=RopeScaling("ntk", 5.0))
    assert float(plain[0] / scaled[0]) == 1
    assert float(plain[-1] / scaled[-1]) == pytest.approx(5)


def test_what_cannot_rotate_is_refused():
    with pytest.raises(ValueError, match="width must be even and at least 2 to form pairs, got 5"):
        rotary_frequencies(5)
    with pytest.raises(ValueError, match=r"rope_scaling.kind 'ntk' needs a rotary_width of at least 4, got 2"):
        rotary_frequencies(2, scaling=RopeScaling("ntk", 2.0))

    with pytest.raises(ValueError, match=r"^rope_base must be above 1 for rope_scaling.kind 'yarn', got 1.0$"):
        rotary_frequencies(8, 1.0, RopeScaling("yarn", 2.0))
    assert rotary_frequencies(8, 1.5, RopeScaling("yarn", 2.0)).isfinite().all()


def test_the_furthest_position_decides_about_dynamic_scaling(small):
    scaling = RopeScaling("dynamic", 3.0, 8)
    config = small.replace(rope_scaling=scaling)
    positions = torch.tensor([[0, 0, 1], [10, 11, 12]])
    sin = layer_rotation(config, positions, False, torch.float64)[1]  # (2, 1, 3, pairs)
    torch.testing.assert_close(
        sin[:, 0], (positions[..., None] * rotary_frequencies(4, scaling=scaling, length=13)).sin()
    )


def test_yarn_and_longrope_scale_the_tables(small):
    config = small.replace(rope_scaling=RopeScaling("yarn", 4.0, 8, attention_factor=2.0))
    cos, sin = layer_rotation(config, torch.arange(5)[None], False, torch.float64)
    torch.testing.assert_close(cos.square() + sin.square(), torch.full_like(cos, 4))


def test_windowed_layers_with_their_own_base_are_not_scaled(small):
    config = small.replace(rope_base_windowed=100.0, rope_scaling=RopeScaling("linear", 4.0), window=5)
    positions = torch.arange(6)[None]
    full = layer_rotation(config, positions, False, torch.float64)
    windowed = layer_rotation(config, positions, True, torch.float64)
    torch.testing.assert_close(full[1][0, 0], rotary_tables(positions[0], rotary_frequencies(4) / 4)[1])
    torch.testing.assert_close(windowed[1][0, 0], rotary_tables(positions[0], rotary_frequencies(4, 100.0))[1])


def test_angles_are_exact_beyond_what_bfloat16_can_count():
    cos, _ = layer_rotation(Config(), torch.tensor([[257]]), False, torch.bfloat16)
    assert cos.dtype == torch.bfloat16
    assert float(cos[0, 0, 0, 0]) == float(torch.tensor(math.cos(257)).bfloat16())


@pytest.mark.parametrize(("dtype", "least", "most"), [(torch.float64, 0, 1e-9), (torch.float32, 1e-4, 0.1)])
def test_angles_are_of_float32_but_for_float64(small, dtype, least, most):
    position, base = 1_000_003, 10_000.0
    _, sin = layer_rotation(small.replace(rope_base=base), torch.tensor([[position]]), False, dtype)
    exact = [math.sin(position * base ** (-2 * i / small.head_width)) for i in range(small.head_width // 2)]
    gap = max(abs(found - true) for found, true in zip(sin.flatten().tolist(), exact, strict=True))
    assert sin.dtype == dtype and least <= gap <= most


def test_sinusoidal_positions():
    for width, whole in ((6, 6), (8, 8), (7, 8)):
        table = sinusoidal_positions(torch.arange(50), width, torch.float64)
        assert table.shape == (50, width)
        for position in (0, 1, 49):
            angles = [position / 10_000 ** (2 * i / whole) for i in range(whole // 2)]
            expected = [wave(angle) for angle in angles for wave in (math.sin, math.cos)][:width]
            assert table[position].tolist() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("heads", [1, 4, 6, 8, 12, 20])
def test_alibi_slopes_are_those_of_bloom_and_mpt(heads):
    ours = alibi_slopes(heads, torch.float32)
    bloom = build_alibi_tensor(torch.ones(1, 2), heads, torch.float32)[:, 0, 1]
    mpt = build_mpt_alibi_tensor(heads, 2)[:, 0, 0].abs()
    torch.testing.assert_close(ours, bloom)
    torch.testing.assert_close(ours, mpt)
