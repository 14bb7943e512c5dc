import matplotlib.pyplot as plt

figure, panels = plt.subplots(4, 1, figsize=(7.5, 5.4))
for number, (panel, name) in enumerate(zip(panels, strips, strict=True)):
    color = f"C{number}"
    marks = [value for _, value in strips[name]]
    panel.plot(marks, [0] * len(marks), "|", markersize=16, color=color)
    for place, (model, value) in enumerate(outliers[name]):
        panel.plot([value], [0], "D", markersize=5, color=color)
        style = dict(textcoords="offset points", ha="center", fontsize=8)
        panel.annotate(model, (value, 0), (0, 9 if place % 2 else -17), **style)
    panel.set(xscale="log", yticks=[], ylim=(-1, 1))
    panel.set_title(name, loc="left", fontsize=10)
    panel.minorticks_off()
    panel.set_xticks(ticks[name], [f"{tick:,}" for tick in ticks[name]])
