"""Gradient norms of each layer's first feed-forward matrix, before any training."""

from functools import cache

import torch
from decoder.config import Config
from decoder.losses import language_model_loss, next_token_labels
from decoder.model import Decoder
from torch import nn

SEEDS = range(5)


@cache
def gradients(placement: str, layers: int, seed: int) -> tuple[float, ...]:
    """One norm a layer: LayerNorm, Xavier matrices, random tokens. A post-norm stack needs no final norm."""
    torch.manual_seed(seed)
    sizes = {
        "vocab": 101,
        "width": 48,
        "layers": layers,
        "heads": 4,
        "kv_heads": 4,
        "hidden": 192,
        "context": 32,
    }
    choices = {"norm": "layer", "norm_placement": placement, "final_norm": placement != "post"}
    model = Decoder(Config(**sizes, **choices, activation="relu", gated=False, tied=False))
    for name, weight in model.named_parameters():
        if weight.ndim == 2:
            nn.init.normal_(weight) if "embedding" in name else nn.init.xavier_normal_(weight)
    ids = torch.randint(101, (4, 32))  # (B, T)
    language_model_loss(model(ids), next_token_labels(ids)).total.backward()
    return tuple(block.feed_forward.up.weight.grad.norm().item() for block in model.blocks)


def over_seeds(placement: str, layers: int) -> torch.Tensor:  # (seeds, layers)
    return torch.tensor([gradients(placement, layers, seed) for seed in SEEDS])
