import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(7, 3.6))
axes.axhline(0, color="C3", linewidth=1.2)
axes.plot(float(own_aspect("3 layers")), 0, "s", color="C3", markersize=7)
for name, each in found.items():
    ratio = float(own_aspect(name))
    axes.plot([ratio] * 2, each["interval"], color="C0", linewidth=2.5)
    axes.plot([ratio] * len(each["differences"]), each["differences"], "_", color="C1", markersize=12)
    axes.plot(ratio, each["mean"], "o", color="C0", markersize=7)
for name in shapes:
    axes.annotate(name, (float(own_aspect(name)), 0.215), ha="center", fontsize=10)
axes.set(xscale="log", xlim=(2.7, 95), ylim=(-0.12, 0.24))
axes.set(xlabel="aspect ratio d / L", ylabel="loss minus that of 3 layers")
axes.set_xticks([3, 10, 30, 70], ["3", "10", "30", "70"])
axes.minorticks_off()
