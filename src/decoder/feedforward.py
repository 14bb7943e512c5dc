"""The feed-forward part: what each token computes on its own.

Plain: down(f(up(x))). Gated (Shazeer, 2002.05202): down(f(gate(x)) * up(x)), named by f: SwiGLU (silu), GEGLU (gelu),
ReGLU (relu), bilinear (identity).
"""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from decoder.config import Config

# --8<-- [start:feed-forward]
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
        from decoder.survey.mixture_of_experts import MixtureOfExperts

        return MixtureOfExperts(config, config.experts)
    return FeedForward(config)
