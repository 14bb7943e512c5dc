"""The largest attention score as weights grow, with and without QK-norm."""

import torch
from matplotlib import pyplot as plt

from decoder.norms import rms_norm


def draw_score_growth():
    torch.manual_seed(0)
    tokens, width, head_width = 64, 96, 128
    read = torch.randn(tokens, width)
    to_q, to_k = torch.randn(2, width, head_width) / width**0.5
    scales = 2.0 ** torch.arange(0, 6.5, 0.5)

    def largest(scale, normed):
        q, k = read @ (scale * to_q), read @ (scale * to_k)  # (T, h)
        if normed:
            q, k = rms_norm(q, 1e-6), rms_norm(k, 1e-6)
        return (q @ k.T / head_width**0.5).abs().max().item()

    _, axes = plt.subplots(figsize=(7.5, 3.6))
    for normed, label, colour, marker in (
        (False, "plain", "C1", "s"),
        (True, "QK-norm", "C0", "o"),
    ):
        axes.plot(
            scales,
            [largest(s, normed) for s in scales],
            color=colour,
            marker=marker,
            markersize=4,
            label=label,
        )
    axes.axhline(head_width**0.5, color="C3", linewidth=1, linestyle=":")
    axes.text(
        22, head_width**0.5 * 1.25, "root of the head width", fontsize=10
    )
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="factor on the query and key weights",
        ylabel="largest |score|",
    )
    axes.set_xticks(
        (1, 2, 4, 8, 16, 32, 64), ("1", "2", "4", "8", "16", "32", "64")
    )
    axes.set_yticks(
        (1, 10, 100, 1000, 10000), ("1", "10", "100", "1,000", "10,000")
    )
    axes.minorticks_off()
    axes.legend()


draw_score_growth()
