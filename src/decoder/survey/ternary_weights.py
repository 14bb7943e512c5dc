"""Ternary weights: every weight of a matrix is -1, 0 or 1, times one scale for all.

BitNet b1.58 (Ma et al., 2402.17764, section 2): log2 3 = 1.58 bits a weight. The scale is the mean size of the
weights; inputs are rounded to 8 bits, with a scale of their own for each token. Training keeps full weights and
lets the gradient pass through the rounding as if it were not there: the small steps add up until a weight flips.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

SMALLEST = 1e-5  # of a scale, so that all-zero weights divide by something
A_BYTE = 5  # ternary values: 3**5 = 243 fit into 256


def ternary(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Values in {-1, 0, 1} of the shape of ``weight`` and their scale, (): weight is about values * scale."""
    scale = weight.abs().mean().clamp(min=SMALLEST)
    return (weight / scale).round().clamp(-1, 1), scale


def eight_bits(x: Tensor) -> tuple[Tensor, Tensor]:
    """Whole numbers from -128 to 127 and a scale for each token: (..., d) -> (..., d), (..., 1)."""
    scale = x.abs().amax(-1, keepdim=True).clamp(min=SMALLEST) / 127
    return (x / scale).round().clamp(-128, 127), scale


def straight_through(x: Tensor, rounded: Tensor) -> Tensor:
    """``rounded`` in the forward pass, the gradient of ``x`` in the backward pass."""
    return x + (rounded - x).detach()


class TernaryLinear(nn.Linear):
    """A linear layer, without bias, that trains full weights and multiplies with ternary ones."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__(in_features, out_features, bias=False)

    def forward(self, x: Tensor) -> Tensor:  # (..., in) -> (..., out)
        values, scale = ternary(self.weight)
        levels, step = eight_bits(x)
        return F.linear(straight_through(x, levels * step), straight_through(self.weight, values * scale))


def make_ternary(model: nn.Module, keep: tuple[str, ...] = ("head",)) -> nn.Module:
    """The model with every `nn.Linear` replaced, weights kept, but those whose name is in ``keep``. In place.

    Embeddings, norms and the head stay as they are. Raises ValueError for a linear layer with a bias.
    """
    for name, module in list(model.named_modules()):
        if not isinstance(module, nn.Linear) or name in keep or isinstance(module, TernaryLinear):
            continue
        if module.bias is not None:
            raise ValueError(f"{name} must have no bias to become ternary")
        new = TernaryLinear(module.in_features, module.out_features)
        new.weight = module.weight
        model.set_submodule(name, new)
    return model


def pack(values: Tensor) -> Tensor:
    """Ternary values as bytes, five in each, 1.6 bits a value: (N,) -> (ceil(N / 5),) of uint8."""
    digits = F.pad(values.flatten().to(torch.int64) + 1, (0, -values.numel() % A_BYTE)).unflatten(0, (-1, A_BYTE))
    return (digits * 3 ** torch.arange(A_BYTE)).sum(-1).to(torch.uint8)


def unpack(packed: Tensor, count: int) -> Tensor:
    """The first ``count`` values that were packed."""
    digits = packed.to(torch.int64)[:, None] // 3 ** torch.arange(A_BYTE) % 3
    return (digits - 1).flatten()[:count]
