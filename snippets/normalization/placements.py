"""Four residual updates: a straight stream, and a branch that loops."""

from matplotlib import pyplot as plt

PLACEMENTS = {  # the update, and its derivative with a prime for each part's
    "post": ("N(x + F(x))", "N′(I + F′)"),
    "pre": ("x + F(N(x))", "I + F′N′"),
    "both": ("x + N₂(F(N₁(x)))", "I + N₂′F′N₁′"),
    "output": ("x + N(F(x))", "I + N′F′"),
}


def box(axes, x, y, text, colour):
    style = {
        "boxstyle": "square,pad=0.35",
        "facecolor": "none",
        "edgecolor": colour,
        "linewidth": 1.8,
    }
    axes.text(x, y, text, ha="center", va="center", bbox=style, fontsize=10)


def line(axes, *points, arrow=False, colour="C3"):
    axes.plot(*zip(*points, strict=True), color=colour, linewidth=1.6)
    if arrow:
        axes.annotate(
            "",
            points[-1],
            points[-2],
            arrowprops={
                "arrowstyle": "->",
                "color": colour,
                "linewidth": 1.6,
            },
        )


def draw_placements():
    _, panels = plt.subplots(1, 4, figsize=(7.5, 4.1))
    for axes, (placement, (update, jacobian)) in zip(
        panels, PLACEMENTS.items(), strict=True
    ):
        axes.set(xlim=(-1.1, 2.3), ylim=(-2.6, 8.4))
        axes.axis("off")
        axes.set_title(placement, fontsize=12)
        branch = [(4.0, "F", "C0")]
        if placement in ("pre", "both"):
            branch.insert(0, (2.6, "norm", "C1"))
        if placement in ("both", "output"):
            branch.append((5.4, "norm", "C1"))
        stops = [
            1.4,
            *(edge for y, *_ in branch for edge in (y - 0.45, y + 0.45)),
            6.3,
        ]
        line(axes, (0, 0), (0, 5.9))
        line(axes, (0, 1.4), (1.4, 1.4), (1.4, stops[1]))
        for below, above in zip(stops[2:-1:2], stops[3::2], strict=True):
            line(axes, (1.4, below), (1.4, above))
        line(axes, (1.4, 6.3), (0.35, 6.3), arrow=True)
        for y, text, colour in branch:
            box(axes, 1.4, y, text, colour)
        axes.text(0, 6.3, "+", ha="center", va="center", fontsize=13)
        axes.plot(
            0,
            6.3,
            "o",
            markersize=15,
            markerfacecolor="none",
            markeredgecolor="C3",
            markeredgewidth=1.6,
        )
        if placement == "post":
            line(axes, (0, 6.65), (0, 6.85))
            box(axes, 0, 7.3, "norm", "C1")
            line(axes, (0, 7.75), (0, 8.4), arrow=True)
        else:
            line(axes, (0, 6.65), (0, 8.4), arrow=True)
        axes.text(
            -0.25,
            0,
            "x",
            ha="right",
            va="bottom",
            fontsize=11,
            style="italic",
        )
        formulas = {
            "ha": "center",
            "va": "top",
            "fontsize": 10,
            "linespacing": 1.7,
        }
        axes.text(0.6, -0.6, f"{update}\n{jacobian}", **formulas)


draw_placements()
