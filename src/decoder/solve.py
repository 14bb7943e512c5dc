"""Choose sizes: a width or depth for a total, a hidden width for a gate, the key/value heads that divide the heads.

Each solver counts with ``decoder.budget``, whole: embedding, norms, biases, the rounding of every size. A rule of
thumb that scales width by the square root of depth forgets the embedding, which does not scale with depth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from decoder.budget import count, parameters
from decoder.config import Config
from decoder.validate import one_of, whole

WIDEST = 1_000_000
DEEPEST = 10_000


@dataclass(frozen=True)
class Sized:
    """A config close to a wanted total. ``difference`` is its total minus the wanted one."""

    config: Config
    total: int
    wanted: int

    @property
    def difference(self) -> int:
        return self.total - self.wanted

    @property
    def relative(self) -> float:
        return self.difference / self.wanted

    def __str__(self) -> str:
        config = self.config
        return (
            f"{config.layers} layers x width {config.width}, {config.heads} heads of {config.head_width} "
            f"({config.kv_heads} kv), hidden {config.hidden}: {self.total:,} parameters, "
            f"{self.difference:+,} ({self.relative:+.2%}) from {self.wanted:,}"
        )


def depth_for(config: Config, total: int) -> Sized:
    """The number of layers whose total is nearest to ``total``, all else as in ``config``.

    Layers are equal, so the count is linear in depth and one division finds it; the exact count then decides between
    the neighbours. Raises ValueError where one layer is already too much, or layers differ from each other.
    """
    whole("total", total)
    if config.windowed_layers not in ((), tuple(range(config.layers))) or config.no_rope_layers:
        raise ValueError("depth_for needs layers that are all alike, got windowed_layers or no_rope_layers")
    if config.experts is not None and config.experts.dense_layers:
        raise ValueError("depth_for needs layers that are all alike, got experts.dense_layers")

    def at(layers: int) -> Config:
        windowed = None if config.window is not None else ()
        return config.replace(layers=layers, windowed_layers=windowed)

    one, two = (parameters(at(layers)).total for layers in (1, 2))
    if total < one:
        raise ValueError(f"total must be at least {one:,}, what one layer needs, got {total:,}")
    below = min(1 + (total - one) // (two - one), DEEPEST - 1)
    return _nearest(total, (at(below), at(below + 1)))


def width_for(
    config: Config,
    total: int,
    *,
    keep: Literal["head_width", "heads"] = "head_width",
    ffn_ratio: Fraction | float | None = None,
    hidden_multiple: int = 1,
) -> Sized:
    """The width whose total is nearest to ``total`` at the depth of ``config``.

    With ``keep="head_width"`` the width grows by whole groups of heads, with ``"heads"`` the heads grow wider, by two
    coordinates at a time; either way kv_heads keep their share of the heads exactly. ``ffn_ratio`` is hidden / width,
    by default that of ``config``; hidden is rounded to a multiple of ``hidden_multiple``. Raises ValueError where no
    width reaches the total.
    """
    whole("total", total)
    whole("hidden_multiple", hidden_multiple)
    if config.latent is not None or config.experts is not None or config.embedding_width is not None:
        raise ValueError("width_for sizes decoders without latent attention, experts and a narrower embedding")
    one_of("keep", keep, ("head_width", "heads"))
    ratio = Fraction(config.hidden, config.width) if ffn_ratio is None else Fraction(ffn_ratio)
    if ratio <= 0:
        raise ValueError(f"ffn_ratio must be above 0, got {ffn_ratio!r}")
    share = Fraction(config.kv_heads, config.heads)
    rotated = Fraction(config.rotary_width, config.head_width)

    def at(step: int) -> Config:
        heads = step * share.denominator if keep == "head_width" else config.heads
        head_width = config.head_width if keep == "head_width" else 2 * step
        width = heads * head_width
        return config.replace(
            width=width,
            heads=heads,
            kv_heads=int(share * heads),
            head_width=head_width,
            hidden=max(_round_to(ratio * width, hidden_multiple), hidden_multiple),
            rotary_width=2 * max(math.floor(rotated * head_width / 2), 1),
        )

    unit = at(1).width
    step = _last_below(lambda step: parameters(at(step)).total <= total, WIDEST // unit)
    if step == 0:
        raise ValueError(f"total must be at least {parameters(at(1)).total:,}, what width {unit} needs, got {total:,}")
    return _nearest(total, (at(step), at(step + 1)))


def continuous_width(
    config: Config, total: int, ffn_ratio: Fraction | float | None = None, kv_share: Fraction | float | None = None
) -> float:
    """The real-valued width that meets ``total`` exactly, before any rounding to heads and multiples.

    Query heads fill the width, kv_heads are ``kv_share`` of the heads and hidden is ``ffn_ratio`` times the width, by
    default as in ``config``. The count is then quadratic in the width, and three exact counts determine it.
    """
    whole("total", total)
    ratio = Fraction(config.hidden, config.width) if ffn_ratio is None else Fraction(ffn_ratio)
    share = Fraction(config.kv_heads, config.heads) if kv_share is None else Fraction(kv_share)
    unit = math.lcm(ratio.denominator, share.denominator)

    def at(width: int) -> Fraction:
        # One head per coordinate keeps every product whole: H h = width and K h = share * width.
        sizes = {"width": width, "heads": width, "kv_heads": width, "head_width": 1, "hidden": int(ratio * width)}
        whole_heads = config.replace(**sizes, positions="none", rotary_width=1)
        full, narrow = (parameters(whole_heads.replace(kv_heads=kv)).total for kv in (width, 1))
        slope = Fraction(full - narrow, width - 1)
        return narrow + slope * (share * width - 1)

    x = [unit * factor for factor in (2, 4, 6)]
    y = [Fraction(at(width)) for width in x]
    step = x[1] - x[0]
    a = (y[2] - 2 * y[1] + y[0]) / (2 * step**2)
    b = (y[1] - y[0]) / step - a * (x[0] + x[1])
    c = y[0] - a * x[0] ** 2 - b * x[0]
    return float((-b + Fraction(math.sqrt(b * b - 4 * a * (c - total)))) / (2 * a))


def valid_kv_heads(heads: int) -> tuple[int, ...]:
    """Every K that H query heads can share: the divisors of H, from 1 (multi-query) to H (multi-head)."""
    whole("heads", heads)
    small = [kv for kv in range(1, math.isqrt(heads) + 1) if heads % kv == 0]
    return tuple(sorted({*small, *(heads // kv for kv in small)}))


def padded_vocab(entries: int, multiple: int = 64) -> int:
    """Rows of the embedding when a vocabulary of ``entries`` is padded to a multiple that the hardware likes."""
    whole("entries", entries)
    whole("multiple", multiple)
    return -(-entries // multiple) * multiple


@dataclass(frozen=True)
class MatchedHidden:
    """A gated hidden width that keeps the weights of a plain one. ``difference`` is gated minus plain weights."""

    hidden: int
    exact: Fraction  # 2/3 of the plain hidden width, unrounded
    plain_weights: int
    gated_weights: int

    @property
    def difference(self) -> int:
        return self.gated_weights - self.plain_weights


def matched_hidden(
    width: int, plain_hidden: int, multiple: int = 1, rounding: Literal["nearest", "up", "down"] = "nearest"
) -> MatchedHidden:
    """The gated hidden width with as many weights as a plain part: 3 d m' = 2 d m, rounded to ``multiple``.

    ``multiple`` is what the hardware likes (64, 128, 256); half way goes up. Raises ValueError where rounding down
    leaves nothing.
    """
    for name, value in (("width", width), ("plain_hidden", plain_hidden), ("multiple", multiple)):
        whole(name, value)
    one_of("rounding", rounding, ("nearest", "up", "down"))
    exact = Fraction(2 * plain_hidden, 3)
    steps = {"nearest": (exact / multiple + Fraction(1, 2)).__floor__(), "up": math.ceil(exact / multiple)}
    hidden = multiple * steps.get(rounding, math.floor(exact / multiple))
    if hidden < 1:
        raise ValueError(f"multiple must be at most 2/3 of plain_hidden {plain_hidden}, got {multiple}")
    return MatchedHidden(hidden, exact, 2 * width * plain_hidden, 3 * width * hidden)


def _nearest(total: int, candidates: tuple[Config, ...]) -> Sized:
    sized = [Sized(config, count("total", config), total) for config in candidates]
    return min(sized, key=lambda each: (abs(each.difference), each.total))


def _round_to(value: Fraction, multiple: int) -> int:
    return multiple * math.floor(value / multiple + Fraction(1, 2))


def _last_below(holds: Callable[[int], bool], most: int) -> int:
    """The last step from 1 to ``most`` for which ``holds``, which is true first and false after; 0 if none is."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low
