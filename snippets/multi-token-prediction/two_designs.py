import matplotlib.pyplot as plt

figure, panels = plt.subplots(1, 2, figsize=(7.5, 4.2))


def box(panel, x, y, text, color):
    style = dict(boxstyle="round,pad=0.25", facecolor="none", edgecolor=color)
    panel.text(x, y, text, ha="center", va="center", fontsize=9, bbox=style)


def arrow(panel, start, end):
    how = dict(arrowstyle="->", shrinkA=11, shrinkB=11)
    panel.annotate("", end, start, arrowprops=how)


left, right = panels
box(left, 2, 0, "token t", "C7")
box(left, 2, 1.3, "trunk", "C0")
for x, ahead in ((0.3, 1), (2, 2), (3.7, 3)):
    box(left, x, 2.9, "block", "C1")
    box(left, x, 4.4, f"t + {ahead}", "C2")
    arrow(left, (2, 1.3), (x, 2.9))
    arrow(left, (x, 2.9), (x, 4.4))
arrow(left, (2, 0), (2, 1.3))
left.set_title("parallel heads")

for step, x in enumerate((0.3, 2, 3.7)):
    below = "token t" if step == 0 else f"token t + {step}"
    box(right, x, 0, below, "C7")
    box(right, x, 2.1, "decoder" if step == 0 else "join, block", "C0" if step == 0 else "C1")
    box(right, x, 4.4, f"t + {step + 1}", "C2")
    arrow(right, (x, 0), (x, 2.1))
    arrow(right, (x, 2.1), (x, 4.4))
    if step:
        arrow(right, (x - 1.7, 2.1), (x, 2.1))
right.set_title("sequential modules")
for panel in panels:
    panel.set(xlim=(-0.7, 4.7), ylim=(-0.5, 5))
    panel.axis("off")
figure.tight_layout()
