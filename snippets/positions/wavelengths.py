import math

import matplotlib.pyplot as plt
import torch

from decoder.positions import apply_rotary, rotary_frequencies, rotary_tables

figure, (spectrum, plane) = plt.subplots(
    1, 2, figsize=(7.5, 3.6), width_ratios=(2, 1)
)
for width, marker in ((64, "o"), (128, ".")):
    lengths = 2 * math.pi / rotary_frequencies(width)
    spectrum.semilogy(
        lengths,
        marker=marker,
        markersize=4,
        linewidth=1,
        label=f"head width {width}",
    )
spectrum.axhline(2048, color="C3", linestyle="--")
spectrum.text(0, 2048 * 1.25, "context 2,048", fontsize=9)
spectrum.set(xlabel="pair", ylabel="wavelength (positions)")
spectrum.legend(loc="lower right", fontsize=9)

query, key = (
    torch.tensor([1.0, 0.3]).double(),
    torch.tensor([0.3, 0.8]).double(),
)
for place, style in ((0, "-"), (3, "--")):
    for vector, colour, name, position in (
        (query, "C0", "q", 2 + place),
        (key, "C1", "k", 1 + place),
    ):
        x, y = apply_rotary(
            vector,
            *rotary_tables(
                torch.tensor(position), torch.tensor([0.6]).double()
            ),
        ).tolist()
        arrow_style = {
            "arrowstyle": "-|>",
            "color": colour,
            "linestyle": style,
            "linewidth": 2,
        }
        plane.annotate("", (x, y), (0, 0), arrowprops=arrow_style)
        plane.text(
            1.2 * x,
            1.2 * y,
            f"{name}, {position}",
            ha="center",
            va="center",
            fontsize=9,
        )
plane.set(xlim=(-1.35, 1.35), ylim=(-1.35, 1.35), aspect="equal")
plane.set_title("both three later", fontsize=10)
plane.axis("off")
