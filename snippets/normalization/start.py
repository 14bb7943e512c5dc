"""Gradients of each layer's first feed-forward matrix, before training."""

from functools import cache

import torch
from matplotlib import pyplot as plt
from torch import nn

from decoder.config import Config
from decoder.losses import language_model_loss, next_token_labels
from decoder.model import Decoder

SEEDS = range(5)
DEPTHS = (3, 6, 12)


@cache
def gradients(placement: str, layers: int, seed: int) -> tuple[float, ...]:
    """One norm a layer: LayerNorm, Xavier matrices, random tokens.

    A post-norm stack needs no final norm.
    """
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
    choices = {
        "norm": "layer",
        "norm_placement": placement,
        "final_norm": placement != "post",
    }
    model = Decoder(
        Config(
            **sizes, **choices, activation="relu", gated=False, tied=False
        )
    )
    for name, weight in model.named_parameters():
        if weight.ndim == 2:
            fill = (
                nn.init.normal_
                if "embedding" in name
                else nn.init.xavier_normal_
            )
            fill(weight)
    ids = torch.randint(101, (4, 32))  # (B, T)
    language_model_loss(model(ids), next_token_labels(ids)).total.backward()
    return tuple(
        block.feed_forward.up.weight.grad.norm().item()
        for block in model.blocks
    )


def over_seeds(
    placement: str, layers: int
) -> torch.Tensor:  # (seeds, layers)
    return torch.tensor(
        [gradients(placement, layers, seed) for seed in SEEDS]
    )


def draw_gradients():
    _, (by_layer, by_depth) = plt.subplots(
        1, 2, figsize=(7.5, 3.6), sharey=True
    )
    for placement, colour, marker in (
        ("post", "C1", "s"),
        ("pre", "C0", "o"),
    ):
        norms = over_seeds(placement, 12)
        mean, steps = norms.mean(0), range(1, 13)
        by_layer.fill_between(
            steps,
            norms.min(0).values,
            norms.max(0).values,
            color=colour,
            alpha=0.2,
            linewidth=0,
        )
        by_layer.plot(
            steps,
            mean,
            color=colour,
            marker=marker,
            markersize=4,
            label=f"{placement}-norm",
        )
        last = [
            over_seeds(placement, depth)[:, -1].mean() for depth in DEPTHS
        ]
        by_depth.plot(
            DEPTHS, last, color=colour, marker=marker, markersize=5
        )
    by_layer.set(
        yscale="log",
        xlabel="layer",
        ylabel="gradient norm",
        title="12 layers",
        xticks=range(1, 13),
    )
    by_depth.set(
        xscale="log", xlabel="layers in the stack", title="the last layer"
    )
    by_depth.set_xticks(DEPTHS, DEPTHS)
    by_depth.minorticks_off()
    by_layer.set_yticks((0.1, 0.2, 0.4, 0.8), ("0.1", "0.2", "0.4", "0.8"))
    by_layer.legend()


draw_gradients()
