"""A serial and a parallel block with toy branches, and their values."""

import torch
from matplotlib import pyplot as plt

from decoder.norms import layer_norm


def shown(vector):
    return (
        "("
        + ", ".join(
            f"{value:.3g}".replace("-", "−") for value in vector.tolist()
        )
        + ")"
    )


def box(axes, x, y, text, colour):
    style = {
        "boxstyle": "square,pad=0.4",
        "facecolor": "none",
        "edgecolor": colour,
        "linewidth": 1.8,
    }
    axes.text(x, y, text, ha="center", va="center", bbox=style)


def arrow(axes, *points, colour="C3", dashed=False):
    style = {
        "color": colour,
        "linewidth": 1.6,
        "linestyle": "--" if dashed else "-",
    }
    axes.plot(*zip(*points, strict=True), **style)
    axes.annotate(
        "", points[-1], points[-2], arrowprops={"arrowstyle": "->", **style}
    )


def add(axes, y):
    axes.plot(
        0,
        y,
        "o",
        markersize=16,
        markerfacecolor="none",
        markeredgecolor="C3",
        markeredgewidth=1.6,
    )
    axes.text(0, y, "+", ha="center", va="center", fontsize=13)


def draw_two_blocks():
    start = torch.tensor([1.0, 2.0, 3.0, 4.0])
    keep_first = torch.tensor([1.0, 0.0, 0.0, 0.0])
    between = start + keep_first * layer_norm(start, 1e-6)
    values = {
        "serial": between + layer_norm(between, 1e-6),
        "parallel": start
        + keep_first * layer_norm(start, 1e-6)
        + layer_norm(start, 1e-6),
    }

    _, (serial, parallel) = plt.subplots(1, 2, figsize=(7.5, 5.0))
    for axes, name in ((serial, "serial"), (parallel, "parallel")):
        axes.set(xlim=(-0.6, 4.4), ylim=(-0.6, 10.2), title=name)
        axes.axis("off")
        axes.text(0.25, -0.2, f"x = {shown(start)}", va="center")
        axes.text(0.25, 9.8, f"y = {shown(values[name])}", va="center")

    arrow(serial, (0, -0.4), (0, 3.75))
    arrow(serial, (0, 4.45), (0, 8.05))
    arrow(serial, (0, 8.75), (0, 10.2))
    for low, branch, colour in ((0.6, "A", "C3"), (4.9, "M", "C1")):
        arrow(serial, (0, low), (1.6, low), (1.6, low + 0.45), colour=colour)
        box(serial, 1.6, low + 0.9, "norm", "C2" if branch == "A" else "C1")
        arrow(serial, (1.6, low + 1.4), (1.6, low + 2.0), colour=colour)
        box(serial, 1.6, low + 2.45, branch, "C0" if branch == "A" else "C1")
        arrow(serial, (1.6, low + 2.95), (1.6, low + 3.5), (0.3, low + 3.5))
        add(serial, low + 3.5)
    serial.text(1.75, 4.5, f"h = {shown(between)}", va="center", fontsize=10)

    arrow(parallel, (0, -0.4), (0, 8.05))
    arrow(parallel, (0, 8.75), (0, 10.2))
    arrow(parallel, (0, 0.6), (1.6, 0.6), (1.6, 1.05))
    box(parallel, 1.6, 1.5, "norm", "C2")
    arrow(parallel, (1.6, 2.0), (1.6, 4.3))
    arrow(parallel, (1.6, 2.6), (3.4, 2.6), (3.4, 4.3))
    box(parallel, 1.6, 4.75, "A", "C0")
    box(parallel, 3.4, 4.75, "M", "C0")
    arrow(parallel, (1.6, 5.25), (1.6, 8.4))
    arrow(parallel, (3.4, 5.25), (3.4, 8.4), (0.3, 8.4))
    add(parallel, 8.4)
    arrow(
        parallel,
        (1.65, 6.2),
        (2.6, 6.2),
        (2.6, 3.5),
        (3.35, 3.5),
        colour="C1",
        dashed=True,
    )
    parallel.text(
        2.5, 6.55, "this edge is gone", color="C1", ha="center", fontsize=10
    )


draw_two_blocks()
