"""Keeping experts in use: a loss, a bias, and a limit on what one expert takes in.

With f_i the share of all choices that fell on expert i and P_i its mean share of the scores, the balance loss is
E sum_i f_i P_i: 1 where either is uniform, E where one expert gets all choices and all of the scores (Fedus et al.,
2101.03961, section 2.2; with f_i a share of k choices a token it is 1/k of the form that counts choices per token).
Only P has a gradient.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from decoder.survey.mixture_of_experts import Router, Routing


def balance_loss(routing: Routing) -> Tensor:
    """E sum f P with shares over all tokens, before any is dropped. Scores that do not sum to 1 are made to."""
    experts = routing.scores.shape[-1]
    return _products(routing.scores.reshape(1, -1, experts), routing.chosen.flatten(0, -2)[None])


def sequence_balance_loss(routing: Routing) -> Tensor:
    """E sum f P within each sequence, then the mean over sequences; scores (B, T, E).

    DeepSeek-V3's complement to the bias (2412.19437, section 2.1.2, equations 17 to 20, times a small weight): choices
    count as they would fall without the bias, and sigmoid scores are divided by their sum.
    """
    unbiased = routing.scores.topk(routing.chosen.shape[-1]).indices
    return _products(routing.scores, unbiased)


def _products(scores: Tensor, chosen: Tensor) -> Tensor:  # (B, T, E), (B, T, k)
    experts = scores.shape[-1]
    shares = scores / scores.sum(-1, keepdim=True)
    choices = torch.nn.functional.one_hot(chosen, experts).to(scores.dtype)  # (B, T, k, E)
    return experts * (choices.mean((1, 2)) * shares.mean(1)).sum(-1).mean()


@torch.no_grad()
def update_selection_bias(router: Router, load: Tensor, speed: float) -> None:
    """Raise the bias of experts below the mean ``load`` (E,) by ``speed`` and lower that of those above it.

    Not a gradient step: only the sign counts (Wang et al., 2408.15664, algorithm 1). Raises ValueError where the
    router has no such bias.
    """
    if router.selection_bias is None:
        raise ValueError("experts.selection_bias must be True for a router whose bias is updated, got False")
    load = load.to(router.selection_bias.dtype)
    router.selection_bias += speed * torch.sign(load.mean() - load)


def capacity(tokens: int, experts: int, per_token: int, factor: float) -> int:
    """Choices that one expert takes in: its even share, times ``factor``, rounded up (GShard, 2006.16668)."""
    return math.ceil(factor * tokens * per_token / experts)


def within_capacity(routing: Routing, limit: int) -> Routing:
    """The routing with -1 for every choice beyond ``limit`` of its expert.

    Every token's first choice counts before any second one, and earlier tokens before later ones. A token that loses
    all its choices passes through the layer on the residual stream alone.
    """
    experts, per_token = routing.scores.shape[-1], routing.chosen.shape[-1]
    in_order = routing.chosen.reshape(-1, per_token).T.flatten()  # first choices, then second ones
    before = torch.nn.functional.one_hot(in_order, experts).cumsum(0).gather(-1, in_order[:, None])[:, 0]
    kept = in_order.masked_fill(before > limit, -1).unflatten(0, (per_token, -1)).T
    return replace(routing, chosen=kept.reshape(routing.chosen.shape))
