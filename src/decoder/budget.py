"""What a decoder costs: parameters, bytes and FLOPs, each count stated once.

``FORMULAS`` holds every count as a SymPy expression in the book's notation (``decoder.notation``). The functions
below evaluate them exactly for a Config; ``latex`` displays them; ``javascript`` gives the calculator the same
expressions. Conventions are named in the results, because most disagreements about such figures are about them.

Sources: multi-head attention and its parts, Vaswani et al. 2017 (1706.03762); grouped keys and values, Ainslie et
al. 2023 (2305.13245); latent attention, DeepSeek-AI 2024 (2405.04434, section 2.1); activations of a block,
Korthikanti et al. 2022 (2205.05198, section 4.1); ZeRO stages, Rajbhandari et al. 2019 (1910.02054, section 5).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import ClassVar, Literal, get_args

from sympy import Expr, Integer, Min, ceiling

from decoder import formula as faces
from decoder.config import Config

# isort: off
from decoder.notation import (
    CALLERS, MEANING, specialise, values,
    B, D, E, H, K, L, N, P, T, V, L_e, L_f, L_w, a, b_e, b_h, b_k, b_m, b_o, b_q, b_r, b_v, bits, c, d, e, g, h, k, m,
    m_e, m_s, n, n_b, n_e, n_f, p, q, q_1, q_h, r, s, u, v, w, x, y, z,
)  # fmt: skip

# isort: on
from decoder.validate import number, one_of, whole

Pairs = Literal["causal", "halved", "all"]
Layout = Literal["12-byte", "16-byte"]
Phase = Literal["prefill", "decode"]

BITS = {"fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "fp4": 4, "int4": 4}

UNITS = (("kB", "KiB"), ("MB", "MiB"), ("GB", "GiB"), ("TB", "TiB"))
FACTORS = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12} | {
    unit: base**power
    for power, pair in enumerate(UNITS, start=1)
    for unit, base in zip(pair, (1000, 1024), strict=True)
}

# --- Parameters. Matrices first, because FLOPs need them without biases and norms.

_head_matrices = 2 * d * H * h + 2 * d * K * h
_head_biases = (b_q * H + b_k * K + b_v * K) * h + b_o * d + s * H
_query_matrices = z * q * (d + H * (n + r)) + (1 - z) * d * H * (n + r)
_latent_matrices = _query_matrices + d * (c + r) + c * H * (n + v) + H * v * d
_attention_matrices = (1 - a) * _head_matrices + a * _latent_matrices

_dense_matrices = g * d * m
_expert_matrices = g * d * m_e
_shared_matrices = g * d * m_s
_router_matrices = E * d + y * d
_expert = _expert_matrices + b_e * ((g - 1) * m_e + d)

_embedding = V * e + P * d + 2 * x * e * d
_attention = L * (_attention_matrices + (1 - a) * _head_biases)
_feed_forward = L_f * (_dense_matrices + b_m * ((g - 1) * m + d)) + L_e * (E * _expert + _shared_matrices)
_router = L_e * (_router_matrices + b_r * E)
_head_norms = (2 * q_1 + (H + K) * q_h) * p * h
_norms = (L * N + n_f + n_e) * p * d + L * ((1 - a) * _head_norms + a * (c + z * q))
_head = u * V * e + b_h * V
_total = _embedding + _attention + _feed_forward + _router + _norms + _head
_active = _total - L_e * (E - k) * _expert

# --- FLOPs: two for each weight that multiplies. The head always does, the input look-up never.


def _multiplying(experts: Expr) -> Expr:
    """Weights in matrix products when each layer with experts uses ``experts`` of them."""
    sparse = experts * _expert_matrices + _shared_matrices + _router_matrices
    return L * _attention_matrices + L_f * _dense_matrices + L_e * sparse + V * e + 2 * x * e * d


_matmul_weights = _multiplying(k)
_score_and_value = (1 - a) * 2 * H * h + a * H * (n + r + v)  # multiply-adds for one key in one layer
_seen = Min(T, w)  # keys that the last token sees on a windowed layer
_twice_pairs: dict[Pairs, tuple[Expr, Expr]] = {  # twice the (query, key) pairs: full layers, windowed layers
    "causal": (T * (T + 1), _seen * (_seen + 1) + 2 * (T - _seen) * _seen),
    "halved": (T**2, _seen**2 + 2 * (T - _seen) * _seen),
    "all": (2 * T**2, 2 * T**2),
}

# --- The cache, and what a step moves.

_cached_values = (1 - a) * 2 * K * h + a * (c + r)  # values for one token in one layer
_kept = (L - L_w) * T + L_w * _seen  # (token, layer) places that attention can still reach


def _ceiling(quotient: Expr) -> Expr:
    """Rounded up; SymPy need not look for a simpler form, of which there is none."""
    return ceiling(quotient, evaluate=False)


def _bytes(stored: Expr) -> Expr:
    return _ceiling(stored * bits / 8)


# --- Activations of a block: what its backward pass needs, each tensor once, no dropout, nothing recomputed.

_head_tensors = (2 * H + 2 * K) * h  # q, k, v and the heads' output
_latent_tensors = z * q + c + r + 2 * H * (n + r) + 2 * H * v
_qk_norm_inputs = (1 - a) * (q_1 + q_h) * (H + K) * h + a * (c + z * q)
_saved_attention = d + (1 - a) * _head_tensors + a * _latent_tensors + _qk_norm_inputs
_saved_dense = d + 2 * (g - 1) * m
_saved_sparse = d + E + 2 * (g - 1) * (k * m_e + m_s)
_saved_block = N * d + _saved_attention

FORMULAS: dict[str, Expr] = {
    "embedding": _embedding,
    "attention": _attention,
    "feed_forward": _feed_forward,
    "router": _router,
    "norms": _norms,
    "head": _head,
    "other": Integer(0),
    "total": _total,
    "active": _active,
    "active_without_embedding": _active - _embedding,
    "matmul_weights": _matmul_weights,
    "forward_per_token_weights": 2 * _matmul_weights,
    "attention_per_token_per_key": 2 * L * _score_and_value,
    "forward_weights": 2 * B * T * _matmul_weights,
    **{
        f"attention_{pairs}": B * _score_and_value * ((L - L_w) * full + L_w * windowed)
        for pairs, (full, windowed) in _twice_pairs.items()
    },
    "six_n": 6 * (_total - P * d - u * V * e) + 12 * L * H * h * T,
    "cache_bytes_per_token": _bytes(L * _cached_values),
    "cache_bytes": _bytes(B * T * L * _cached_values),
    "cache_needed_bytes": _bytes(B * _kept * _cached_values),
    "cache_bytes_full_layer": _bytes(B * T * _cached_values),
    "cache_bytes_windowed_layer": _bytes(B * _seen * _cached_values),
    "weight_bytes": _bytes(_total),
    "training_part": _ceiling(n_b * _total / D),
    "decode_flops": 2 * B * (_matmul_weights + _score_and_value * _kept),
    "decode_weight_bytes": _bytes(_multiplying(Min(E, B * k))),
    "prefill_weight_bytes": _bytes(_multiplying(Min(E, B * T * k))),
    "block_activations": B * T * (_saved_block + _saved_dense),
    "sparse_block_activations": B * T * (_saved_block + _saved_sparse),
    "score_activations": B * H * T**2,
}


@cache
def _evaluator(name: str) -> Callable[[Mapping[str, int]], int]:
    return faces.evaluator(FORMULAS[name], MEANING)


def count(name: str, config: Config, **sizes: int) -> int:
    """One formula's exact value. ``sizes`` gives the symbols that no Config fixes: B, T, bits, n_b, D.

    Raises ValueError for a name that ``FORMULAS`` lacks, or a size that is missing or not a whole number from 1.
    """
    one_of("formula", name, FORMULAS)
    for size, value in sizes.items():
        whole(size, value)
    missing = [str(size) for size in CALLERS if size in FORMULAS[name].free_symbols and size.name not in sizes]
    if missing:
        raise ValueError(f"{name} needs {', '.join(missing)}")
    return _evaluator(name)(values(config) | sizes)


def latex(name: str, config: Config | None = None) -> str:
    """One formula, displayed: for every decoder, or as ``config`` needs it (choices decided, sizes as letters)."""
    one_of("formula", name, FORMULAS)
    return faces.latex(FORMULAS[name] if config is None else specialise(FORMULAS[name], config), MEANING)


def javascript() -> str:
    """The text of an ES module with every formula, exact (BigInt), for the calculator."""
    return faces.javascript_module(FORMULAS, MEANING)


def in_unit(number: float, unit: str) -> float:
    """A count, or bytes, in a unit by its name, as an axis shows it: kB is ``10**3``, KiB is ``2**10``, million 10**6.

    Raises ValueError for a unit that ``FACTORS`` lacks.
    """
    one_of("unit", unit, FACTORS)
    return number / FACTORS[unit]


def bytes_text(number: int) -> str:
    """Bytes exactly, then in a decimal unit and in a binary one."""
    for decimal, binary in reversed(UNITS):
        if number >= FACTORS[binary]:
            return (
                f"{number:,} bytes ({in_unit(number, decimal):,.2f} {decimal}, {in_unit(number, binary):,.2f} {binary})"
            )
    return f"{number:,} bytes"


@dataclass(frozen=True)
class Result:
    """A set of figures that knows its unit, its convention and the formula of each figure."""

    config: Config = field(repr=False)
    unit: ClassVar[str]
    convention: ClassVar[str]
    formulas: ClassVar[dict[str, str]]  # attribute -> name in FORMULAS

    def formula(self, name: str) -> Expr:
        """The formula behind one attribute, as this decoder needs it: choices decided, sizes as letters."""
        known = self.formulas
        if name not in known:
            raise ValueError(f"{type(self).__name__} has formulas for {', '.join(known)}, got {name!r}")
        expr = specialise(FORMULAS[known[name]], self.config)
        return expr.subs(bits, BITS[self.dtype]) if isinstance(self, CacheBytes | Weights) else expr

    def latex(self, name: str) -> str:
        """The same formula, displayed."""
        return faces.latex(self.formula(name), MEANING)

    def _show(self, number: int) -> str:
        return bytes_text(number) if self.unit == "bytes" else f"{number:,} {self.unit}"

    def __str__(self) -> str:
        lines = [f"{type(self).__name__}: {self.convention}"]
        lines += [f"  {name:<27} {self._show(getattr(self, name))}" for name in self.formulas]
        return "\n".join(lines)


@dataclass(frozen=True)
class Parameters(Result):
    """Trained values of each part. ``int()`` of it is the total."""

    embedding: int  # token rows, learned positions, projections of a narrower embedding
    attention: int
    feed_forward: int
    router: int  # with the gate of shared experts
    norms: int  # with QK-norm and the norms of latents
    head: int  # 0 when tied, but for a bias
    other: int
    total: int
    active: int
    active_without_embedding: int

    unit = "parameters"
    convention = (
        "a shared tensor counts once; buffers do not count; active = everything but the routed experts that a token "
        "does not visit; without embedding leaves out the embedding part, with it a tied head"
    )
    formulas: ClassVar = {
        name: name
        for name in (
            "embedding", "attention", "feed_forward", "router", "norms", "head", "other", "total", "active",
            "active_without_embedding",
        )
    }  # fmt: skip

    def __int__(self) -> int:
        return self.total


def parameters(config: Config) -> Parameters:
    """Count every trained value of a decoder, by part. Exact: equal to ``numel`` summed over the built model."""
    known = values(config)
    return Parameters(config, *(_evaluator(name)(known) for name in Parameters.formulas))


@dataclass(frozen=True)
class CacheBytes(Result):
    """The key-value cache. ``int()`` of it is ``bytes``, every layer holding every token."""

    tokens: int
    batch: int
    dtype: str
    bytes_per_token: int  # one token of one sequence, all layers
    bytes: int  # all layers hold all tokens: what is reserved where windowed layers get room like the others
    needed_bytes: int  # windowed layers hold only what attention can still reach
    layers: tuple[int, ...]  # needed bytes of each layer

    unit = "bytes"
    convention = (
        "keys and values of each kv head, or one latent and one rotary key; bytes: every layer holds every token "
        "(reserved); needed_bytes: a windowed layer holds min(tokens, window)"
    )
    formulas: ClassVar = {
        "bytes_per_token": "cache_bytes_per_token",
        "bytes": "cache_bytes",
        "needed_bytes": "cache_needed_bytes",
    }

    def __int__(self) -> int:
        return self.bytes


def kv_cache(config: Config, tokens: int = 1, batch: int = 1, dtype: str = "bf16") -> CacheBytes:
    """Bytes of the cache for ``batch`` sequences of ``tokens`` each, values stored as ``dtype``.

    Raises ValueError for an unknown dtype, or for counts that are not whole numbers from 1.
    """
    one_of("dtype", dtype, BITS)
    whole("tokens", tokens)
    whole("batch", batch)
    known = values(config) | {"T": tokens, "B": batch, "bits": BITS[dtype]}
    full = _evaluator("cache_bytes_full_layer")(known)
    windowed = _evaluator("cache_bytes_windowed_layer")(known)
    short = set(config.windowed_layers)
    layers = tuple(windowed if layer in short else full for layer in range(config.layers))
    figures = {figure: _evaluator(name)(known) for figure, name in CacheBytes.formulas.items()}
    return CacheBytes(config, tokens, batch, dtype, layers=layers, **figures)


def paged_window(window: int, context: int, batched_tokens: int, block: int = 16) -> int:
    """Tokens that a paged engine reserves for one sequence on a windowed layer: whole blocks, and one more.

    vLLM's rule: while ``batched_tokens`` are added, the last ``window - 1`` must stay, never more than ``context``;
    one block more because the window need not start at a block's edge.
    """
    for name, value in (("window", window), ("context", context), ("batched_tokens", batched_tokens), ("block", block)):
        whole(name, value)
    return (-(-min(window - 1 + batched_tokens, context) // block) + 1) * block


@dataclass(frozen=True)
class Flops(Result):
    """Floating-point operations, a multiply-add being two. ``int()`` of it is ``forward``."""

    tokens: int
    batch: int
    pairs: Pairs
    forward_per_token_weights: int
    attention_per_token_per_key: int
    weights: int  # forward, all tokens, products with weights
    attention: int  # forward, all tokens, scores and weighted values

    unit = "FLOPs"
    convention = (
        "2 per weight that multiplies: the head always, the input look-up never, only visited experts; attention: "
        "scores and weighted values; latent attention with keys and values expanded; training = 3 x forward"
    )

    @property
    def formulas(self) -> dict[str, str]:  # type: ignore[override]
        return {
            "forward_per_token_weights": "forward_per_token_weights",
            "attention_per_token_per_key": "attention_per_token_per_key",
            "weights": "forward_weights",
            "attention": f"attention_{self.pairs}",
        }

    @property
    def forward(self) -> int:
        return self.weights + self.attention

    @property
    def training(self) -> int:
        """Forward and backward: the backward pass multiplies twice for each forward product."""
        return 3 * self.forward

    def __int__(self) -> int:
        return self.forward

    def __str__(self) -> str:
        lines = [super().__str__(), f"  {'pairs':<27} {self.pairs}"]
        lines += [f"  {name:<27} {self._show(getattr(self, name))}" for name in ("forward", "training")]
        return "\n".join(lines)


def flops(config: Config, tokens: int = 1, batch: int = 1, pairs: Pairs = "causal") -> Flops:
    """FLOPs of a forward pass over ``batch`` sequences of ``tokens``.

    ``pairs`` names the convention for attention: ``causal`` counts the visible (query, key) pairs exactly,
    T(T+1)/2 or fewer in a window; ``halved`` takes T*T/2; ``all`` counts T*T, masked or not.
    """
    one_of("pairs", pairs, get_args(Pairs))
    sizes = {"T": tokens, "B": batch}
    whole("tokens", tokens)
    whole("batch", batch)
    known = values(config) | sizes
    names = ("forward_per_token_weights", "attention_per_token_per_key", "forward_weights", f"attention_{pairs}")
    return Flops(config, tokens, batch, pairs, *(_evaluator(name)(known) for name in names))


def six_n(config: Config, tokens: int) -> int:
    """Training FLOPs a token by the rule 6 N + 12 L H h T (PaLM, 2204.02311, appendix B).

    N is every parameter but the position table and, when the head is untied, the input embedding; all pairs count.
    Norms and biases are in N though they multiply no matrix, so it is a little above ``flops(...).training``.
    """
    return count("six_n", config, T=tokens)


@dataclass(frozen=True)
class Weights(Result):
    """Bytes of the stored parameters."""

    dtype: str
    bytes: int

    unit = "bytes"
    convention = "every parameter once, in one dtype; scales of a quantised format are not counted"
    formulas: ClassVar = {"bytes": "weight_bytes"}

    def __int__(self) -> int:
        return self.bytes


def weights(config: Config, dtype: str = "bf16") -> Weights:
    """Bytes of all parameters stored as ``dtype``."""
    one_of("dtype", dtype, BITS)
    return Weights(config, dtype, count("weight_bytes", config, bits=BITS[dtype]))


# Bytes a parameter: weights, gradients, the two Adam moments, a master copy.
LAYOUTS: dict[Layout, dict[str, int]] = {
    "12-byte": {"weights": 2, "gradients": 2, "moments": 8, "master": 0},
    "16-byte": {"weights": 2, "gradients": 2, "moments": 8, "master": 4},
}
# What each ZeRO stage divides among the devices.
ZERO = {0: (), 1: ("moments", "master"), 2: ("moments", "master", "gradients"), 3: tuple(LAYOUTS["12-byte"])}


@dataclass(frozen=True)
class TrainingMemory:
    """Bytes on one device for the state of training; activations are not in it. ``int()`` of it is ``total``."""

    layout: Layout
    zero: int
    devices: int
    weights: int
    gradients: int
    moments: int
    master: int

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.moments + self.master

    @property
    def convention(self) -> str:
        return (
            f"{self.layout} layout: 16-bit weights and gradients, two FP32 Adam moments"
            + (", an FP32 master copy" if self.layout == "16-byte" else "")
            + f"; ZeRO stage {self.zero} over {self.devices} devices by plain division, rounded up"
        )

    def __int__(self) -> int:
        return self.total

    def __str__(self) -> str:
        lines = [f"TrainingMemory: {self.convention}"]
        names = ("weights", "gradients", "moments", "master", "total")
        return "\n".join(lines + [f"  {name:<27} {bytes_text(getattr(self, name))}" for name in names])


def training_memory(config: Config, layout: Layout = "16-byte", zero: int = 0, devices: int = 1) -> TrainingMemory:
    """Weights, gradients and Adam's state for every parameter, on one of ``devices``.

    ``zero`` is the ZeRO stage: 1 divides the optimizer's state, 2 the gradients too, 3 the weights too.
    """
    one_of("layout", layout, LAYOUTS)
    one_of("zero", zero, ZERO)
    whole("devices", devices)
    parts = {
        part: count("training_part", config, n_b=each, D=devices if part in ZERO[zero] else 1) if each else 0
        for part, each in LAYOUTS[layout].items()
    }
    return TrainingMemory(layout, zero, devices, **parts)


@dataclass(frozen=True)
class Activations:
    """Bytes that the backward pass keeps. ``int()`` of it is ``total``, all layers without the head."""

    block: int  # one layer with a dense feed-forward part (the experts' layer where all layers have experts)
    total: int  # all layers
    logits: int  # the head's output in FP32, kept for the loss
    scores_kept: bool
    dtype: str

    convention: ClassVar[str] = (
        "each tensor that a backward pass needs, once: inputs of norms and matrices, q, k, v, both sides of the "
        "activation; no dropout, nothing recomputed (Korthikanti et al. 2022, section 4.1, less the dropout masks)"
    )

    def __int__(self) -> int:
        return self.total

    def __str__(self) -> str:
        kept = "softmax output kept" if self.scores_kept else "scores not kept (fused attention)"
        lines = [f"Activations: {self.convention}; {kept}"]
        names = ("block", "total", "logits")
        return "\n".join(lines + [f"  {name:<27} {bytes_text(getattr(self, name))}" for name in names])


def activations(
    config: Config, tokens: int, batch: int = 1, dtype: str = "bf16", scores_kept: bool = False
) -> Activations:
    """Bytes kept for the backward pass of ``batch`` sequences of ``tokens``.

    ``scores_kept`` adds the H*T*T softmax output of attention that is not fused.
    """
    one_of("dtype", dtype, BITS)
    sizes = {"T": tokens, "B": batch}
    scores = count("score_activations", config, **sizes) if scores_kept else 0
    dense = count("block_activations", config, **sizes) + scores
    sparse = count("sparse_block_activations", config, **sizes) + scores
    known = values(config)
    total = known["L_f"] * dense + known["L_e"] * sparse
    size = lambda stored: -(-stored * BITS[dtype] // 8)
    block = dense if known["L_f"] else sparse
    return Activations(size(block), size(total), 4 * batch * tokens * config.vocab, scores_kept, dtype)


@dataclass(frozen=True)
class Intensity:
    """FLOPs done and bytes moved by one step. ``float()`` of it is FLOPs per byte; ``ratio`` is exact."""

    phase: Phase
    flops: int
    weight_bytes: int
    cache_bytes: int

    convention: ClassVar[str] = (
        "bytes: each weight that multiplies read once (as many experts as the step can visit), the cache read and "
        "written; activations are taken to stay on chip; head on every token"
    )

    @property
    def bytes(self) -> int:
        return self.weight_bytes + self.cache_bytes

    @property
    def ratio(self) -> Fraction:
        return Fraction(self.flops, self.bytes)

    def __float__(self) -> float:
        return float(self.ratio)

    def __str__(self) -> str:
        return (
            f"Intensity of {self.phase}: {float(self):,.2f} FLOPs per byte ({self.flops:,} FLOPs, "
            f"{self.bytes:,} bytes)\n  {self.convention}"
        )


def intensity(
    config: Config, tokens: int, batch: int = 1, phase: Phase = "decode", dtype: str = "bf16", cache_dtype: str = "bf16"
) -> Intensity:
    """Arithmetic intensity of one step.

    ``decode`` adds one token to each of ``batch`` sequences, which then sees ``tokens`` keys, itself included;
    ``prefill`` runs ``batch`` prompts of ``tokens`` and writes their cache.
    """
    one_of("phase", phase, get_args(Phase))
    one_of("dtype", dtype, BITS)
    cached = kv_cache(config, tokens, batch, cache_dtype)
    sizes = {"T": tokens, "B": batch, "bits": BITS[dtype]}
    weight_bytes = count(f"{phase}_weight_bytes", config, **sizes)
    if phase == "prefill":
        return Intensity(phase, flops(config, tokens, batch).forward, weight_bytes, cached.bytes)
    written = kv_cache(config, 1, batch, cache_dtype).bytes
    return Intensity(phase, count("decode_flops", config, **sizes), weight_bytes, cached.needed_bytes + written)


@dataclass(frozen=True)
class TimeBound:
    """The least time a step can take on given hardware. ``float()`` of it is ``seconds``."""

    compute: float  # seconds, if FLOPs alone took time
    memory: float  # seconds, if moving bytes alone took time

    convention: ClassVar[str] = "compute and memory traffic overlap in full; both rates are sustained rates"

    @property
    def seconds(self) -> float:
        return max(self.compute, self.memory)

    @property
    def limit(self) -> Literal["compute", "memory"]:
        return "compute" if self.compute >= self.memory else "memory"

    def __float__(self) -> float:
        return self.seconds

    def __str__(self) -> str:
        return f"at least {self.seconds:.4g} s, limited by {self.limit} ({self.convention})"


def time_bound(step: Intensity, flop_rate: float, bandwidth: float) -> TimeBound:
    """Bound a step's time by ``flop_rate`` (FLOPs a second) and ``bandwidth`` (bytes a second)."""
    for name, rate in (("flop_rate", flop_rate), ("bandwidth", bandwidth)):
        number(name, rate)
    return TimeBound(step.flops / flop_rate, step.bytes / bandwidth)
