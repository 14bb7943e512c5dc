import matplotlib.pyplot as plt

order = sorted(AXES, key=counts.get)
figure, axes = plt.subplots(figsize=(7.5, 3.6))
axes.barh(order, [counts[axis] for axis in order], color="C0", label="LLaMA's answer")
others = [len(released) - counts[axis] for axis in order]
axes.barh(order, others, left=[counts[axis] for axis in order], color="C1", alpha=0.45, label="another")
for row, axis in enumerate(order):
    axes.text(len(released) + 1, row, f"{counts[axis]}  {y2023[axis]}", va="center")
axes.set(xlim=(0, 86), xticks=(0, 20, 40, 60), xlabel="released models")
axes.grid(visible=False)
axes.legend(loc="upper center", bbox_to_anchor=(0.37, 1.15), ncols=2, frameon=False)
