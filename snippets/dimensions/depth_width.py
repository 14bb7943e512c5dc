import matplotlib.pyplot as plt

layers = range(4, 33)
figure, (widths, totals) = plt.subplots(1, 2, figsize=(7.5, 3.8), width_ratios=(1.3, 1))
solved = [solve.continuous_width(design.replace(layers=each), budget) for each in layers]
ruled = [design.width * (design.layers / each) ** 0.5 for each in layers]
widths.plot(layers, solved, color="C0", label="exact")
widths.plot(layers, ruled, "--", color="C1", label="square-root rule")
chosen = [sized.config.width for sized in legal.values()]
widths.plot(list(legal), chosen, "o", color="C2", label="legal, nearest")
widths.set(ylim=(0, 1400), ylabel="width d")
widths.legend(fontsize=10)

spent = [whole(each, width) / 1e6 for each, width in zip(layers, ruled, strict=True)]
totals.axhline(budget / 1e6, color="C0")
totals.plot(layers, spent, "--", color="C1")
totals.text(32, budget / 1e6 + 0.5, "the budget", ha="right", va="bottom", fontsize=10)
totals.set(ylabel="parameters by the rule, million")
for axes in (widths, totals):
    axes.set(xlabel="layers L", xticks=(4, 8, 12, 16, 24, 32))
