import matplotlib.pyplot as plt
from matplotlib.patches import Rectangle

figure, axis = plt.subplots(figsize=(7.5, 4.0))
axis.set(xlim=(0, 10), ylim=(0, 5.2))
axis.axis("off")
for place in range(5):
    colour = "C0" if place == 2 else "none"
    axis.add_patch(
        Rectangle(
            (3.4, 2.6 + place * 0.42),
            2.4,
            0.42,
            facecolor=colour,
            alpha=0.35,
            linewidth=0,
        )
    )
    axis.add_patch(
        Rectangle(
            (3.4, 2.6 + place * 0.42),
            2.4,
            0.42,
            facecolor="none",
            edgecolor="C3",
            linewidth=1.2,
        )
    )
axis.text(4.6, 4.95, "one table E, V × d", ha="center")
axis.text(
    4.6, 2.6 + 2.5 * 0.42, "row i", ha="center", va="center", fontsize=9
)

stages = (
    (0.8, "token i"),
    (2.6, "e"),
    (4.6, "blocks"),
    (6.4, "h"),
    (8.6, "logits"),
)
for x, name in stages:
    axis.text(
        x,
        0.7,
        name,
        ha="center",
        va="center",
        bbox={"boxstyle": "round,pad=0.35", "fc": "none", "ec": "C3"},
    )


def arrow(start, end, colour="C3", style="-", curve=0.0):
    drawn = {
        "arrowstyle": "->",
        "color": colour,
        "linestyle": style,
        "linewidth": 1.6,
    }
    axis.annotate(
        "",
        end,
        start,
        arrowprops=drawn | {"connectionstyle": f"arc3,rad={curve}"},
    )


for start, end in ((1.3, 2.35), (2.85, 4.05), (5.15, 6.15), (6.65, 8.0)):
    arrow((start, 0.7), (end, 0.7))
arrow((3.35, 3.65), (2.5, 1.1), "C0", curve=0.2)
arrow((2.85, 1.1), (3.35, 3.35), "C0", "--", curve=0.2)
arrow((6.05, 3.9), (8.3, 1.1), "C1", curve=-0.2)
arrow((8.75, 1.1), (6.05, 4.3), "C1", "--", curve=0.3)
axis.plot(
    [5.9, 6.0, 6.0, 5.9], [2.6, 2.6, 4.7, 4.7], color="C1", linewidth=1.6
)
axis.text(0.2, 3.2, "look-up:\none row", color="C0", fontsize=9)
axis.text(8.4, 3.4, "comparison:\nevery row", color="C1", fontsize=9)
