import matplotlib.pyplot as plt
from matplotlib.patches import Rectangle

routes = (("input route", from_input), ("output route", from_output), ("tied table", from_both))
largest = max(gradient.abs().max().item() for _, gradient in routes)
figure, axes = plt.subplots(1, 3, figsize=(7.5, 3.4), sharey=True)
for axis, (name, gradient) in zip(axes, routes):
    for row, values in enumerate(gradient.tolist()):
        for column, value in enumerate(values):
            side = 0.9 * (abs(value) / largest) ** 0.5
            corner = (column - side / 2, row - side / 2)
            fill = "C0" if value > 0 else "none"
            axis.add_patch(Rectangle(corner, side, side, facecolor=fill, edgecolor="C0", linewidth=1.4))
    axis.set(xlim=(-0.6, 2.6), ylim=(4.6, -0.6), aspect="equal", xticks=range(3), xlabel="coordinate")
    axis.set_title(name, fontsize=10)
    axis.grid(visible=False)
axes[0].set(ylabel="row", yticks=range(5))
