import matplotlib.pyplot as plt

lengths = [2**power for power in range(0, 18)]
figure, axes = plt.subplots(figsize=(7.5, 4.4))
for style, (name, numbers) in zip(("-", "--"), caches.items(), strict=True):
    axes.plot(lengths, [numbers * n for n in lengths], style, label=name)
for number, (name, size) in enumerate(states.items(), start=2):
    axes.plot(lengths, [size] * len(lengths), color=f"C{number}", label=name)
axes.set(xscale="log", yscale="log", ylim=(100, 1e11))
axes.set(xlabel="tokens read", ylabel="numbers kept in one layer")
axes.set_xticks(lengths[::4], [f"{n:,}" for n in lengths[::4]])
axes.minorticks_off()
axes.legend(fontsize=9, ncols=2, loc="upper left")
