import matplotlib.pyplot as plt

figure, (left, right) = plt.subplots(1, 2, figsize=(7.5, 4.2))


def box(panel, x, y, text, color):
    style = {"boxstyle": "round,pad=0.25", "facecolor": "none"}
    style["edgecolor"] = color
    panel.text(x, y, text, ha="center", va="center", fontsize=9, bbox=style)


def arrow(panel, start, end, gap=11):
    how = {"arrowstyle": "->", "shrinkA": gap, "shrinkB": gap}
    panel.annotate("", end, start, arrowprops=how)


box(left, 2, 0, "token t", "C7")
box(left, 2, 1.4, "trunk", "C0")
arrow(left, (2, 0), (2, 1.4))
for x, ahead in ((0, 1), (2, 2), (4, 3)):
    box(left, x, 2.9, "block", "C1")
    box(left, x, 4.4, f"t + {ahead}", "C2")
    arrow(left, (2, 1.4), (x, 2.9))
    arrow(left, (x, 2.9), (x, 4.4))
left.set_title("parallel heads")

for step, x in enumerate((0, 2, 4)):
    box(right, x, 0, f"token t + {step}" if step else "token t", "C7")
    box(
        right,
        x,
        2.2,
        "module" if step else "decoder",
        "C1" if step else "C0",
    )
    box(right, x, 4.4, f"t + {step + 1}", "C2")
    arrow(right, (x, 0), (x, 2.2))
    arrow(right, (x, 2.2), (x, 4.4))
    if step:
        arrow(right, (x - 2, 2.2), (x, 2.2), gap=27)
right.set_title("sequential modules")
for panel in (left, right):
    panel.set(xlim=(-0.9, 4.9), ylim=(-0.5, 5))
    panel.axis("off")
