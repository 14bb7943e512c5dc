"""A decoder with every design choice as a named option, in one file. It needs Python 3.11 and torch.

    python architecture.py

runs the self-check. Made from the modules of the package ``decoder``; edit those, not this.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn


# ----------------------------------------------------------------------------------------------------------------------
# config
#
# Every choice of a decoder, by name.
#
# One frozen dataclass holds the sizes and the choices. Each axis of the book is a field; a value that no chapter
# describes is refused with the list of those that one does. The defaults are the book's 100M design.
#
# Notation: B batch, T tokens, d width, L layers, H heads, K kv_heads, h head_width, m hidden, V vocab.
# ----------------------------------------------------------------------------------------------------------------------

Norm = Literal["rms", "layer"]
NormScale = Literal["weight", "one_plus_weight", "none"]
NormPlacement = Literal["pre", "post", "both", "output"]
QKNorm = Literal["none", "head", "full", "per_head_weights"]
Positions = Literal["rotary", "learned", "sinusoidal", "alibi", "none"]
Pairing = Literal["adjacent", "half"]
Activation = Literal["gelu", "gelu_tanh", "relu", "relu2", "silu", "identity"]
BlockKind = Literal["serial", "parallel"]
Scores = Literal["softmax", "sigmoid"]
RopeScalingKind = Literal["linear", "ntk", "dynamic", "yarn", "llama3", "longrope"]


def _whole(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{name} must be a whole number, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")


def _number(name: str, value: object, above: float = 0.0) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} must be a number, got {value!r}")
    if not math.isfinite(value) or value <= above:
        raise ValueError(f"{name} must be finite and above {above:g}, got {value!r}")


def _choice(name: str, value: object, kind: object) -> None:
    known = get_args(kind)
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}")


def _layer_numbers(name: str, value: object, layers: int) -> None:
    if not isinstance(value, tuple) or any(isinstance(i, bool) or not isinstance(i, int) for i in value):
        raise ValueError(f"{name} must be a tuple of layer numbers, got {value!r}")
    if list(value) != sorted(set(value)) or (value and not 0 <= value[0] <= value[-1] < layers):
        raise ValueError(f"{name} must be rising layer numbers from 0 to {layers - 1}, got {value!r}")


@dataclass(frozen=True)
class RopeScaling:
    """How rotary frequencies are changed to reach beyond the trained context.

    ``factor`` is new context / ``original_context``. The other fields belong to one kind each and carry the name
    used in that kind's paper: YaRN's ``beta_fast``/``beta_slow`` ramp and ``attention_factor``, Llama 3's
    ``low_frequency``/``high_frequency`` factors, LongRoPE's per-pair ``short_factors``/``long_factors``.
    """

    kind: RopeScalingKind
    factor: float = 1.0
    original_context: int = 2048
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True
    attention_factor: float | None = None
    mscale: float | None = None
    mscale_all_dim: float | None = None
    low_frequency: float = 1.0
    high_frequency: float = 4.0
    short_factors: tuple[float, ...] = ()
    long_factors: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        _choice("rope_scaling.kind", self.kind, RopeScalingKind)
        _number("rope_scaling.factor", self.factor)
        _whole("rope_scaling.original_context", self.original_context, 2 if self.kind == "longrope" else 1)
        for name in ("beta_fast", "beta_slow", "low_frequency", "high_frequency"):
            _number(f"rope_scaling.{name}", getattr(self, name))
        for name in ("attention_factor", "mscale", "mscale_all_dim"):
            if getattr(self, name) is not None:
                _number(f"rope_scaling.{name}", getattr(self, name))
        for name in ("short_factors", "long_factors"):
            for i, value in enumerate(getattr(self, name)):
                _number(f"rope_scaling.{name}[{i}]", value)
        if self.kind == "llama3" and self.high_frequency <= self.low_frequency:
            raise ValueError(
                "rope_scaling.high_frequency must be above rope_scaling.low_frequency, "
                f"got {self.high_frequency} and {self.low_frequency}"
            )
        if self.kind == "longrope" and (not self.short_factors or len(self.short_factors) != len(self.long_factors)):
            raise ValueError(
                "rope_scaling.short_factors and long_factors must hold one number per rotated pair each, "
                f"got {len(self.short_factors)} and {len(self.long_factors)}"
            )


@dataclass(frozen=True)
class LatentAttention:
    """Multi-head latent attention (DeepSeek-V2, 2405.04434, section 2.1): one latent and one rotary key are cached."""

    kv_rank: int  # c: width of the cached latent
    rope_width: int  # r: width of the shared rotary key
    nope_width: int  # n: width of the part of each head that is not rotated
    value_width: int  # v: width of each value head
    query_rank: int | None = None  # q: width of the query latent, None for a direct projection

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name != "query_rank" or value is not None:
                _whole(f"latent.{field.name}", value, 1)


@dataclass(frozen=True)
class Experts:
    """Mixture of experts in place of the feed-forward part."""

    count: int  # E: routed experts
    per_token: int  # experts that one token visits
    hidden: int  # hidden width of one routed expert
    shared: int = 0  # experts that every token visits
    shared_hidden: int = None  # type: ignore[assignment]  # of all shared experts together, None: shared * hidden
    shared_gate: bool = False  # a sigmoid gate on the shared part (d weights)
    dense_layers: tuple[int, ...] = ()  # layers that keep one dense feed-forward of width Config.hidden
    router_bias: bool = False  # a trained bias on the router's scores
    selection_bias: bool = False  # DeepSeek-V3's bias used for selection only (a buffer, not a parameter)
    bias: bool = False  # biases inside the experts
    scores: Scores = "softmax"  # of the router, over all experts
    normalised: bool = True  # the weights of the visited experts sum to 1 (Mixtral)
    routed_scale: float = 1.0  # times those weights
    groups: int = 1  # equal groups of experts
    groups_per_token: int = 1  # groups that one token's experts come from
    group_best: int = 1  # a group ranks by the sum of this many of its best scores

    def __post_init__(self) -> None:
        _whole("experts.count", self.count, 1)
        _whole("experts.per_token", self.per_token, 1)
        _whole("experts.hidden", self.hidden, 1)
        _whole("experts.shared", self.shared, 0)
        if self.per_token > self.count:
            raise ValueError(f"experts.per_token must be at most experts.count {self.count}, got {self.per_token}")
        _choice("experts.scores", self.scores, Scores)
        _number("experts.routed_scale", self.routed_scale)
        self._check_groups()
        if self.shared_hidden is None:
            object.__setattr__(self, "shared_hidden", self.shared * self.hidden)
        _whole("experts.shared_hidden", self.shared_hidden, 1 if self.shared else 0)

    def _check_groups(self) -> None:
        _whole("experts.groups", self.groups, 1)
        _whole("experts.groups_per_token", self.groups_per_token, 1)
        _whole("experts.group_best", self.group_best, 1)
        if self.count % self.groups:
            raise ValueError(f"experts.groups must divide experts.count {self.count}, got {self.groups}")
        if self.groups_per_token > self.groups:
            raise ValueError(
                f"experts.groups_per_token must be at most experts.groups {self.groups}, got {self.groups_per_token}"
            )
        size = self.count // self.groups
        if self.groups_per_token < self.groups and self.group_best > size:
            raise ValueError(f"experts.group_best must be at most the {size} experts of a group, got {self.group_best}")
        if self.per_token > self.groups_per_token * size:
            raise ValueError(
                f"experts.per_token must be at most the {self.groups_per_token * size} experts of "
                f"experts.groups_per_token groups, got {self.per_token}"
            )


DERIVED = ("head_width", "rotary_width", "position_rows", "windowed_layers")  # fields that None leaves to be derived


@dataclass(frozen=True)
class Config:
    """A decoder, whole. Sizes are counts; the fields that may be left None are derived, and whole once it is made.

    Raises ValueError, naming the field, the value and the rule, for anything that cannot be built.
    """

    # sizes
    vocab: int = 32_000
    context: int = 2_048
    layers: int = 12
    width: int = 768
    hidden: int = 2_048
    heads: int = 12
    head_width: int = None  # type: ignore[assignment]  # None: width / heads
    kv_heads: int = 4

    # norms
    norm: Norm = "rms"
    norm_scale: NormScale = "weight"
    norm_bias: bool = False
    norm_eps: float = 1e-6
    norm_placement: NormPlacement = "pre"
    final_norm: bool = True
    embedding_norm: bool = False
    residual_scale: float = 1.0  # DeepNorm's alpha: x * alpha + branch
    qk_norm: QKNorm = "none"

    # positions
    positions: Positions = "rotary"
    rope_pairing: Pairing = "adjacent"
    rope_base: float = 10_000.0
    rope_base_windowed: float | None = None  # the base on windowed layers, None: rope_base
    rotary_width: int = None  # type: ignore[assignment]  # rotated coordinates of a head, None: all
    rope_scaling: RopeScaling | None = None  # of full layers; windowed layers are scaled only without their own base
    no_rope_layers: tuple[int, ...] = ()
    position_rows: int = None  # type: ignore[assignment]  # rows of a learned table, None: context

    # attention
    attention_bias: str = ""  # which projections have a bias: letters of "qkvo"
    attention_scale: float | None = None  # None: head_width ** -0.5
    attention_softcap: float | None = None
    window: int | None = None  # keys a windowed layer sees, the current one included
    windowed_layers: tuple[int, ...] = None  # type: ignore[assignment]  # None: every layer, where window is set
    sinks: bool = False  # one learned logit a head in the softmax's denominator
    latent: LatentAttention | None = None

    # feed-forward
    activation: Activation = "silu"
    gated: bool = True
    hidden_bias: bool = False
    experts: Experts | None = None

    # block and model
    block: BlockKind = "serial"
    parallel_norms: int = 1
    tied: bool = True
    embedding_width: int | None = None  # None: width; else two projections lead in and out (OPT-350M)
    embedding_scale: float = 1.0
    head_bias: bool = False
    logit_scale: float = 1.0
    logit_softcap: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "_derived", [name for name in DERIVED if getattr(self, name) is None])
        for name in ("vocab", "width", "layers", "heads", "kv_heads", "hidden", "context"):
            _whole(name, getattr(self, name), 1)
        if self.head_width is None:
            if self.width % self.heads:
                raise ValueError(
                    f"width must be divisible by heads when head_width is not given, got {self.width} and {self.heads}"
                )
            object.__setattr__(self, "head_width", self.width // self.heads)
        _whole("head_width", self.head_width, 1)
        if self.heads % self.kv_heads:
            raise ValueError(f"heads must be divisible by kv_heads, got {self.heads} and {self.kv_heads}")
        for name, kind in (
            ("norm", Norm), ("norm_scale", NormScale), ("norm_placement", NormPlacement), ("qk_norm", QKNorm),
            ("positions", Positions), ("rope_pairing", Pairing), ("activation", Activation), ("block", BlockKind),
        ):  # fmt: skip
            _choice(name, getattr(self, name), kind)
        for name in ("norm_eps", "rope_base", "residual_scale", "embedding_scale", "logit_scale"):
            _number(name, getattr(self, name))
        for name in ("rope_base_windowed", "attention_scale", "attention_softcap", "logit_softcap"):
            if getattr(self, name) is not None:
                _number(name, getattr(self, name))
        for name in (
            "norm_bias", "final_norm", "embedding_norm", "sinks", "gated", "hidden_bias", "tied", "head_bias",
        ):  # fmt: skip
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} must be True or False, got {getattr(self, name)!r}")
        for name, part in (("rope_scaling", RopeScaling), ("latent", LatentAttention), ("experts", Experts)):
            value = getattr(self, name)
            if value is not None and not isinstance(value, part):
                raise ValueError(f"{name} must be a {part.__name__} or None, got {value!r}")
        self._check_positions()
        self._check_attention()
        self._check_block()

    def _check_positions(self) -> None:
        if self.rotary_width is None:
            object.__setattr__(self, "rotary_width", self.latent.rope_width if self.latent else self.head_width)
        _whole("rotary_width", self.rotary_width, 1)
        if self.positions == "rotary":
            limit = self.latent.rope_width if self.latent else self.head_width
            if self.rotary_width % 2 or self.rotary_width > limit:
                raise ValueError(
                    f"rotary_width must be even and at most {limit}, the width of a rotated head, "
                    f"got {self.rotary_width}"
                )
        scaling = self.rope_scaling
        if scaling is not None and scaling.kind in ("ntk", "dynamic") and self.rotary_width < 4:
            raise ValueError(
                f"rotary_width must be at least 4 for rope_scaling.kind {scaling.kind!r}, got {self.rotary_width}"
            )
        if scaling is not None and scaling.kind == "yarn" and self.rope_base <= 1:
            raise ValueError(f"rope_base must be above 1 for rope_scaling.kind 'yarn', got {self.rope_base}")
        if scaling is not None and scaling.kind == "longrope" and len(scaling.short_factors) * 2 != self.rotary_width:
            raise ValueError(
                f"rope_scaling.short_factors must hold {self.rotary_width // 2} numbers, one per rotated pair, "
                f"got {len(scaling.short_factors)}"
            )
        _layer_numbers("no_rope_layers", self.no_rope_layers, self.layers)
        if self.position_rows is None:
            object.__setattr__(self, "position_rows", self.context)
        _whole("position_rows", self.position_rows, self.context)

    def _check_attention(self) -> None:
        bias = self.attention_bias
        if not isinstance(bias, str) or bias != "".join(c for c in "qkvo" if c in bias):
            raise ValueError(f"attention_bias must be letters of 'qkvo' in that order, got {bias!r}")
        if self.window is not None:
            _whole("window", self.window, 1)
            if self.windowed_layers is None:
                object.__setattr__(self, "windowed_layers", tuple(range(self.layers)))
            _layer_numbers("windowed_layers", self.windowed_layers, self.layers)
        elif self.windowed_layers:
            raise ValueError(f"windowed_layers needs a window, got {self.windowed_layers} and window None")
        else:
            object.__setattr__(self, "windowed_layers", ())

    def _check_block(self) -> None:
        if self.parallel_norms not in (1, 2):
            raise ValueError(f"parallel_norms must be 1 or 2, got {self.parallel_norms!r}")
        if self.block == "parallel" and self.norm_placement != "pre":
            raise ValueError(f"a parallel block needs norm_placement 'pre', got {self.norm_placement!r}")
        if self.norm_bias and (self.norm != "layer" or self.norm_scale == "none"):
            raise ValueError("norm_bias belongs to a LayerNorm with a scale")
        if self.embedding_width is not None:
            _whole("embedding_width", self.embedding_width, 1)
        if self.experts is not None:
            _layer_numbers("experts.dense_layers", self.experts.dense_layers, self.layers)

    def replace(self, **changes: Any) -> Config:
        """A copy with some fields changed, validated anew. What was derived is derived again; what was stated stays."""
        return replace(self, **(dict.fromkeys(vars(self)["_derived"]) | changes))


# ----------------------------------------------------------------------------------------------------------------------
# norms
#
# Normalization: which statistics a norm takes, and how it scales the result.
#
# RMSNorm (Zhang and Sennrich, 1910.07467) divides by the root of the mean square. LayerNorm (Ba et al., 1607.06450)
# first subtracts the mean. Where the norms stand in a block is decided in `decoder.block`.
# ----------------------------------------------------------------------------------------------------------------------

def wide(x: Tensor) -> Tensor:
    """``x`` in the dtype that sums are taken in: float32 for half types, its own dtype otherwise."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def rms_norm(x: Tensor, eps: float) -> Tensor:
    """``x / sqrt(mean(x²) + eps)`` over the last dimension, in the dtype of ``x``."""
    y = wide(x)
    return (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + eps)).to(x.dtype)


def layer_norm(x: Tensor, eps: float) -> Tensor:
    """``(x - mean(x)) / sqrt(var(x) + eps)`` over the last dimension, with the population variance."""
    y = wide(x)
    y = y - y.mean(-1, keepdim=True)
    return (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + eps)).to(x.dtype)


class RMSNorm(nn.Module):
    """Root-mean-square norm over the last dimension, with a learned scale of ``width`` numbers.

    ``scale`` says what multiplies the result: ``"weight"``, ``"one_plus_weight"`` (Gemma stores the scale minus one)
    or ``"none"``. With ``heads`` the scale has one row a head, for input (..., heads, width). The statistics are
    taken in float32 for half types; the result is cast back before it is scaled in the dtype of the input.
    """

    normalize = staticmethod(rms_norm)
    weight: nn.Parameter | None

    def __init__(self, width: int, eps: float = 1e-6, scale: NormScale = "weight", heads: int | None = None) -> None:
        super().__init__()
        self.eps, self.scale = eps, scale
        self.shape = (width,) if heads is None else (heads, width)
        start = torch.zeros if scale == "one_plus_weight" else torch.ones
        self.register_parameter("weight", None if scale == "none" else nn.Parameter(start(self.shape)))

    def forward(self, x: Tensor) -> Tensor:  # (..., width) -> (..., width)
        y = self.normalize(x, self.eps)
        if self.weight is None:
            return y
        return y * (1 + self.weight if self.scale == "one_plus_weight" else self.weight)


class LayerNorm(RMSNorm):
    """LayerNorm over the last dimension: as `RMSNorm`, with the mean removed and, with ``bias``, a learned shift."""

    normalize = staticmethod(layer_norm)
    bias: nn.Parameter | None

    def __init__(
        self,
        width: int,
        eps: float = 1e-5,
        scale: NormScale = "weight",
        bias: bool = False,
        heads: int | None = None,
    ) -> None:
        super().__init__(width, eps, scale, heads)
        self.register_parameter("bias", nn.Parameter(torch.zeros(self.shape)) if bias else None)

    def forward(self, x: Tensor) -> Tensor:  # (..., width) -> (..., width)
        y = super().forward(x)
        return y if self.bias is None else y + self.bias


def make_norm(config: Config, width: int, heads: int | None = None) -> RMSNorm:
    """The norm that ``config`` asks for, over ``width`` numbers."""
    if config.norm == "layer":
        return LayerNorm(width, config.norm_eps, config.norm_scale, config.norm_bias, heads)
    return RMSNorm(width, config.norm_eps, config.norm_scale, heads)


# ----------------------------------------------------------------------------------------------------------------------
# positions
#
# Positions: how a decoder learns where a token stands.
#
# Rotary positions (Su et al., 2104.09864) turn pairs of query and key coordinates, so that a score depends on the
# offset between two tokens. Learned and sinusoidal positions are added to the embedding, ALiBi (Press et al.,
# 2108.12409) to the scores. A position counts the real tokens of a row from 0; left padding has negative positions.
# ----------------------------------------------------------------------------------------------------------------------

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


# ----------------------------------------------------------------------------------------------------------------------
# cache
#
# The key/value cache: what a decoder keeps of the tokens it has read.
#
# Compact: the K key/value heads are stored, never the H repeated ones. A windowed layer keeps a ring of its last
# ``window`` tokens. Keys are stored rotated, so a cached key keeps the position it was read at. Latent attention stores
# its latent in the place of the keys and its rotary key in the place of the values, one head each.
# ----------------------------------------------------------------------------------------------------------------------

class LayerCache:
    """Keys and values of one layer, in a ring of ``capacity`` tokens that is reserved at the first call."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.length = 0  # tokens read so far; the last `capacity` of them are held
        self.keys: Tensor | None = None  # (B, K, capacity, h)
        self.values: Tensor | None = None  # (B, K, capacity, h)

    @property
    def held(self) -> int:
        return min(self.length, self.capacity)

    @property
    def nbytes(self) -> int:
        """Bytes of the keys and values held."""
        if self.keys is None or self.values is None:
            return 0
        return self.keys[:, :, : self.held].nbytes + self.values[:, :, : self.held].nbytes

    @property
    def reserved_nbytes(self) -> int:
        """Bytes of the whole ring."""
        return 0 if self.keys is None or self.values is None else self.keys.nbytes + self.values.nbytes

    def indices(self, new: int, device: torch.device | None = None) -> Tensor:
        """Which tokens the next `update` with ``new`` tokens returns, in its order, counted from 0."""
        last = self.length + new - 1
        if self._in_place(new):
            slots = torch.arange(min(last + 1, self.capacity), device=device)
            return last - (last - slots) % self.capacity
        return torch.arange(self.length - self.held, last + 1, device=device)

    def update(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Store ``keys`` and ``values``, (B, K, T, h); return all that these T tokens may look at, (B, K, S, h)."""
        if self.keys is None or self.values is None:
            self.keys = keys.new_empty(*keys.shape[:2], self.capacity, keys.shape[3])
            self.values = values.new_empty(*values.shape[:2], self.capacity, values.shape[3])
        new = keys.shape[2]
        in_place = self._in_place(new)
        if not in_place:  # some of the new tokens still need what the others overwrite
            past = torch.arange(self.length - self.held, self.length, device=keys.device) % self.capacity
            keys = torch.cat((self.keys[:, :, past], keys), 2)
            values = torch.cat((self.values[:, :, past], values), 2)
        self.length += new
        stored = min(keys.shape[2], self.capacity)
        first = (self.length - stored) % self.capacity
        if first + stored <= self.capacity:
            slots: slice | Tensor = slice(first, first + stored)
        else:
            slots = torch.arange(first, first + stored, device=keys.device) % self.capacity
        self.keys[:, :, slots] = keys[:, :, -stored:]
        self.values[:, :, slots] = values[:, :, -stored:]
        if not in_place:
            return keys, values
        return self.keys[:, :, : self.held], self.values[:, :, : self.held]

    def _in_place(self, new: int) -> bool:
        return new == 1 or self.length + new <= self.capacity


class KVCache:
    """The caches of all layers, and where the rows stand.

    ``capacity`` is the number of tokens to reserve room for, by default the context. The dtype, device and batch
    size are those of the first call's keys. A cache is written in place: use it under ``torch.no_grad()``, and train
    without one. Raises ValueError for a capacity that is no whole number from 1 to the context.
    """

    def __init__(self, config: Config, capacity: int | None = None) -> None:
        capacity = config.context if capacity is None else capacity
        if isinstance(capacity, bool) or not isinstance(capacity, int) or not 1 <= capacity <= config.context:
            raise ValueError(
                f"capacity must be a whole number from 1 to the context {config.context}, got {capacity!r}"
            )
        self.config, self.capacity = config, capacity
        self.padding: Tensor | None = None  # left padding of each row, (B, 1); None where there is none
        self.layers = [
            LayerCache(min(capacity, config.window or capacity) if layer in config.windowed_layers else capacity)
            for layer in range(config.layers)
        ]

    @property
    def length(self) -> int:
        """Tokens read so far, padding included."""
        return self.layers[0].length

    def check(self, config: Config, rows: int, new: int) -> None:
        """Refuse a call of ``rows`` times ``new`` tokens that these caches cannot take in."""
        if config != self.config:
            raise ValueError("cache must have been made for the config of this model, got one for another")
        keys = self.layers[0].keys
        if keys is not None and keys.shape[0] != rows:
            raise ValueError(f"ids must have the {keys.shape[0]} rows of the cache, got {rows}")
        if self.length + new > self.capacity:
            raise ValueError(
                f"ids must fit the cache of {self.capacity} tokens, got {self.length + new} with the cached ones"
            )

    @property
    def nbytes(self) -> int:
        """Bytes of the keys and values held: what attention needs."""
        return sum(layer.nbytes for layer in self.layers)

    @property
    def reserved_nbytes(self) -> int:
        """Bytes set aside for ``capacity`` tokens."""
        return sum(layer.reserved_nbytes for layer in self.layers)


# ----------------------------------------------------------------------------------------------------------------------
# attention
#
# Attention: what each token gathers from the tokens before it.
#
# H query heads share K key/value heads (K = H is multi-head, K = 1 multi-query, anything between grouped-query
# attention; Ainslie et al., 2305.13245). Query head i reads key/value head i // (H / K): each one is repeated next to
# itself. `attend` is the readable reference with the repetition written out; where nothing but a mask is asked for,
# torch's scaled_dot_product_attention does the same without it.
# ----------------------------------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class View:
    """What the tokens of one call know about place; the layers of one kind share it.

    ``mask`` is True where a query may see a key, or ALiBi's bias with -inf elsewhere. None means that token t of T
    sees the keys up to its own, and a single new token all of them.
    """

    rotation: tuple[Tensor, Tensor] | None = None  # cos and sin, (B, 1, T, pairs) each
    mask: Tensor | None = None  # (B, 1 or H, T, S)


def causal_mask(queries: Tensor, keys: Tensor, window: int | None = None) -> Tensor:
    """Who sees whom, by position: (B, T) and (B, S) -> (B, 1, T, S), True for visible.

    A token sees itself and what stands before it, within ``window`` keys (its own included) if given. Padding, at
    negative positions, sees padding only, and is seen by no real token.
    """
    distance = queries[:, None, :, None] - keys[:, None, None, :]
    visible = (distance >= 0) & ((queries < 0)[:, None, :, None] == (keys < 0)[:, None, None, :])
    return visible if window is None else visible & (distance < window)


def alibi_bias(queries: Tensor, keys: Tensor, visible: Tensor, heads: int, dtype: torch.dtype) -> Tensor:
    """ALiBi as a mask to add to the scores: minus slope times distance, -inf where not visible, (B, H, T, S)."""
    distance = queries[:, None, :, None] - keys[:, None, None, :]
    slopes = alibi_slopes(heads, torch.promote_types(dtype, torch.float32), queries.device)[:, None, None]
    return (-slopes * distance).masked_fill(~visible, -torch.inf).to(dtype)


def repeat_kv(x: Tensor, times: int) -> Tensor:
    """Each key/value head ``times`` times, next to itself: (B, K, S, h) -> (B, K * times, S, h)."""
    return x.repeat_interleave(times, dim=1)


def softcap(x: Tensor, cap: float) -> Tensor:
    """``cap * tanh(x / cap)``: near x for small x, never beyond ``cap``."""
    return cap * torch.tanh(x / cap)


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor,
    scale: float,
    cap: float | None = None,
    sinks: Tensor | None = None,
) -> Tensor:
    """Attention written out: (B, H, T, h) queries over (B, K, S, h) keys and values give (B, H, T, h).

    ``mask`` is as in `View`. ``cap`` soft-caps the scores. ``sinks``, one logit a head, take part in the softmax and
    carry no value.
    """
    k, v = repeat_kv(k, q.shape[1] // k.shape[1]), repeat_kv(v, q.shape[1] // v.shape[1])
    scores = wide(q @ k.transpose(-1, -2) * scale)  # (B, H, T, S)
    if cap is not None:
        scores = softcap(scores, cap)
    scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    if sinks is not None:
        sink = sinks.to(scores)[:, None, None].expand(*scores.shape[:-1], 1)
        scores = torch.cat((scores, sink), -1)
    weights = scores.softmax(-1)[..., : k.shape[2]]
    return weights.to(v.dtype) @ v


class Attention(nn.Module):
    """Grouped-query attention with 2 d H h + 2 d K h weights, and biases where ``attention_bias`` names them.

    ``layer`` counts from 0; it decides about the window and about rotary positions.
    """

    def __init__(self, config: Config, layer: int = 0) -> None:
        super().__init__()
        d, h, bias = config.width, config.head_width, config.attention_bias
        self.heads, self.kv_heads = config.heads, config.kv_heads
        self.q = nn.Linear(d, self.heads * h, bias="q" in bias)
        self.k = nn.Linear(d, self.kv_heads * h, bias="k" in bias)
        self.v = nn.Linear(d, self.kv_heads * h, bias="v" in bias)
        self.o = nn.Linear(self.heads * h, d, bias="o" in bias)
        self.qk_norm = config.qk_norm
        self.q_norm = self._make_qk_norm(config, self.heads)
        self.k_norm = self._make_qk_norm(config, self.kv_heads)
        self.rotary = config.positions == "rotary" and layer not in config.no_rope_layers
        self.pairing = config.rope_pairing
        self.scale = h**-0.5 if config.attention_scale is None else config.attention_scale
        self.cap = config.attention_softcap
        self.sinks = nn.Parameter(torch.zeros(self.heads)) if config.sinks else None

    def forward(self, x: Tensor, view: View, cache: LayerCache | None = None) -> Tensor:  # (B, T, d) -> (B, T, d)
        q = self._split(self.q(x), self.heads, self.q_norm)  # (B, H, T, h)
        k = self._split(self.k(x), self.kv_heads, self.k_norm)  # (B, K, T, h)
        v = self._split(self.v(x), self.kv_heads)  # (B, K, T, h)
        if self.rotary and view.rotation is not None:
            q, k = apply_rotary(q, *view.rotation, self.pairing), apply_rotary(k, *view.rotation, self.pairing)
        if cache is not None:
            k, v = cache.update(k, v)  # (B, K, S, h)
        y = self._attend(q, k, v, view.mask)  # (B, H, T, h)
        return self.o(y.transpose(1, 2).flatten(2))

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        if self.cap is None and self.sinks is None:
            causal = mask is None and q.shape[2] > 1
            grouped = self.heads != self.kv_heads
            return F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal, scale=self.scale, enable_gqa=grouped)
        if mask is None:
            mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril(k.shape[2] - q.shape[2])
        return attend(q, k, v, mask, self.scale, self.cap, self.sinks)

    def _split(self, x: Tensor, heads: int, norm: nn.Module | None = None) -> Tensor:  # (B, T, n h) -> (B, n, T, h)
        if norm is not None and self.qk_norm == "full":
            x = norm(x)
        x = x.unflatten(-1, (heads, -1))
        if norm is not None and self.qk_norm != "full":
            x = norm(x)
        return x.transpose(1, 2)

    def _make_qk_norm(self, config: Config, heads: int) -> nn.Module | None:
        if config.qk_norm == "none":
            return None
        if config.qk_norm == "full":
            return make_norm(config, heads * config.head_width)
        return make_norm(config, config.head_width, heads if config.qk_norm == "per_head_weights" else None)


def make_attention(config: Config, layer: int) -> nn.Module:
    """The attention part of one layer."""
    if config.latent is not None:
        raise ValueError('decoder.survey.latent_attention is part of the package decoder, not of this file')

        return MultiHeadLatentAttention(config, layer)
    return Attention(config, layer)


# ----------------------------------------------------------------------------------------------------------------------
# feedforward
#
# The feed-forward part: what each token computes on its own.
#
# Plain: down(f(up(x))). Gated (Shazeer, 2002.05202): down(f(gate(x)) * up(x)), named by f: SwiGLU (silu), GeGLU (gelu),
# ReGLU (relu), bilinear (identity).
# ----------------------------------------------------------------------------------------------------------------------

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "relu": F.relu,
    "relu2": lambda x: F.relu(x).square(),
    "silu": F.silu,
    "identity": lambda x: x,
}


class FeedForward(nn.Module):
    """Three matrices where gated (3 d m weights), two where not (2 d m); ``hidden_bias`` adds a bias to each."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        d, m, bias = config.width, config.hidden, config.hidden_bias
        self.activation = ACTIVATIONS[config.activation]
        self.gate = nn.Linear(d, m, bias) if config.gated else None
        self.up = nn.Linear(d, m, bias)
        self.down = nn.Linear(m, d, bias)

    def forward(self, x: Tensor) -> Tensor:  # (B, T, d) -> (B, T, d)
        if self.gate is None:
            return self.down(self.activation(self.up(x)))
        return self.down(self.activation(self.gate(x)) * self.up(x))


def make_feed_forward(config: Config, layer: int) -> nn.Module:
    """The feed-forward part of one layer."""
    if config.experts is not None and layer not in config.experts.dense_layers:
        raise ValueError('decoder.survey.mixture_of_experts is part of the package decoder, not of this file')

        return MixtureOfExperts(config, config.experts)
    return FeedForward(config)


# ----------------------------------------------------------------------------------------------------------------------
# block
#
# A block: attention and feed-forward around the residual stream, and where the norms stand.
#
#     pre      x + F(norm(x))          the stream itself is never normalized
#     post     norm(a x + F(x))        the 2017 order; a is DeepNorm's residual scale
#     both     x + norm(F(norm(x)))    Gemma 2
#     output   x + norm(F(x))          OLMo 2
#
# A serial block does this for attention, then for the feed-forward part. A parallel block (GPT-J, PaLM) adds both to
# the same x, which they read through one shared norm or through one each.
# ----------------------------------------------------------------------------------------------------------------------

class Block(nn.Module):
    """One layer. Norms that a placement does not use are identities without parameters."""

    def __init__(self, config: Config, layer: int = 0) -> None:
        super().__init__()

        def norm_at(*placements: str) -> nn.Module:
            return make_norm(config, config.width) if config.norm_placement in placements else nn.Identity()

        self.parallel = config.block == "parallel"
        self.residual_scale = config.residual_scale
        self.attention_norm = norm_at("pre", "both")
        self.attention = make_attention(config, layer)
        self.attention_out_norm = norm_at("both", "output")
        self.attention_post_norm = norm_at("post")
        shared = self.parallel and config.parallel_norms == 1
        self.feed_forward_norm = nn.Identity() if shared else norm_at("pre", "both")
        self.feed_forward = make_feed_forward(config, layer)
        self.feed_forward_out_norm = norm_at("both", "output")
        self.feed_forward_post_norm = norm_at("post")
        self.shared_norm = shared

    def forward(self, x: Tensor, view: View, cache: LayerCache | None = None) -> Tensor:  # (B, T, d) -> (B, T, d)
        if self.parallel:
            return self._parallel(x, view, cache)
        branch = self.attention_out_norm(self.attention(self.attention_norm(x), view, cache))
        x = self.attention_post_norm(self._carry(x) + branch)
        branch = self.feed_forward_out_norm(self.feed_forward(self.feed_forward_norm(x)))
        return self.feed_forward_post_norm(self._carry(x) + branch)

    def _parallel(self, x: Tensor, view: View, cache: LayerCache | None) -> Tensor:
        read = self.attention_norm(x)
        feed_forward_read = read if self.shared_norm else self.feed_forward_norm(x)
        return self._carry(x) + self.attention(read, view, cache) + self.feed_forward(feed_forward_read)

    def _carry(self, x: Tensor) -> Tensor:
        return x if self.residual_scale == 1 else self.residual_scale * x


# ----------------------------------------------------------------------------------------------------------------------
# model
#
# The whole decoder: embedding, a stack of blocks, a final norm, and a head that scores the next token.
# ----------------------------------------------------------------------------------------------------------------------

INIT_STD = 0.02


class Decoder(nn.Module):
    """A decoder-only language model with the choices of ``config``, at its random start.

    Matrices and embeddings start normal with standard deviation 0.02, the two that write to the residual stream with
    0.02 / sqrt(2 L). A tied head is the embedding's own Parameter, registered once.
    """

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        d, e = config.width, config.embedding_width or config.width
        self.embedding = nn.Embedding(config.vocab, e)
        self.embedding_in = nn.Linear(e, d, bias=False) if config.embedding_width else nn.Identity()
        self.position_embedding = nn.Embedding(config.position_rows, d) if config.positions == "learned" else None
        self.embedding_norm = make_norm(config, d) if config.embedding_norm else nn.Identity()
        self.blocks = nn.ModuleList(Block(config, layer) for layer in range(config.layers))
        self.final_norm = make_norm(config, d) if config.final_norm else nn.Identity()
        self.embedding_out = nn.Linear(d, e, bias=False) if config.embedding_width else nn.Identity()
        self.head = nn.Linear(e, config.vocab, bias=config.head_bias)
        self._initialize()
        if config.tied:
            self.head.weight = self.embedding.weight

    def forward(
        self,
        ids: Tensor,
        cache: KVCache | None = None,
        attention_mask: Tensor | None = None,
        last_only: bool = False,
    ) -> Tensor:
        """Logits of the next token after each token: ids (B, T) -> (B, T, V), or (B, 1, V) with ``last_only``.

        ``ids`` is int64 in 0..V-1. ``cache`` holds the tokens before them and takes these in; one cache serves one
        sequence of calls. ``attention_mask``, (B, T), is 0 for the left padding of these ids and 1 for real tokens;
        positions count real tokens. Scores at padding mean nothing. Raises ValueError for anything else.
        """
        caches = [None] * self.config.layers if cache is None else cache.layers
        positions, padding = self._place(ids, cache, attention_mask)  # (1 or B, T), (B, 1)
        x = self._embed(ids, positions)  # (B, T, d)
        views = self._views(positions, padding, caches, x.dtype)
        for block, view, held in zip(self.blocks, views, caches, strict=True):
            x = block(x, view, held)  # (B, T, d)
        return self._logits(x[:, -1:] if last_only else x)  # (B, T, V)

    def _embed(self, ids: Tensor, positions: Tensor) -> Tensor:  # (B, T) -> (B, T, d)
        x = self.embedding(ids)
        if self.config.embedding_scale != 1:
            x = x * self.config.embedding_scale
        x = self.embedding_in(x)
        if self.position_embedding is not None:
            x = x + self.position_embedding(positions.clamp(min=0))
        elif self.config.positions == "sinusoidal":
            x = x + sinusoidal_positions(positions.clamp(min=0), self.config.width, x.dtype)
        return self.embedding_norm(x)

    def _logits(self, x: Tensor) -> Tensor:  # (B, T, d) -> (B, T, V)
        logits = self.head(self.embedding_out(self.final_norm(x)))
        if self.config.logit_scale != 1:
            logits = logits * self.config.logit_scale
        return logits if self.config.logit_softcap is None else softcap(logits, self.config.logit_softcap)

    def _views(
        self, positions: Tensor, padding: Tensor | None, caches: Sequence[LayerCache | None], dtype: torch.dtype
    ) -> list[View]:
        """What each layer sees; layers of one kind, windowed or full, share one view."""
        kinds = [layer in self.config.windowed_layers for layer in range(self.config.layers)]
        made = {kind: self._view(positions, padding, kind, caches[kinds.index(kind)], dtype) for kind in set(kinds)}
        return [made[kind] for kind in kinds]

    def _view(
        self, positions: Tensor, padding: Tensor | None, windowed: bool, held: LayerCache | None, dtype: torch.dtype
    ) -> View:
        """A mask is made only where `View`'s default does not say it."""
        config, new = self.config, positions.shape[1]
        past = 0 if held is None else held.length
        window = config.window if windowed else None
        rotation = layer_rotation(config, positions.clamp(min=0), windowed, dtype)
        keys = torch.arange(new, device=positions.device) if held is None else held.indices(new, positions.device)
        plain = padding is None and (past == 0 or new == 1) and (window is None or len(keys) <= window)
        if plain and config.positions != "alibi":
            return View(rotation)
        keys = keys[None] if padding is None else keys - padding  # (1 or B, S)
        visible = causal_mask(positions, keys, window)  # (1 or B, 1, T, S)
        if config.positions != "alibi":
            return View(rotation, visible)
        return View(rotation, alibi_bias(positions, keys, visible, config.heads, dtype))

    def _place(self, ids: Tensor, cache: KVCache | None, attention_mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Refuse what cannot be read; say where each token stands, (1 or B, T), and each row's left padding, (B, 1)."""
        check_ids(ids, self.config)
        past, padding = (0, None) if cache is None else (cache.length, cache.padding)
        total = past + ids.shape[1]
        if total > self.config.context:
            raise ValueError(
                f"ids must fit the context of {self.config.context} tokens, got {total} with the cached ones"
            )
        if cache is not None:
            cache.check(self.config, *ids.shape)
        if attention_mask is not None:
            padding = more_padding(padding, left_padding(attention_mask, ids), past)
        if cache is not None:
            cache.padding = padding
        positions = torch.arange(past, total, device=ids.device)[None]
        return (positions, None) if padding is None else (positions - padding, padding)

    def _initialize(self) -> None:
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                writes = name.endswith((".attention.o", ".down"))
                std = INIT_STD / math.sqrt(2 * self.config.layers) if writes else INIT_STD
                nn.init.normal_(module.weight, std=std)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)


def check_ids(ids: Tensor, config: Config) -> None:
    """Refuse anything but (B, T) int64 token ids with 1 <= T and 0 <= id < V."""
    if ids.ndim != 2:
        raise ValueError(f"ids must have rank 2, (B, T), got shape {tuple(ids.shape)}")
    if ids.dtype != torch.int64:
        raise ValueError(f"ids must be int64, got {ids.dtype}")
    if ids.shape[0] < 1 or ids.shape[1] < 1:
        raise ValueError(f"ids must hold at least one token, got shape {tuple(ids.shape)}")
    low, high = (int(x) for x in ids.aminmax())
    if low < 0 or high >= config.vocab:
        raise ValueError(f"ids must be from 0 to {config.vocab - 1}, got {low if low < 0 else high}")


def left_padding(attention_mask: Tensor, ids: Tensor) -> Tensor:
    """How many tokens of padding each row starts with: (B, T) of 0 and 1 -> (B, 1)."""
    if attention_mask.shape != ids.shape:
        raise ValueError(
            f"attention_mask must have the shape of ids {tuple(ids.shape)}, got {tuple(attention_mask.shape)}"
        )
    if not ((attention_mask == 0) | (attention_mask == 1)).all():
        raise ValueError("attention_mask must hold 0 and 1 only")
    real = attention_mask.to(torch.int64)
    if (real[:, 1:] < real[:, :-1]).any():
        raise ValueError("attention_mask must be left padding: zeros first, then ones, in every row")
    return (1 - real).sum(1, keepdim=True)


def more_padding(padding: Tensor | None, new: Tensor, past: int) -> Tensor | None:
    """The padding of the rows after ``new`` more, (B, 1) each: only a row that is all padding so far may have more."""
    if not new.any():
        return padding
    padding = torch.zeros_like(new) if padding is None else padding
    if ((new > 0) & (padding < past)).any():
        raise ValueError("attention_mask must be left padding: a row has padding after its cached tokens")
    return padding + new


def parameter_count(model: nn.Module) -> int:
    """Unique parameters: a shared tensor counts once."""
    return sum(parameter.numel() for parameter in model.parameters())


# ----------------------------------------------------------------------------------------------------------------------
# generate
#
# Generation: one token after another, each chosen from the scores that follow the tokens so far.
# ----------------------------------------------------------------------------------------------------------------------

def generate(
    model: Decoder,
    ids: Tensor,
    new_tokens: int,
    *,
    temperature: float = 0.0,
    top_k: int | None = None,
    eos: int | None = None,
    attention_mask: Tensor | None = None,
    cached: bool = True,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Continue each row of ``ids`` (B, T) by up to ``new_tokens`` tokens: (B, T + generated).

    Temperature 0 takes the largest score; otherwise tokens are drawn from softmax(scores / temperature), with
    ``top_k`` from the k largest scores and all that tie with the last of them. A row that has generated ``eos`` is
    finished and padded with ``eos``; one in the prompt finishes nothing. Generation stops when all rows are finished,
    after ``new_tokens``, or at the model's context, whichever comes first. ``attention_mask`` marks left padding as in
    `Decoder.forward`. ``cached=False`` reads the whole row anew for each token and gives the same tokens,
    but for the rope scaling ``"dynamic"``, where a cached key keeps the frequencies of its own call.

    Runs without gradients in evaluation mode; the model's mode is restored afterwards, also after an error.
    Raises ValueError for a prompt or argument that cannot be used, before anything is computed.
    """
    config = model.config
    check_ids(ids, config)
    if ids.shape[1] > config.context:
        raise ValueError(f"ids must fit the context of {config.context} tokens, got a prompt of {ids.shape[1]}")
    _check_arguments(config, new_tokens, temperature, top_k, eos)
    if attention_mask is not None:
        left_padding(attention_mask, ids)
    limit = min(ids.shape[1] + new_tokens, config.context)
    finished = torch.zeros_like(ids[:, 0], dtype=torch.bool)  # (B,)
    cache = KVCache(config, limit) if cached else None
    unread, mask = ids, attention_mask
    with torch.no_grad(), evaluation_mode(model):
        while ids.shape[1] < limit and not finished.all():
            scores = model(unread, cache, mask, last_only=True)[:, -1]  # (B, V)
            token = choose(scores, temperature, top_k, generator)  # (B,)
            if eos is not None:
                token = token.masked_fill(finished, eos)
                finished = finished | (token == eos)
            ids = torch.cat((ids, token[:, None]), 1)
            unread, mask = ids[:, -1:], None
            whole = _grown(attention_mask, ids)
            if not cached or _frequencies_switch(config, ids, whole):
                cache = KVCache(config, limit) if cached else None
                unread, mask = ids, whole
    return ids


def choose(
    scores: Tensor, temperature: float = 0.0, top_k: int | None = None, generator: torch.Generator | None = None
) -> Tensor:
    """One token a row: (B, V) -> (B,). Ties at the cut of ``top_k`` are all kept."""
    if temperature == 0:
        return scores.argmax(-1)
    scores = scores.float()
    scores = (scores - scores.amax(-1, keepdim=True)) / max(temperature, torch.finfo(scores.dtype).tiny)
    if top_k is not None:
        scores = keep_top_k(scores, top_k)
    return torch.multinomial(scores.softmax(-1), 1, generator=generator)[:, 0]


def keep_top_k(scores: Tensor, k: int) -> Tensor:
    """Scores below the k-th largest of their row become -inf; all that tie with it stay."""
    cut = scores.topk(k).values[..., -1:]
    return scores.masked_fill(scores < cut, -torch.inf)


@contextmanager
def evaluation_mode(model: torch.nn.Module) -> Iterator[None]:
    """Evaluation mode inside, and afterwards each module's own mode again."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def _frequencies_switch(config: Config, ids: Tensor, attention_mask: Tensor | None) -> bool:
    """Whether LongRoPE takes its other set of factors from this length on, so that cached keys are of no more use."""
    if config.rope_scaling is None or config.rope_scaling.kind != "longrope":
        return False
    longest = ids.shape[1] if attention_mask is None else int(attention_mask.sum(1).max())
    return longest == config.rope_scaling.original_context + 1


def _grown(attention_mask: Tensor | None, ids: Tensor) -> Tensor | None:
    """The mask of the prompt with ones for what was generated since."""
    if attention_mask is None:
        return None
    return torch.nn.functional.pad(attention_mask, (0, ids.shape[1] - attention_mask.shape[1]), value=1)


def _check_arguments(config: Config, new_tokens: int, temperature: float, top_k: int | None, eos: int | None) -> None:
    for name, value, low, high in (
        ("new_tokens", new_tokens, 0, None),
        ("top_k", top_k, 1, config.vocab),
        ("eos", eos, 0, config.vocab - 1),
    ):
        if value is None and name != "new_tokens":
            continue
        bounds = f"of at least {low}" if high is None else f"from {low} to {high}"
        if isinstance(value, bool) or not isinstance(value, int) or value < low or (high is not None and value > high):
            raise ValueError(f"{name} must be a whole number {bounds}, got {value!r}")
    number = isinstance(temperature, int | float) and not isinstance(temperature, bool)
    if not number or not math.isfinite(temperature) or temperature < 0:
        raise ValueError(f"temperature must be a finite number of at least 0, got {temperature!r}")


# ----------------------------------------------------------------------------------------------------------------------
# losses
#
# Losses: how far the scores are from the tokens that came.
#
# The softmax ignores a shift common to all scores, so log Z, the log of its denominator, may drift. The z-loss
# (PaLM, 2204.02311, section 5) pulls log Z to 0; Baichuan 2's max-z loss (2309.10305) pulls the largest score instead.
# ----------------------------------------------------------------------------------------------------------------------

IGNORED = -100  # the label of a token that is not scored


@dataclass(frozen=True)
class Loss:
    """Means over the scored tokens, in nats. ``total = cross_entropy + penalty``; the gradient flows through all."""

    total: Tensor
    cross_entropy: Tensor
    penalty: Tensor
    log_z: Tensor
    tokens: int


def language_model_loss(logits: Tensor, labels: Tensor, z_weight: float = 0.0, max_z_weight: float = 0.0) -> Loss:
    """Cross-entropy of ``labels`` (B, T) under ``logits`` (B, T, V), plus what the weights ask for.

    ``labels[b, t]`` is the token that should follow token t (see `next_token_labels`); `IGNORED` leaves one out.
    ``z_weight`` (PaLM: 1e-4) times mean (log Z)², ``max_z_weight`` (Baichuan 2: 2e-4) times mean (max logit)².
    Raises ValueError for shapes that do not match, a label outside the vocabulary, or no label at all.
    """
    if logits.ndim != 3 or labels.shape != logits.shape[:2]:
        raise ValueError(
            f"labels must be (B, T) for logits (B, T, V), got {tuple(labels.shape)} and {tuple(logits.shape)}"
        )
    scored = labels != IGNORED  # (B, T)
    if not scored.any():
        raise ValueError(f"labels must hold at least one token to score, got only {IGNORED}")
    if labels[scored].min() < 0 or labels.max() >= logits.shape[-1]:
        raise ValueError(f"labels must be from 0 to {logits.shape[-1] - 1}, or {IGNORED}")
    logits = wide(logits)
    log_z = logits.logsumexp(-1)  # (B, T)
    target = logits.gather(-1, labels.clamp(min=0)[..., None])[..., 0]  # (B, T)
    cross_entropy = (log_z - target)[scored].mean()
    penalty = logits.new_zeros(())
    if z_weight:
        penalty = penalty + z_weight * log_z[scored].square().mean()
    if max_z_weight:
        penalty = penalty + max_z_weight * logits.amax(-1)[scored].square().mean()
    return Loss(cross_entropy + penalty, cross_entropy, penalty, log_z[scored].mean(), int(scored.sum()))


def next_token_labels(ids: Tensor, mask: Tensor | None = None) -> Tensor:
    """What should follow each token: ids shifted left by one, `IGNORED` at the end: (B, T) -> (B, T).

    Where ``mask`` (B, T) is 0 the token is not predicted: a prompt, or padding.
    """
    labels = ids if mask is None else ids.masked_fill(mask == 0, IGNORED)
    return F.pad(labels[:, 1:], (0, 1), value=IGNORED)


def perplexity(cross_entropy: Tensor) -> Tensor:
    """e to the cross-entropy in nats: the size of a uniform choice that would be as uncertain."""
    return torch.exp(cross_entropy)


# ----------------------------------------------------------------------------------------------------------------------
# training
#
# Training: one step of AdamW, with weight decay by tensor dimension and clipped gradients.
# ----------------------------------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Step:
    """What one step did: the loss before it in nats, and the gradient's norm before clipping."""

    loss: float
    cross_entropy: float
    log_z: float
    gradient_norm: float


def decay_groups(model: nn.Module, weight_decay: float = 0.1) -> list[dict[str, object]]:
    """Two groups for an optimizer: tensors of two or more dimensions decay, vectors (norm scales, biases) do not.

    Each tensor is listed once, a tied one too.
    """
    parameters = [p for p in model.parameters() if p.requires_grad]
    return [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]


def make_optimizer(
    model: nn.Module, learning_rate: float = 3e-4, weight_decay: float = 0.1, betas: tuple[float, float] = (0.9, 0.95)
) -> torch.optim.AdamW:
    """AdamW over `decay_groups`. Make it after the model is whole: it holds the tensors that exist now."""
    return torch.optim.AdamW(decay_groups(model, weight_decay), lr=learning_rate, betas=betas)


def training_step(
    model: Decoder,
    optimizer: torch.optim.Optimizer,
    ids: Tensor,
    mask: Tensor | None = None,
    z_weight: float = 0.0,
    clip: float = 1.0,
) -> Step:
    """Predict each token of ``ids`` (B, T) from those before it and take one optimizer step.

    The gradient is scaled down to a norm of ``clip`` where it is longer. ``mask`` marks the tokens to predict.
    The same weights, ids and optimizer state give the same step. Raises ValueError if the loss is not finite,
    before any weight has changed.
    """
    model.train()
    optimizer.zero_grad(set_to_none=True)
    loss = language_model_loss(model(ids), next_token_labels(ids, mask), z_weight)
    if not torch.isfinite(loss.total):
        raise ValueError(f"loss must be finite for a training step, got {loss.total.item()}")
    loss.total.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    return Step(loss.total.item(), loss.cross_entropy.item(), loss.log_z.item(), norm.item())


# ----------------------------------------------------------------------------------------------------------------------
# check
#
# The self-check: small experiments that each decide one question about the decoder.
#
# Every check compares with something that does not share the code it questions: a value worked out by hand, a formula
# written out here, or the same scores reached on another way.
# ----------------------------------------------------------------------------------------------------------------------

# Sizes in which no two are equal, with a head width that is not width / heads.
SMALL = Config(vocab=31, width=12, layers=2, heads=6, kv_heads=3, head_width=4, hidden=20, context=16)


class CheckFailed(Exception):
    """A check found something else than it should."""


def require(holds: bool | Tensor, message: str) -> None:
    if not holds:
        raise CheckFailed(message)


def require_close(found: Tensor, expected: Tensor, what: str, tolerance: float = 1e-12) -> None:
    gap = (found.double() - expected.double()).abs().max().item()  # nan where either is not finite
    require(gap <= tolerance, f"{what}: off by {gap:.3g}, more than {tolerance:g}")


def small_decoder(seed: int = 0, **changes: Any) -> Decoder:
    """A decoder of the sizes of `SMALL` in float64, its weights large enough that each part shows in the scores."""
    torch.manual_seed(seed)
    model = Decoder(SMALL.replace(**changes)).double()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    return model


def some_ids(rows: int = 2, tokens: int = 9) -> Tensor:
    return torch.randint(SMALL.vocab, (rows, tokens), generator=torch.Generator().manual_seed(1))


def some_stream(rows: int = 2, tokens: int = 7) -> Tensor:
    return torch.randn(rows, tokens, SMALL.width, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


def rotation(tokens: int, offset: int = 0) -> tuple[Tensor, Tensor]:
    positions = torch.arange(offset, offset + tokens)
    return rotary_tables(positions, rotary_frequencies(SMALL.head_width))


def parameters() -> None:
    """The default design has 100,092,672 parameters, and any size follows the formula."""
    with torch.device("meta"):
        count = parameter_count(Decoder(Config()))
    require(count == 100_092_672, f"the default design has {count:,} parameters, not 100,092,672")
    c = SMALL
    per_layer = 2 * c.width * c.head_width * (c.heads + c.kv_heads) + 3 * c.width * c.hidden + 2 * c.width
    expected = c.vocab * c.width + c.layers * per_layer + c.width
    count = parameter_count(Decoder(c))
    require(count == expected, f"the small design has {count} parameters, not {expected}")


def tying() -> None:
    """A tied head is the embedding's own Parameter, also after a change of dtype."""
    model = Decoder(SMALL).double()
    require(model.head.weight is model.embedding.weight, "the head is not the embedding's Parameter")


def start() -> None:
    """Matrices start with a standard deviation of 0.02, those that write to the stream with 0.02 / sqrt(2 L)."""
    torch.manual_seed(0)
    model = Decoder(SMALL.replace(width=96, hidden=160, layers=8))
    for name, parameter in model.named_parameters():
        if parameter.ndim == 2:
            std = 0.005 if name.endswith(("attention.o.weight", "feed_forward.down.weight")) else 0.02
            found = parameter.std().item()
            require(abs(found / std - 1) < 0.1, f"{name} starts with a standard deviation of {found:.4f}, not {std}")


def norm_value() -> None:
    """RMSNorm turns (3, 4) into (0.848528, 1.131371): both over the root of 12.5."""
    x = torch.tensor([3.0, 4.0], dtype=torch.float64)
    require_close(RMSNorm(2, eps=0.0).double()(x), x / 12.5**0.5, "RMSNorm of (3, 4)")


def norm_half_finite() -> None:
    """The squares of a half-precision input may pass 65,504; the norm stays finite and keeps the dtype."""
    found = RMSNorm(2).half()(torch.tensor([300.0, 400.0], dtype=torch.float16))
    require(found.dtype == torch.float16, f"RMSNorm of float16 gives {found.dtype}")
    require_close(found, torch.tensor([0.848528, 1.131371]), "RMSNorm of (300, 400) in float16", 1e-3)


def norm_half_constant() -> None:
    """A constant half-precision vector becomes ones."""
    found = RMSNorm(4).half()(torch.full((4,), 300.0, dtype=torch.float16))
    require_close(found, torch.ones(4), "RMSNorm of a constant float16 vector", 1e-3)


def norm_double() -> None:
    """A float64 input keeps float64 all through."""
    x = torch.tensor([1.0, 1 / 3, -0.7], dtype=torch.float64)
    found = RMSNorm(3, eps=1e-6).double()(x)
    require_close(found, x / ((x * x).sum() / 3 + 1e-6).sqrt(), "RMSNorm in float64", 1e-14)


def rotary_pairing() -> None:
    """Adjacent pairs: (1, 2, 3, 4) at position 1 turns (1, 2) by 1 and (3, 4) by 0.01 radians."""
    found = apply_rotary(torch.tensor([1.0, 2, 3, 4]).double().view(1, 1, 1, 4), *rotation(1, offset=1))
    expected = torch.tensor([-1.1426396637, 1.9220755966, 2.9598506679, 4.0297996696])
    require_close(found.flatten(), expected.double(), "adjacent pairs at position 1", 1e-6)
    require(Config().rope_pairing == "adjacent", f"the default pairing is {Config().rope_pairing}, not adjacent")


def attention_reference() -> None:
    """Attention equals a loop over heads and tokens, with query head i on key/value head i // (H / K)."""
    torch.manual_seed(3)
    attention, x = Attention(SMALL).double(), some_stream()
    for parameter in attention.parameters():
        nn.init.normal_(parameter, std=0.4)
    rows, tokens, h = x.shape[0], x.shape[1], SMALL.head_width
    q = apply_rotary(F.linear(x, attention.q.weight).view(rows, tokens, -1, h).transpose(1, 2), *rotation(tokens))
    k = apply_rotary(F.linear(x, attention.k.weight).view(rows, tokens, -1, h).transpose(1, 2), *rotation(tokens))
    v = F.linear(x, attention.v.weight).view(rows, tokens, -1, h).transpose(1, 2)
    heads = torch.empty_like(q)
    for i in range(SMALL.heads):
        j = i // 2
        for t in range(tokens):
            scores = (k[:, j, : t + 1] @ q[:, i, t, :, None])[..., 0] / 2  # the head width is 4
            weights = scores.exp() / scores.exp().sum(1, keepdim=True)
            heads[:, i, t] = (weights[:, :, None] * v[:, j, : t + 1]).sum(1)
    expected = F.linear(heads.transpose(1, 2).flatten(2), attention.o.weight)
    require_close(attention(x, View(rotation(tokens))), expected, "attention and the loop over heads")
    mask = torch.ones(tokens, tokens, dtype=torch.bool).tril()
    require_close(attend(q, k, v, mask, 0.5), heads, "attention with repeated heads and the loop")


def causality() -> None:
    """The scores of a prefix do not change when tokens follow."""
    model, ids = small_decoder(), some_ids()
    require_close(model(ids)[:, :5], model(ids[:, :5]), "the scores of a prefix")


def shift_invariance() -> None:
    """Attention sees offsets only: moving all tokens by 5 positions changes nothing."""
    attention, x = Attention(SMALL).double(), some_stream()
    here, there = View(rotation(7)), View(rotation(7, offset=5))
    require_close(attention(x, here), attention(x, there), "attention 5 positions later")


def block_reference() -> None:
    """A block is x + attention(norm(x)), then x + down(silu(gate(norm(x))) * up(norm(x)))."""
    torch.manual_seed(4)
    block, x, view = Block(SMALL).double(), some_stream(), View(rotation(7))
    for parameter in block.parameters():
        nn.init.normal_(parameter, std=0.4)

    def norm(x: Tensor, weight: Tensor) -> Tensor:
        return F.rms_norm(x, (SMALL.width,), weight, SMALL.norm_eps)

    weights = dict(block.named_parameters())
    y = norm(x, weights["attention_norm.weight"])
    q, k, v = (F.linear(y, weights[f"attention.{name}.weight"]) for name in "qkv")
    q, k, v = (part.unflatten(-1, (-1, SMALL.head_width)).transpose(1, 2) for part in (q, k, v))
    q, k = apply_rotary(q, *rotation(7)), apply_rotary(k, *rotation(7))
    heads = F.scaled_dot_product_attention(query=q, key=k, value=v, enable_gqa=True, is_causal=True)
    middle = x + F.linear(heads.transpose(1, 2).flatten(2), weights["attention.o.weight"])
    y = norm(middle, weights["feed_forward_norm.weight"])
    gate = F.linear(y, weights["feed_forward.gate.weight"])
    hidden = gate / (1 + torch.exp(-gate)) * F.linear(y, weights["feed_forward.up.weight"])
    require_close(
        block(x, view), middle + F.linear(hidden, weights["feed_forward.down.weight"]), "a block and its formula"
    )


def final_norm_reference() -> None:
    """Scores are the head times the normalized stream."""
    model = small_decoder()
    weights, ids = dict(model.named_parameters()), some_ids()
    for name, weight in weights.items():
        if name.endswith(("attention.o.weight", "feed_forward.down.weight")):
            nn.init.zeros_(weight)
    x = model.embedding.weight[ids]
    expected = F.rms_norm(x, (SMALL.width,), weights["final_norm.weight"], SMALL.norm_eps) @ model.embedding.weight.T
    require_close(model(ids), expected, "the scores of a stack that adds nothing")


def all_gradients() -> None:
    """Every parameter takes part: each has a gradient that is not all zero."""
    model = small_decoder()
    model(some_ids()).square().sum().backward()
    for name, parameter in model.named_parameters():
        require(parameter.grad is not None and bool(parameter.grad.any()), f"{name} has no gradient")


def cached_step() -> None:
    """Reading token by token through the cache gives the scores of the full pass."""
    model, ids = small_decoder(), some_ids()
    full, cache = model(ids), KVCache(SMALL)
    for t in range(ids.shape[1]):
        require_close(model(ids[:, t : t + 1], cache)[:, 0], full[:, t], f"the cached step at token {t}")
    expected = 2 * ids.numel() * SMALL.layers * SMALL.kv_heads * SMALL.head_width * 8
    require(cache.nbytes == expected, f"the cache holds {cache.nbytes} bytes, not {expected}")


class Scripted(Decoder):
    """Scores by a script: after token i comes ``script[i]``."""

    def __init__(self, script: dict[int, int]) -> None:
        super().__init__(SMALL)
        self.script, self.calls = script, 0

    def forward(self, ids: Tensor, *_: Any, **__: Any) -> Tensor:
        self.calls += 1
        if ids.shape[1] > self.config.context:
            raise ValueError("ids must fit the context")
        following = [[self.script[int(i)] for i in row] for row in ids]
        return F.one_hot(torch.tensor(following), self.config.vocab).double()


def end_of_sequence() -> None:
    """A row ends with the first end token that it generates, and is padded with it while others run."""
    script = Scripted({5: 2, 2: 1, 1: 5})
    found = generate(script, torch.tensor([[5, 2], [2, 5]]), 9, eos=5)
    expected = [[5, 2, 1, 5, 5], [2, 5, 2, 1, 5]]
    require(found.tolist() == expected, f"generation gives {found.tolist()}, not {expected}")
    require(script.calls == 3, f"generation takes {script.calls} steps, not 3, to finish both rows")


def context_limit() -> None:
    """Generation stops at the context, whatever was asked for, and after the tokens asked for."""
    model = small_decoder()
    for cached in (True, False):
        found = generate(model, some_ids(1, 14), 10, cached=cached).shape[1]
        require(found == 16, f"generation from 14 tokens in a context of 16 ends at {found}")
        found = generate(model, some_ids(1, 5), 3, cached=cached).shape[1]
        require(found == 8, f"3 tokens after 5 make {found}")


def mode_restored() -> None:
    """Generation leaves training mode as it was, also after an error."""
    for training in (True, False):
        for script in ({5: 5}, {}):
            model = Scripted(script).train(training)
            with suppress(KeyError):  # the second script knows no token
                generate(model, torch.tensor([[5]]), 2)
            require(model.training == training, f"training mode is {model.training} after generation, not {training}")


CHECKS: dict[str, Callable[[], None]] = {
    "parameters": parameters,
    "tying": tying,
    "start": start,
    "norm value": norm_value,
    "norm in half precision, finite": norm_half_finite,
    "norm in half precision, constant": norm_half_constant,
    "norm in double precision": norm_double,
    "rotary pairing": rotary_pairing,
    "attention reference": attention_reference,
    "causality": causality,
    "shift invariance": shift_invariance,
    "block reference": block_reference,
    "final norm reference": final_norm_reference,
    "all gradients": all_gradients,
    "cached step": cached_step,
    "end of sequence": end_of_sequence,
    "context limit": context_limit,
    "mode restored": mode_restored,
}


def failures() -> dict[str, str]:
    """Run every check; the ones that fail, each with what it found."""
    found = {}
    for name, run in CHECKS.items():
        try:
            run()
        except Exception as error:  # a broken decoder may fail in any way
            found[name] = f"{type(error).__name__}: {error}" if not isinstance(error, CheckFailed) else str(error)
    return found


def self_check() -> int:
    """Print each check and its outcome, then the parameters of the default design. Returns 0 if all hold, else 1."""
    failed = failures()
    for name in CHECKS:
        print(f"FAILED  {name}: {failed[name]}" if name in failed else f"ok      {name}")
    print(f"{len(CHECKS) - len(failed)} of {len(CHECKS)} checks hold.")
    with torch.device("meta"):
        print(f"{parameter_count(Decoder(Config())):,} parameters in the default design")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(self_check())
