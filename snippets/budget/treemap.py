import matplotlib.pyplot as plt
from matplotlib.patches import Rectangle

from decoder.budget import parameters
from decoder.config import Config

c = Config()
counts = parameters(c)
heads_wide, kv_wide = c.heads * c.head_width, c.kv_heads * c.head_width
widths = {
    "query": heads_wide,
    "key": kv_wide,
    "value": kv_wide,
    "output": heads_wide,
}
pieces = {  # part: what it consists of, in parameters
    "embedding": {"table,\nused at both ends": counts.embedding},
    "attention": {
        name: c.layers * c.width * wide for name, wide in widths.items()
    },
    "feed-forward": dict.fromkeys(
        ("gate", "up", "down"), counts.feed_forward // 3
    ),
}

figure, axis = plt.subplots(figsize=(7, 4))
left = 0.0
for index, (part, cells) in enumerate(pieces.items()):
    part_size = sum(cells.values())
    breadth, bottom = part_size / counts.total, 0.0
    for name, size in cells.items():
        high = size / part_size
        color = f"C{index}"
        cell = Rectangle(
            (left, bottom), breadth, high, facecolor=color, alpha=0.35
        )
        axis.add_patch(cell)
        axis.plot(
            [left, left + breadth],
            [bottom, bottom],
            color=color,
            linewidth=1,
        )
        middle = left + breadth / 2, bottom + high / 2
        label = f"{name}\n{size:,}" if high > 0.2 else f"{name} {size:,}"
        axis.text(*middle, label, ha="center", va="center", fontsize=9)
        bottom += high
    axis.text(
        left + breadth / 2, 1.03, f"{part}\n{breadth:.1%}", ha="center"
    )
    left += breadth
share = counts.norms / counts.total
edge = f"norms, the right edge: {counts.norms:,} ({share:.2%})"
axis.text(1, -0.03, edge, ha="right", va="top", fontsize=9)
axis.plot([1, 1], [0, 1], color="C3", linewidth=1)
axis.set(xlim=(0, 1.005), ylim=(-0.1, 1.16))
axis.set_axis_off()
