import matplotlib.pyplot as plt

figure, axis = plt.subplots(figsize=(7.5, 3.4))
axis.set(xlim=(0, 10), ylim=(0.2, 4.2))
axis.axis("off")


def show(pair):
    return "\n".join(f"{value:.4g}".replace("-", "−") for value in pair)


def box(x, y, name, text, colour):
    style = {"boxstyle": "round,pad=0.35", "facecolor": "none", "edgecolor": colour, "linewidth": 1.6}
    axis.text(x, y, text, ha="center", va="center", bbox=style, fontsize=10)
    axis.text(x, y + 0.72, name, ha="center", va="center", fontsize=9)


def arrow(start, end):
    axis.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": "C3", "linewidth": 1.4})


box(0.7, 2.2, "token x", show(x), "C3")
box(2.9, 3.2, "gate", show(g), "C0")
box(2.9, 1.2, "up", show(u), "C1")
box(5.1, 3.2, "SiLU(gate)", show(activated), "C0")
box(7.2, 2.2, "product", show(h), "C4")
box(9.3, 2.2, "down", show(y), "C3")
arrow((1.15, 2.45), (2.4, 3.15))
arrow((1.15, 1.95), (2.4, 1.25))
arrow((3.4, 3.2), (4.45, 3.2))
arrow((5.8, 3.1), (6.6, 2.5))
arrow((3.4, 1.2), (6.6, 1.95))
arrow((7.85, 2.2), (8.75, 2.2))
