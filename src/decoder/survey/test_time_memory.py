"""A memory that is learned while the model reads: its state is the weights of a small network.

Titans (Behrouz et al., 2501.00663, section 3.1). Reading a token takes one step of gradient descent on
|M(k) - v|^2, the error that the memory M makes for this key: S <- eta S - theta gradient, M <- (1 - alpha) M + S.
The momentum S carries surprise on to the next tokens, alpha forgets. Answering is M(q), and changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class MemoryState:
    """Matrices of the memory, first layer first, and their momentum; each (B, out, in), one memory a sequence."""

    weights: tuple[Tensor, ...]
    momentum: tuple[Tensor, ...]


def recall(weights: tuple[Tensor, ...], q: Tensor) -> Tensor:
    """M(q), with SiLU between layers: (B, n) -> (B, p)."""
    for number, weight in enumerate(weights):
        q = (weight @ (F.silu(q) if number else q)[..., None])[..., 0]
    return q


def memorize(state: MemoryState, k: Tensor, v: Tensor, forget: Tensor, keep: Tensor, step: Tensor) -> MemoryState:
    """The state after one token, (B, n) and (B, p), with alpha, eta and theta of (B,).

    The step is part of the graph: what comes before the memory can be trained through it.
    """

    def error(weights: tuple[Tensor, ...]) -> Tensor:
        return (recall(weights, k) - v).square().sum()  # a sum over sequences: each has weights of its own

    gradients = torch.func.grad(error)(state.weights)
    forget, keep, step = (gate[:, None, None] for gate in (forget, keep, step))
    momentum = tuple(keep * s - step * g for s, g in zip(state.momentum, gradients, strict=True))
    return MemoryState(tuple((1 - forget) * w + s for w, s in zip(state.weights, momentum, strict=True)), momentum)


class TestTimeMemory(nn.Module):
    """A layer (B, T, d) -> (B, T, d) whose output at a token is what the memory recalls after reading it.

    Keys and queries have length 1. The three gates are sigmoids of the token; the start of the memory is trained.
    `state_numbers`: two for each weight of the memory, whatever was read.
    """

    __test__ = False  # for pytest, which takes the name for a test's

    def __init__(self, width: int, memory_hidden: int | None = None) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.gates = nn.Linear(width, 3)
        nn.init.constant_(self.gates.bias, -2.0)
        sizes = [width, width] if memory_hidden is None else [width, memory_hidden, width]
        self.start = nn.ParameterList(torch.randn(out, into) * into**-0.5 for into, out in pairwise(sizes))
        self.state_numbers = 2 * sum(weight.numel() for weight in self.start)

    def forward(self, x: Tensor) -> Tensor:
        q, k = (F.normalize(project(x), dim=-1) for project in (self.q, self.k))
        v = self.v(x)
        forget, keep, step = self.gates(x).sigmoid().unbind(-1)  # (B, T) each
        weights = tuple(weight.expand(x.shape[0], -1, -1) for weight in self.start)
        state = MemoryState(weights, tuple(torch.zeros_like(weight) for weight in weights))
        outputs = []
        for t in range(x.shape[1]):
            state = memorize(state, k[:, t], v[:, t], forget[:, t], keep[:, t], step[:, t])
            outputs.append(recall(state.weights, q[:, t]))
        return torch.stack(outputs, 1)
