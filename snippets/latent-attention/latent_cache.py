import matplotlib.pyplot as plt
from matplotlib.patches import FancyBboxPatch

from decoder import families

deepseek = families.get("deepseek-ai/DeepSeek-V3")
parts = deepseek.latent
figure, (drawing, bars) = plt.subplots(
    1, 2, figsize=(7.5, 3.4), width_ratios=(1.25, 1)
)


def box(x, y, width, height, text, color, filled=False):
    shape = FancyBboxPatch(
        (x, y),
        width,
        height,
        boxstyle="round,pad=0.02",
        edgecolor=color,
        linewidth=1.4,
    )
    shape.set(
        facecolor=color if filled else "none", alpha=0.35 if filled else 1
    )
    drawing.add_patch(shape)
    drawing.text(
        x + width / 2,
        y + height / 2,
        text,
        ha="center",
        va="center",
        fontsize=9,
    )


def arrow(start, end):
    drawing.annotate(
        "", end, start, arrowprops={"arrowstyle": "->", "color": "C7"}
    )


box(3.6, 0.1, 2.8, 0.8, "token $x$", "C7")
box(1.0, 2.0, 4.0, 0.8, f"latent, c = {parts.kv_rank}", "C1", filled=True)
box(
    6.2,
    2.0,
    3.4,
    0.8,
    f"rotary key, r = {parts.rope_width}",
    "C1",
    filled=True,
)
box(0.1, 4.1, 2.9, 0.9, "key parts\nof all heads", "C0")
box(3.3, 4.1, 2.6, 0.9, "values\nof all heads", "C0")
for start, end in (
    ((4.5, 0.95), (3.2, 1.95)), ((5.5, 0.95), (7.6, 1.95)),
    ((2.4, 2.85), (1.6, 4.0)), ((3.6, 2.85), (4.5, 4.0)),
):  # fmt: skip
    arrow(start, end)
drawing.text(
    7.9,
    3.2,
    "rotated by position,\nshared by all heads",
    ha="center",
    va="center",
    fontsize=9,
)
drawing.text(0.1, 5.5, "rebuilt, or absorbed", fontsize=9)
drawing.text(9.7, 1.55, "cached", ha="right", va="top", fontsize=9)
drawing.set(xlim=(0, 10), ylim=(0, 6.1))
drawing.axis("off")

key_width = parts.nope_width + parts.rope_width
rows = {
    "latent": parts.kv_rank + parts.rope_width,
    **{
        f"{n} kv head{'s' if n > 1 else ''}": 2 * n * parts.value_width
        for n in (1, 8, deepseek.heads)
    },
    "rebuilt heads": deepseek.heads * (key_width + parts.value_width),
}
bars.barh(
    list(rows), list(rows.values()), color=["C1", "C0", "C0", "C0", "C0"]
)
for place, count in enumerate(rows.values()):
    bars.text(count * 1.15, place, f"{count:,}", va="center", fontsize=9)
bars.set(
    xscale="log", xlim=(100, 400_000), xlabel="values a token and layer"
)
bars.minorticks_off()
bars.invert_yaxis()
