"""Losses: how far the scores are from the tokens that came.

The softmax ignores a shift common to all scores, so log Z, the log of its denominator, may drift. The z-loss
(PaLM, 2204.02311, section 5) pulls log Z to 0; Baichuan 2's max-z loss (2309.10305) pulls the largest score instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from decoder.norms import wide

IGNORED = -100  # the label of a token that is not scored


@dataclass(frozen=True)
class Loss:
    """Means over the scored tokens, in nats. ``total = cross_entropy + penalty``; the gradient flows through all."""

    total: Tensor
    cross_entropy: Tensor
    penalty: Tensor
    log_z: Tensor
    tokens: int


def language_model_loss(logits: Tensor, labels: Tensor, z_weight: float = 0.0, max_z_weight: float = 0.0) -> Loss:
    """Cross-entropy of ``labels`` (B, T) under ``logits`` (B, T, V), plus what the weights ask for.

    ``labels[b, t]`` is the token that should follow token t (see `next_token_labels`); `IGNORED` leaves one out.
    ``z_weight`` (PaLM: 1e-4) times mean (log Z)², ``max_z_weight`` (Baichuan 2: 2e-4) times mean (max logit)².
    Raises ValueError for shapes that do not match, a label outside the vocabulary, or no label at all.
    """
    if logits.ndim != 3 or labels.shape != logits.shape[:2]:
        raise ValueError(
            f"labels must be (B, T) for logits (B, T, V), got {tuple(labels.shape)} and {tuple(logits.shape)}"
        )
    scored = labels != IGNORED  # (B, T)
    if not scored.any():
        raise ValueError(f"labels must hold at least one token to score, got only {IGNORED}")
    if labels[scored].min() < 0 or labels.max() >= logits.shape[-1]:
        raise ValueError(f"labels must be from 0 to {logits.shape[-1] - 1}, or {IGNORED}")
    logits = wide(logits)
    log_z = logits.logsumexp(-1)  # (B, T)
    target = logits.gather(-1, labels.clamp(min=0)[..., None])[..., 0]  # (B, T)
    cross_entropy = (log_z - target)[scored].mean()
    penalty = logits.new_zeros(())
    if z_weight:
        penalty = penalty + z_weight * log_z[scored].square().mean()
    if max_z_weight:
        penalty = penalty + max_z_weight * logits.amax(-1)[scored].square().mean()
    return Loss(cross_entropy + penalty, cross_entropy, penalty, log_z[scored].mean(), int(scored.sum()))


def next_token_labels(ids: Tensor, mask: Tensor | None = None) -> Tensor:
    """What should follow each token: ids shifted left by one, `IGNORED` at the end: (B, T) -> (B, T).

    Where ``mask`` (B, T) is 0 the token is not predicted: a prompt, or padding.
    """
    labels = ids if mask is None else ids.masked_fill(mask == 0, IGNORED)
    return F.pad(labels[:, 1:], (0, 1), value=IGNORED)


def perplexity(cross_entropy: Tensor) -> Tensor:
    """e to the cross-entropy in nats: the size of a uniform choice that would be as uncertain."""
    return torch.exp(cross_entropy)
