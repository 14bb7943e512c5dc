"""Gated recurrences: what is kept decays, what arrives is gated, and the state has one size for ever.

`RGLRU`, the real-gated linear recurrent unit of Griffin (De et al., 2402.19427, section 2.4), keeps a vector.
`gated_linear_attention` and `gated_delta_rule` keep a matrix from keys to values; the second first takes away what
its key already recalls (gated DeltaNet, Yang et al., 2412.06464, section 3.1; the linear layers of Qwen3-Next and
Qwen 3.5).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

RATE = 8.0  # Griffin's c: how far a gate can push the decay


class RGLRU(nn.Module):
    """h_t = a_t h_{t-1} + sqrt(1 - a_t^2) (i_t x_t), each coordinate for itself: (B, T, d) -> (B, T, d).

    The gates r = sigmoid(W_a x + b_a) and i = sigmoid(W_x x + b_x) see only x; W is block diagonal. The decay is
    a = sigmoid(rate)^(c r). 2 d d / blocks weights, 2 d biases, d rates; `state_numbers` is d.
    """

    def __init__(self, width: int, blocks: int = 1) -> None:
        super().__init__()
        if width % blocks:
            raise ValueError(f"blocks must divide width {width}, got {blocks}")
        size = width // blocks
        self.state_numbers = width
        self.recurrence_gate, self.input_gate = (
            nn.ParameterDict(
                {
                    "weight": nn.Parameter(torch.randn(blocks, size, size) * size**-0.5),
                    "bias": nn.Parameter(torch.zeros(blocks, size)),
                }
            )
            for _ in range(2)
        )
        start = torch.empty(width).uniform_(0.9, 0.999)  # the decay at r = 1 / c
        self.rate = nn.Parameter(start.logit())

    def forward(self, x: Tensor, state: Tensor | None = None) -> Tensor:
        """From ``state`` (B, d), zero if None."""
        r, i = (self._gate(gate, x) for gate in (self.recurrence_gate, self.input_gate))
        log_decay = RATE * r * F.logsigmoid(self.rate)  # (B, T, d)
        arriving = (-torch.expm1(2 * log_decay)).sqrt() * i * x
        state = torch.zeros_like(x[:, 0]) if state is None else state
        states = []
        for t in range(x.shape[1]):
            state = log_decay[:, t].exp() * state + arriving[:, t]
            states.append(state)
        return torch.stack(states, 1)

    @staticmethod
    def _gate(gate: nn.ParameterDict, x: Tensor) -> Tensor:
        blocks = x.unflatten(-1, gate["bias"].shape)  # (B, T, blocks, d / blocks)
        return torch.sigmoid(torch.einsum("btgi,gij->btgj", blocks, gate["weight"]) + gate["bias"]).flatten(-2)


def gated_linear_attention(q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor) -> Tensor:
    """S <- a S + k v', y = S' q: queries and keys (B, T, H, n), values (B, T, H, p), decays (B, T, H).

    The state is H n p numbers. This is `state_space.recurrent` with other names.
    """
    return gated_delta_rule(q, k, v, log_decay, torch.ones_like(log_decay), erase=False)


def gated_delta_rule(q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, beta: Tensor, erase: bool = True) -> Tensor:
    """S <- a S, then S <- S + beta k (v - S' k)', y = S' q; beta (B, T, H) in (0, 1), keys of length 1.

    With beta = 1 the state recalls v for k exactly, whatever it recalled before. ``erase=False`` leaves ``S' k`` out.
    """
    state = k.new_zeros(*k[:, 0].shape, v.shape[-1])  # (B, H, n, p)
    outputs = []
    for t in range(k.shape[1]):
        state = log_decay[:, t, :, None, None].exp() * state
        recalled = (state * k[:, t, :, :, None]).sum(-2) if erase else 0  # (B, H, p)
        news = beta[:, t, :, None] * (v[:, t] - recalled)
        state = state + k[:, t, :, :, None] * news[..., None, :]
        outputs.append((state * q[:, t, :, :, None]).sum(-2))
    return torch.stack(outputs, 1)
