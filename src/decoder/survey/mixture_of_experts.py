"""A mixture of experts: many feed-forward parts, of which each token visits a few.

A router gives every expert a score for a token, softmax or sigmoid; the token visits the `per_token` best and adds
their outputs, weighted by the scores (Shazeer et al., 1701.06538, section 2.1). Shared experts, which every token
visits, stand beside them (DeepSeekMoE, 2401.06066, section 3.2). What keeps all experts in use is in
`decoder.survey.expert_balance`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from decoder.config import Config, Experts
from decoder.feedforward import FeedForward
from decoder.norms import wide


@dataclass(frozen=True)
class Routing:
    """Where tokens go: all scores (..., E), the experts chosen (..., k) and their weights (..., k).

    A choice of -1 goes nowhere: its expert was full.
    """

    scores: Tensor
    chosen: Tensor
    weights: Tensor

    def load(self) -> Tensor:
        """How many choices fall on each expert, (E,)."""
        return torch.bincount(self.chosen[self.chosen >= 0], minlength=self.scores.shape[-1])


class Router(nn.Module):
    """Scores and choices: d E weights, E more with ``router_bias``.

    ``selection_bias`` (E numbers, a buffer without gradient) is added where experts are chosen and not where they are
    weighted (DeepSeek-V3, 2412.19437, section 2.1.2). With ``groups`` of equal size, only experts of the best
    ``groups_per_token`` groups can be chosen; a group ranks by the sum of its ``group_best`` best scores.
    """

    selection_bias: Tensor | None

    def __init__(self, width: int, experts: Experts) -> None:
        super().__init__()
        self.experts = experts
        self.linear = nn.Linear(width, experts.count, experts.router_bias)
        self.register_buffer("selection_bias", torch.zeros(experts.count) if experts.selection_bias else None)

    def forward(self, x: Tensor) -> Routing:  # (..., d)
        logits = wide(self.linear(x))  # (..., E)
        scores = logits.softmax(-1) if self.experts.scores == "softmax" else logits.sigmoid()
        chosen = self._ranked(scores.detach()).topk(self.experts.per_token).indices  # (..., k)
        weights = scores.gather(-1, chosen)
        if self.experts.normalised:
            weights = weights / weights.sum(-1, keepdim=True)
        return Routing(scores, chosen, weights * self.experts.routed_scale)

    def _ranked(self, scores: Tensor) -> Tensor:
        """What experts are chosen by: scores with the bias, -inf outside the best groups."""
        if self.selection_bias is not None:
            scores = scores + self.selection_bias
        if self.experts.groups == self.experts.groups_per_token:
            return scores
        grouped = scores.unflatten(-1, (self.experts.groups, -1))  # (..., groups, E / groups)
        rank = grouped.topk(self.experts.group_best).values.sum(-1)
        best = rank.topk(self.experts.groups_per_token).indices
        closed = torch.ones_like(rank, dtype=torch.bool).scatter(-1, best, False)
        return grouped.masked_fill(closed[..., None], -torch.inf).flatten(-2)


class MixtureOfExperts(nn.Module):
    """E feed-forward parts of hidden width m_e behind a router, one of width m_s for all tokens.

    Weights where gated: 3 d m_e E + 3 d m_s, and the router's d E (and d for a gate on the shared part). One token
    uses k of the E. Raises ValueError, from `Experts`, for choices that do not fit together.
    """

    def __init__(self, config: Config, experts: Experts) -> None:
        super().__init__()
        inner = config.replace(experts=None, hidden=experts.hidden, hidden_bias=experts.bias)
        self.router = Router(config.width, experts)
        self.experts = nn.ModuleList(FeedForward(inner) for _ in range(experts.count))
        always = (
            config.replace(experts=None, hidden=experts.shared_hidden, hidden_bias=False) if experts.shared else None
        )
        self.shared = None if always is None else FeedForward(always)
        self.shared_gate = nn.Linear(config.width, 1, bias=False) if experts.shared and experts.shared_gate else None

    def forward(self, x: Tensor) -> Tensor:  # (B, T, d) -> (B, T, d)
        return self.mix(x, self.router(x))

    def mix(self, x: Tensor, routing: Routing) -> Tensor:
        """The output for a routing that was made, or changed, outside."""
        y = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            *place, choice = (routing.chosen == number).nonzero(as_tuple=True)
            if len(choice):
                weight = routing.weights[*place, choice].to(x.dtype)
                y = y.index_put(tuple(place), weight[:, None] * expert(x[*place]), accumulate=True)
        if self.shared is not None:
            always = self.shared(x)
            y = y + (always if self.shared_gate is None else self.shared_gate(x).sigmoid() * always)
        return y


@contextmanager
def recorded_routings(model: nn.Module) -> Iterator[list[Routing]]:
    """Inside, each forward pass appends the routing of every layer with experts, in order."""
    routings: list[Routing] = []
    hooks = [
        module.register_forward_hook(lambda _, __, routing: routings.append(routing))
        for module in model.modules()
        if isinstance(module, Router)
    ]
    try:
        yield routings
    finally:
        for hook in hooks:
            hook.remove()
