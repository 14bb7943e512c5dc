"""Positions: how a decoder learns where a token stands.

Rotary positions (Su et al., 2104.09864) turn pairs of query and key coordinates, so that a score depends on the
offset between two tokens. Learned and sinusoidal positions are added to the embedding, ALiBi (Press et al.,
2108.12409) to the scores. A position counts the real tokens of a row from 0; left padding has negative positions.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from decoder.config import Config, Pairing, RopeScaling


def rotary_frequencies(
    width: int,
    base: float = 10_000.0,
    scaling: RopeScaling | None = None,
    length: int = 0,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str | None = None,
) -> Tensor:
    """Radians per position of each rotated pair, ``base ** (-2i / width)`` for pair i: (width / 2,).

    ``scaling`` changes them to reach further. ``length`` is the number of tokens seen so far. It decides in
    the kinds ``dynamic`` and ``longrope`` only, where keys that are cached by then keep the frequencies of their call.
    Raises ValueError for a ``width`` that is odd or, as the ``base``, too small for the scaling.
    """
    if width < 2 or width % 2:
        raise ValueError(f"width must be even and at least 2 to form pairs, got {width}")
    exponents = torch.arange(0, width, 2, dtype=dtype, device=device) / width
    frequencies = base**-exponents
    if scaling is None:
        return frequencies
    if scaling.kind == "linear":
        return frequencies / scaling.factor
    if scaling.kind in ("ntk", "dynamic"):
        return (base * _base_growth(width, scaling, length)) ** -exponents
    if scaling.kind == "yarn":
        kept = _yarn_kept(width, base, scaling).to(frequencies)
        return frequencies * kept + frequencies / scaling.factor * (1 - kept)
    if scaling.kind == "llama3":
        turns = scaling.original_context * frequencies / (2 * math.pi)
        span = scaling.high_frequency - scaling.low_frequency
        kept = ((turns - scaling.low_frequency) / span).clamp(0, 1)
        return frequencies * kept + frequencies / scaling.factor * (1 - kept)
    factors = scaling.long_factors if length > scaling.original_context else scaling.short_factors
    return frequencies / torch.tensor(factors, dtype=dtype, device=device)


def _base_growth(width: int, scaling: RopeScaling, length: int) -> float:
    """NTK-aware growth of the base: it stretches the slowest pair by the factor and the fastest not at all."""
    if width == 2:
        raise ValueError(f"rope_scaling.kind {scaling.kind!r} needs a rotary_width of at least 4, got 2")
    stretch = scaling.factor
    if scaling.kind == "dynamic":
        stretch = scaling.factor * max(length, scaling.original_context) / scaling.original_context - scaling.factor + 1
    return stretch ** (width / (width - 2))


def _yarn_kept(width: int, base: float, scaling: RopeScaling) -> Tensor:
    """YaRN's ramp (2309.00071, section 3.2): 1 for pairs left as they are, 0 for pairs slowed by the factor."""
    if base <= 1:
        raise ValueError(f"rope_base must be above 1 for rope_scaling.kind 'yarn', got {base}")

    def pair_that_turns(times: float) -> float:
        return width * math.log(scaling.original_context / (times * 2 * math.pi)) / (2 * math.log(base))

    first, last = pair_that_turns(scaling.beta_fast), pair_that_turns(scaling.beta_slow)
    if scaling.truncate:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, width - 1)
    last = last if last != first else first + 0.001  # a step, where the ramp has no length
    return 1 - ((torch.arange(width // 2, dtype=torch.float64) - first) / (last - first)).clamp(0, 1)


def rotary_magnitude(scaling: RopeScaling | None) -> float:
    """What rotated queries and keys are multiplied by: 1, but for YaRN and LongRoPE, which sharpen the scores."""
    if scaling is None or scaling.kind not in ("yarn", "longrope"):
        return 1.0
    if scaling.attention_factor is not None:
        return scaling.attention_factor
    if scaling.factor <= 1:
        return 1.0
    if scaling.kind == "longrope":
        return math.sqrt(1 + math.log(scaling.factor) / math.log(scaling.original_context))
    if scaling.mscale and scaling.mscale_all_dim:
        return _yarn_magnitude(scaling.factor, scaling.mscale) / _yarn_magnitude(scaling.factor, scaling.mscale_all_dim)
    return _yarn_magnitude(scaling.factor, 1.0)


def _yarn_magnitude(factor: float, weight: float) -> float:
    return 0.1 * weight * math.log(factor) + 1


# --8<-- [start:rotary]
def rotary_tables(positions: Tensor, frequencies: Tensor, dtype: torch.dtype | None = None) -> tuple[Tensor, Tensor]:
    """Cosine and sine of position times frequency, each (..., T, pairs), cast to ``dtype`` at the end.

    The angles keep the dtype of the frequencies: in bfloat16 positions above 256 would no longer be exact.
    """
    angles = positions[..., None].to(frequencies) * frequencies  # (..., T, pairs)
    return angles.cos().to(dtype), angles.sin().to(dtype)


def apply_rotary(x: Tensor, cos: Tensor, sin: Tensor, pairing: Pairing = "adjacent") -> Tensor:
    """Turn each coordinate pair (a, b) of ``x`` counterclockwise: (a cos - b sin, a sin + b cos).

    ``x`` is (B, heads, T, head_width), ``cos`` and ``sin`` broadcast to (B, heads, T, pairs). The first 2 * pairs
    coordinates turn, the others pass. Pairing ``"adjacent"`` takes coordinates (0, 1), (2, 3), ...; ``"half"``
    takes (0, r/2), (1, r/2 + 1), ... of r rotated ones. Weights made for one are wrong for the other: see
    `half_from_adjacent`.
    """
    pairs = cos.shape[-1]
    turned, passed = x[..., : 2 * pairs], x[..., 2 * pairs :]
    shape, side = ((pairs, 2), -1) if pairing == "adjacent" else ((2, pairs), -2)
    a, b = turned.unflatten(-1, shape).unbind(side)  # (B, heads, T, pairs) each
    turned = torch.stack((a * cos - b * sin, a * sin + b * cos), side).flatten(-2)
    return torch.cat((turned, passed), -1) if passed.shape[-1] else turned


# --8<-- [end:rotary]
def half_from_adjacent(head_width: int, rotary_width: int | None = None) -> Tensor:
    """The order in which to take a head's adjacent-pair rows so that they serve half-split pairs: (head_width,).

    ``weight.unflatten(0, (heads, head_width))[:, order]`` converts a query or key projection; ``order.argsort()``
    leads back.
    """
    rotated = head_width if rotary_width is None else rotary_width
    order = torch.arange(head_width)
    return torch.cat((order[:rotated:2], order[1:rotated:2], order[rotated:]))


def sinusoidal_positions(positions: Tensor, width: int, dtype: torch.dtype | None = None) -> Tensor:
    """Sine on even, cosine on odd coordinates (Vaswani et al., 1706.03762, section 3.5): (..., T, width)."""
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    frequencies = rotary_frequencies(width + width % 2, dtype=wide, device=positions.device)
    cos, sin = rotary_tables(positions, frequencies, dtype)
    return torch.stack((sin, cos), -1).flatten(-2)[..., :width]


def alibi_slopes(heads: int, dtype: torch.dtype = torch.float64, device: torch.device | str | None = None) -> Tensor:
    """What each head takes off a score per position of distance: (heads,).

    For a power of two n, head i has slope 2 ** (-8 (i + 1) / n). Other counts take the slopes of the power of two
    below, then every second one of the power above (the rule of the paper's released code).
    """
    below = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-8 * (i + 1) / below) for i in range(below)]
    slopes += [2 ** (-4 * (2 * i + 1) / below) for i in range(heads - below)]
    return torch.tensor(slopes, dtype=dtype, device=device)


def layer_rotation(
    config: Config, positions: Tensor, windowed: bool, dtype: torch.dtype
) -> tuple[Tensor, Tensor] | None:
    """Cosine and sine for the layers of one kind, (B, 1, T, pairs) each, or None where nothing rotates."""
    if config.positions != "rotary":
        return None
    base, scaling = config.rope_base, config.rope_scaling
    if windowed and config.rope_base_windowed is not None:
        base, scaling = config.rope_base_windowed, None
    length = int(positions.max()) + 1 if scaling is not None and scaling.kind in ("dynamic", "longrope") else 0
    angle_dtype = torch.float64 if dtype == torch.float64 else torch.float32
    frequencies = rotary_frequencies(config.rotary_width, base, scaling, length, angle_dtype, positions.device)
    cos, sin = rotary_tables(positions[:, None], frequencies, angle_dtype)
    magnitude = rotary_magnitude(scaling)
    if magnitude != 1:
        cos, sin = cos * magnitude, sin * magnitude
    return cos.to(dtype), sin.to(dtype)
