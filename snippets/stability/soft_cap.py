"""The soft cap for two caps, against the identity."""

import torch
from matplotlib import pyplot as plt

from decoder.attention import softcap


def draw_soft_cap():
    score = torch.linspace(-150, 150, 301)
    _, axes = plt.subplots(figsize=(7.5, 3.8))
    axes.plot(
        score, score, color="C3", linewidth=1, linestyle=":", label="no cap"
    )
    for cap, colour in ((50, "C0"), (30, "C1")):
        axes.plot(
            score, softcap(score, cap), color=colour, label=f"cap {cap}"
        )
    axes.set(
        xlabel="score",
        ylabel="capped score",
        xlim=(-150, 150),
        ylim=(-75, 75),
        yticks=(-50, -30, 0, 30, 50),
    )
    axes.legend()


draw_soft_cap()
