import matplotlib.pyplot as plt
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from decoder.survey import sparse_masks as masks

tokens, window = 18, 3
local, every = masks.sliding(tokens, window), masks.full(tokens)
columns = {
    "full": [every] * 4,
    "window": [local] * 4,
    "dilated": [masks.dilated(tokens, window, step=2)] * 4,
    "global + window": [masks.global_and_local(tokens, window, [8])] * 4,
    "blocks": [
        masks.big_bird(tokens, 2, 1, 1, 1, seed) for seed in range(4)
    ],
    "3 windows, 1 full": [local, local, local, every],
}


def draw(axes, mask):
    """Each row's visible stretches as rectangles of one path."""
    corners = []
    for row, seen in enumerate(mask.tolist()):
        starts = [
            j
            for j in range(tokens)
            if seen[j] and (j == 0 or not seen[j - 1])
        ]
        ends = [
            j + 1
            for j in range(tokens)
            if seen[j] and (j == tokens - 1 or not seen[j + 1])
        ]
        for a, b in zip(starts, ends, strict=True):
            corners.append(
                Path(
                    [
                        (a, row),
                        (b, row),
                        (b, row + 0.9),
                        (a, row + 0.9),
                        (a, row),
                    ]
                )
            )
    axes.add_patch(
        PathPatch(Path.make_compound_path(*corners), color="C0", linewidth=0)
    )
    axes.set(
        xlim=(0, tokens),
        ylim=(tokens, 0),
        xticks=[],
        yticks=[],
        aspect="equal",
    )


figure, grid = plt.subplots(2, len(columns), figsize=(7.5, 3.2))
for column, (name, stack) in zip(grid.T, columns.items(), strict=True):
    draw(column[0], stack[0])
    draw(column[1], masks.reach(stack))
    column[0].set_title(name, fontsize=8.5)
grid[0, 0].set_ylabel("first layer\nqueries", fontsize=8.5)
grid[1, 0].set_ylabel("after four layers\noutputs", fontsize=8.5)
grid[1, 0].set_xlabel("tokens read", fontsize=8.5)
