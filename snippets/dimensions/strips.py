from math import log

import matplotlib.pyplot as plt

configs = [row.config for row in families.RELEASED]
eleven, lamda, bloom = T5["T5-11B"], others["LaMDA"], others["BLOOM-176B"]
strips = [
    ("hidden / width", ffn, [each for each in configs if each.experts is None],
     {"T5-11B": eleven, "LaMDA": lamda}, (8 / 3, 4), None, (1, 2, 4, 8, 16, 32, 64)),
    ("heads / width", heads_to_width, configs,
     {"T5-11B": eleven, "LaMDA": lamda, "PaLM": palm}, (1,), None, (0.5, 1, 2, 4, 8, 16)),
    ("width / layers", aspect, configs,
     {"T5-11B": eleven, "GPT-2 XL": xl, "BLOOM": bloom}, (), (100, 200), (20, 50, 100, 200)),
    ("vocabulary", lambda each: each.vocab, configs, {}, (), (30e3, 50e3, 100e3, 250e3), (30e3, 50e3, 100e3, 250e3)),
]  # fmt: skip

figure, panels = plt.subplots(4, 1, figsize=(7.5, 7.6))
for axes, (title, measure, models, named, lines, bands, ticks) in zip(panels, strips, strict=True):
    stacked = {}
    values = sorted(float(measure(each)) for each in models)
    spread = log(ticks[-1] / ticks[0])
    for value in values:
        place = round(60 * log(value / ticks[0]) / spread)
        stacked[place] = stacked.get(place, 0) + 1
        axes.plot(value, stacked[place], "o", color="C0", markersize=4, alpha=0.85)
    tallest = max(stacked.values())
    for line in lines:
        axes.axvline(line, color="C3", linewidth=1.2, zorder=0)
    for low, high in zip((bands or ())[::2], (bands or ())[1::2], strict=True):
        axes.axvspan(low, high, color="C1", alpha=0.2, linewidth=0)
    for number, (name, model) in enumerate(named.items()):
        value = float(measure(model))
        axes.plot(value, 1, "D", color="C1", markersize=7)
        axes.annotate(name, (value, 1), xytext=(value, tallest * (0.45 + 0.22 * (number % 2))), ha="center",
                      fontsize=9, arrowprops={"arrowstyle": "-", "color": "C1"})  # fmt: skip
    axes.set(xscale="log", ylim=(0, tallest * 1.15), yticks=[])
    axes.set_xticks(ticks, [f"{tick:,g}" if tick < 1000 else f"{tick:,.0f}" for tick in ticks])
    axes.minorticks_off()
    axes.set_ylabel(title, fontsize=10)
    axes.grid(visible=False)
