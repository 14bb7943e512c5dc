"""Where the norm stands, what it computes: released models in each cell."""

from collections import Counter

from matplotlib import pyplot as plt

from decoder.families import RELEASED


def draw_two_choices():
    rows = {
        "post": "on the stream",
        "pre": "before a branch",
        "both": "before and after",
        "output": "after a branch",
    }
    columns = {"layer": "LayerNorm", "rms": "RMSNorm"}
    examples = {
        ("post", "layer"): "2017 Transformer",
        ("pre", "layer"): "GPT-2",
        ("pre", "rms"): "LLaMA",
        ("both", "rms"): "Gemma 2",
        ("output", "rms"): "OLMo 2",
    }
    cells = Counter(
        (row.config.norm_placement, row.config.norm) for row in RELEASED
    )

    _, axes = plt.subplots(figsize=(7.5, 3.2))
    axes.set(
        xlim=(-0.5, 1.5), ylim=(3.5, -0.5), xticks=range(2), yticks=range(4)
    )
    axes.set_xticklabels(columns.values())
    axes.set_yticklabels(f"{text}\n({name})" for name, text in rows.items())
    axes.tick_params(length=0, labeltop=True, labelbottom=False)
    axes.spines[:].set_visible(False)
    axes.grid(False)
    for y, placement in enumerate(rows):
        for x, statistic in enumerate(columns):
            count = cells[placement, statistic]
            axes.text(
                x - 0.3,
                y,
                count,
                ha="center",
                va="center",
                fontsize=15,
                color="C0",
                alpha=1 if count else 0.6,
            )
            example = examples.get(
                (placement, statistic), "none in the list"
            )
            axes.text(
                x - 0.15,
                y,
                example,
                va="center",
                fontsize=10.5,
                alpha=1 if count else 0.6,
            )
    for edge in (0.5, 1.5, 2.5):
        axes.axhline(edge, color="C3", linewidth=0.6)
    axes.axvline(0.5, color="C3", linewidth=0.6)


draw_two_choices()
