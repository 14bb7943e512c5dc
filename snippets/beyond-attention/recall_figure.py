import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(7, 3.6))
for name, line in errors.items():
    axes.plot(pairs, line, "o-", label=name)
axes.axvline(key_width, linestyle=":", linewidth=1, color="C7")
axes.set(xscale="log", xlabel="pairs written", ylabel="relative error of recall")
axes.set_xticks(pairs, [str(n) for n in pairs])
axes.minorticks_off()
axes.legend()
