import matplotlib.pyplot as plt
from matplotlib.patches import Rectangle

figure, (stacks, bars) = plt.subplots(1, 2, figsize=(7.5, 4.4), width_ratios=(1, 1.25))
for left, config, colour in ((0, wide, "C0"), (1000, deep, "C1")):
    for layer in range(config.layers):
        corner = (left + (768 - config.width) / 2, 20 * layer)
        stacks.add_patch(Rectangle(corner, config.width, 15, facecolor=colour, linewidth=0))
    label = f"{config.layers} × {config.width}"
    stacks.text(left + 384, 20 * config.layers + 20, label, ha="center", va="bottom")
stacks.set(xlim=(-40, 1800), ylim=(-20, 1080), xticks=[], yticks=[])
stacks.grid(visible=False)
for side in stacks.spines.values():
    side.set_visible(False)

names = ("blocks", "cache", "embedding", "steps")
labels = ("weights\nin blocks", "cache", "embedding", "steps")
for row, name in enumerate(names):
    pair = of_wide[name], of_deep[name]
    for offset, value, colour in ((-0.19, pair[0], "C0"), (0.19, pair[1], "C1")):
        bars.barh(row + offset, value / max(pair), height=0.34, color=colour)
        bars.text(value / max(pair) + 0.02, row + offset, f"{value:,}", va="center", fontsize=9)
bars.set(xlim=(0, 1.5), xticks=[], yticks=range(4), yticklabels=labels)
bars.invert_yaxis()
bars.grid(visible=False)
bars.spines["bottom"].set_visible(False)
bars.tick_params(length=0)
