"""Every choice of a decoder, by name.

One frozen dataclass holds the sizes and the choices. Each axis of the book is a field; a value that no chapter
describes is refused with the list of those that one does. The defaults are the book's 100M design.

Notation: B batch, T tokens, d width, L layers, H heads, K kv_heads, h head_width, m hidden, V vocab.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

from decoder.validate import number, one_of, whole

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
        one_of("rope_scaling.kind", self.kind, get_args(RopeScalingKind))
        number("rope_scaling.factor", self.factor)
        whole("rope_scaling.original_context", self.original_context, 2 if self.kind == "longrope" else 1)
        for name in ("beta_fast", "beta_slow", "low_frequency", "high_frequency"):
            number(f"rope_scaling.{name}", getattr(self, name))
        for name in ("attention_factor", "mscale", "mscale_all_dim"):
            if getattr(self, name) is not None:
                number(f"rope_scaling.{name}", getattr(self, name))
        for name in ("short_factors", "long_factors"):
            for i, value in enumerate(getattr(self, name)):
                number(f"rope_scaling.{name}[{i}]", value)
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
                whole(f"latent.{field.name}", value)


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
        whole("experts.count", self.count)
        whole("experts.per_token", self.per_token)
        whole("experts.hidden", self.hidden)
        whole("experts.shared", self.shared, 0)
        if self.per_token > self.count:
            raise ValueError(f"experts.per_token must be at most experts.count {self.count}, got {self.per_token}")
        one_of("experts.scores", self.scores, get_args(Scores))
        number("experts.routed_scale", self.routed_scale)
        self._check_groups()
        if self.shared_hidden is None:
            object.__setattr__(self, "shared_hidden", self.shared * self.hidden)
        whole("experts.shared_hidden", self.shared_hidden, 1 if self.shared else 0)

    def _check_groups(self) -> None:
        whole("experts.groups", self.groups)
        whole("experts.groups_per_token", self.groups_per_token)
        whole("experts.group_best", self.group_best)
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
            whole(name, getattr(self, name))
        if self.head_width is None:
            if self.width % self.heads:
                raise ValueError(
                    f"width must be divisible by heads when head_width is not given, got {self.width} and {self.heads}"
                )
            object.__setattr__(self, "head_width", self.width // self.heads)
        whole("head_width", self.head_width)
        if self.heads % self.kv_heads:
            raise ValueError(f"heads must be divisible by kv_heads, got {self.heads} and {self.kv_heads}")
        for name, kind in (
            ("norm", Norm), ("norm_scale", NormScale), ("norm_placement", NormPlacement), ("qk_norm", QKNorm),
            ("positions", Positions), ("rope_pairing", Pairing), ("activation", Activation), ("block", BlockKind),
        ):  # fmt: skip
            one_of(name, getattr(self, name), get_args(kind))
        for name in ("norm_eps", "rope_base", "residual_scale", "embedding_scale", "logit_scale"):
            number(name, getattr(self, name))
        for name in ("rope_base_windowed", "attention_scale", "attention_softcap", "logit_softcap"):
            if getattr(self, name) is not None:
                number(name, getattr(self, name))
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
        whole("rotary_width", self.rotary_width)
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
        whole("position_rows", self.position_rows, self.context)

    def _check_attention(self) -> None:
        bias = self.attention_bias
        if not isinstance(bias, str) or bias != "".join(c for c in "qkvo" if c in bias):
            raise ValueError(f"attention_bias must be letters of 'qkvo' in that order, got {bias!r}")
        if self.window is not None:
            whole("window", self.window)
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
            whole("embedding_width", self.embedding_width)
        if self.experts is not None:
            _layer_numbers("experts.dense_layers", self.experts.dense_layers, self.layers)

    def replace(self, **changes: Any) -> Config:
        """A copy with some fields changed, validated anew. What was derived is derived again; what was stated stays."""
        return replace(self, **(dict.fromkeys(vars(self)["_derived"]) | changes))
