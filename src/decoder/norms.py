"""Normalization: which statistics a norm takes, and how it scales the result.

RMSNorm (Zhang and Sennrich, 1910.07467) divides by the root of the mean square. LayerNorm (Ba et al., 1607.06450)
first subtracts the mean. Where the norms stand in a block is decided in `decoder.block`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from decoder.config import Config, NormScale


# --8<-- [start:norms]
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
