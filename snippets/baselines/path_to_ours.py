import matplotlib.pyplot as plt

names = list(path)
saved = [-change[name] for name in names]

figure, axes = plt.subplots(figsize=(7.5, 3.6))
colours = ["C1" if name in ("vocabulary", "context") else "C0" for name in names]
axes.barh(names, [size / 1e6 for size in saved], color=colours)
for row, size in enumerate(saved):
    axes.text(size / 1e6 + 0.15, row, f"{size:,}", va="center")
axes.invert_yaxis()
axes.set(xlim=(0, 17.5), xlabel="parameters saved, million")
axes.grid(visible=False, axis="y")
