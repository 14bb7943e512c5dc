import matplotlib.pyplot as plt

figure, panels = plt.subplots(4, 1, figsize=(7.5, 5.2))
for number, (panel, (name, points)) in enumerate(zip(panels, strips.items(), strict=True)):
    labelled = {model for model, _ in outliers[name]}
    usual = [value for model, value in points if model not in labelled]
    panel.plot(usual, [0] * len(usual), "|", markersize=16, color=f"C{number}")
    for place, (model, value) in enumerate(outliers[name]):
        panel.plot([value], [0], "D", markersize=5, color=f"C{number}")
        panel.annotate(model, (value, 0), (0, 9 if place % 2 else -17), textcoords="offset points", ha="center", fontsize=8)
    panel.set(xscale="log", yticks=[], ylim=(-1, 1))
    panel.set_title(name, loc="left", fontsize=10)
    panel.minorticks_off()
    panel.set_xticks(ticks[name], [f"{tick:,}" for tick in ticks[name]])
figure.tight_layout()
