import math

import matplotlib.pyplot as plt

STEP, WE, KNOW = (
    0.9,
    0.35,
    0.95,
)  # radians a position, and where the two words point before any turn


def arrow(axis, angle, colour, text, faint=False):
    axis.annotate(
        "",
        (math.cos(angle), math.sin(angle)),
        (0, 0),
        arrowprops={
            "arrowstyle": "-|>",
            "color": colour,
            "linewidth": 2,
            "alpha": 0.35 if faint else 1,
        },
    )
    if text:
        axis.text(
            1.18 * math.cos(angle),
            1.18 * math.sin(angle),
            text,
            ha="center",
            va="center",
            fontsize=10,
        )


def between(axis, start, end, radius, colour):
    turned = [start + (end - start) * i / 40 for i in range(41)]
    axis.plot(
        [radius * math.cos(a) for a in turned],
        [radius * math.sin(a) for a in turned],
        color=colour,
    )


figure, (first, second, speeds) = plt.subplots(1, 3, figsize=(7.5, 2.7))
for axis, title, place in (
    (first, "we know that", 0),
    (second, "of course we know", 2),
):
    we, know = WE + place * STEP, KNOW + (place + 1) * STEP
    arrow(axis, WE, "C0", "", faint=True)
    arrow(axis, KNOW, "C1", "", faint=True)
    arrow(axis, we, "C0", f"we, {place}")
    arrow(axis, know, "C1", f"know, {place + 1}")
    between(axis, we, know, 0.45, "C3")
    axis.set_title(title, fontsize=10)
for position in range(4):
    arrow(speeds, WE + position * STEP, "C0", str(position))
    arrow(
        speeds,
        WE + math.pi + position * STEP / 10,
        "C4",
        str(position) if position in (0, 3) else "",
    )
speeds.set_title("a fast pair and a slow one", fontsize=10)
for axis in (first, second, speeds):
    axis.set(xlim=(-1.4, 1.4), ylim=(-1.3, 1.3), aspect="equal")
    axis.axis("off")
