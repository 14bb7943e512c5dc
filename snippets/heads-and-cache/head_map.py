import matplotlib.pyplot as plt

from decoder.budget import kv_cache
from decoder.config import Config

layouts = [Config(kv_heads=count) for count in (12, 4, 1)]
bytes_per_token = [kv_cache(layout).bytes_per_token for layout in layouts]
names = ["multi-head", "grouped-query", "multi-query"]
labels = [
    f"{name}\nK = {layout.kv_heads}"
    for name, layout in zip(names, layouts, strict=True)
]

figure, (maps, bars) = plt.subplots(
    1, 2, figsize=(7.5, 3.9), width_ratios=(2.2, 1), sharey=True
)  # fmt: skip
for row, layout in enumerate(layouts):
    top, bottom = 0.3 - row, -0.15 - row
    group = layout.heads // layout.kv_heads
    for pair in range(layout.kv_heads):
        centre = pair * group + (group - 1) / 2
        for query in range(pair * group, (pair + 1) * group):
            maps.plot(
                [query, centre], [top, bottom], color="C3", linewidth=1
            )
        maps.plot(centre, bottom, "s", color="C1", markersize=9)
    maps.plot(
        range(layout.heads),
        [top] * layout.heads,
        "o",
        color="C0",
        markersize=8,
    )
maps.set(xticks=[], yticks=[0, -1, -2], ylim=(-2.5, 0.6))
maps.set_yticklabels(labels)
maps.set_title(
    "query heads (dots) read\nkey/value heads (squares)", fontsize=11
)
maps.grid(False)
for side in ("left", "bottom"):
    maps.spines[side].set_visible(False)
maps.tick_params(length=0)

bars.barh([0, -1, -2], bytes_per_token, height=0.4, color="C1")
for row, size in enumerate(bytes_per_token):
    bars.text(size + 900, -row, f"{size:,}", va="center")
bars.set(xlim=(0, 52_000), xticks=[])
bars.set_title("bytes for a token,\nall layers, BF16", fontsize=11)
bars.grid(False)
bars.spines["bottom"].set_visible(False)
bars.tick_params(length=0)
