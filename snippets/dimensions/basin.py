from math import exp, log, log10

import matplotlib.pyplot as plt


def drawn(ratio):  # a trend, not data
    fall, rise = log10(9 / ratio), log10(ratio / 330)
    return 0.12 * log(1 + exp(6 * fall)) + 0.10 * log(1 + exp(6.5 * rise))


points = [10 ** (0.4 + 3.0 * step / 300) for step in range(301)]
figure, axes = plt.subplots(figsize=(7.5, 3.8))
axes.axvspan(*band, color="C1", alpha=0.25, linewidth=0)
axes.plot(points, [drawn(each) for each in points], color="C0", linewidth=2.5)
for rule in (9, 330):
    axes.axvline(rule, color="C3", linewidth=1.5)
marks = ((tall, "48 × 1,600", (33, 0.045)), (shallow, "6 × 4,288", (1120, 0.16)))
for shape, label, place in marks:
    ratio = float(aspect(shape))
    axes.plot(ratio, drawn(ratio), "o", color="C0", markersize=8)
    axes.text(*place, label, ha="center", fontsize=10)
axes.plot([float(each) for each in ratios], [-0.08] * len(ratios), "|", color="C2", markersize=12)
axes.text(2.7, -0.08, "released", va="center", fontsize=10)
axes.text(54, 0.34, "similar loss\nat one size", ha="center", fontsize=10)
axes.text(141, 0.52, "100–200", ha="center", fontsize=10)
axes.set(xscale="log", xlim=(2.5, 2500), ylim=(-0.14, 0.6), yticks=[])
axes.set_xticks([3, 10, 30, 100, 300, 1000], ["3", "10", "30", "100", "300", "1,000"])
axes.set(xlabel="aspect ratio d / L", ylabel="loss, no scale")
axes.minorticks_off()
axes.grid(visible=False)
