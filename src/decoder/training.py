"""Training: one step of AdamW, with weight decay by tensor dimension and clipped gradients."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from decoder.losses import language_model_loss, next_token_labels
from decoder.model import Decoder


@dataclass(frozen=True)
class Step:
    """What one step did: the loss before it in nats, and the gradient's norm before clipping."""

    loss: float
    cross_entropy: float
    log_z: float
    gradient_norm: float


def decay_groups(model: nn.Module, weight_decay: float = 0.1) -> list[dict[str, object]]:
    """Two groups for an optimizer: tensors of two or more dimensions decay, vectors (norm scales, biases) do not.

    Each tensor is listed once, a tied one too.
    """
    parameters = [p for p in model.parameters() if p.requires_grad]
    return [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]


def make_optimizer(
    model: nn.Module, learning_rate: float = 3e-4, weight_decay: float = 0.1, betas: tuple[float, float] = (0.9, 0.95)
) -> torch.optim.AdamW:
    """AdamW over `decay_groups`. Make it after the model is whole: it holds the tensors that exist now."""
    return torch.optim.AdamW(decay_groups(model, weight_decay), lr=learning_rate, betas=betas)


def training_step(
    model: Decoder,
    optimizer: torch.optim.Optimizer,
    ids: Tensor,
    mask: Tensor | None = None,
    z_weight: float = 0.0,
    clip: float = 1.0,
) -> Step:
    """Predict each token of ``ids`` (B, T) from those before it and take one optimizer step.

    The gradient is scaled down to a norm of ``clip`` where it is longer. ``mask`` marks the tokens to predict.
    The same weights, ids and optimizer state give the same step. Raises ValueError if the loss is not finite,
    before any weight has changed.
    """
    model.train()
    optimizer.zero_grad(set_to_none=True)
    loss = language_model_loss(model(ids), next_token_labels(ids, mask), z_weight)
    if not torch.isfinite(loss.total):
        raise ValueError(f"loss must be finite for a training step, got {loss.total.item()}")
    loss.total.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    return Step(loss.total.item(), loss.cross_entropy.item(), loss.log_z.item(), norm.item())
