"""Points of the plane, and where RMSNorm and LayerNorm send them."""

import torch
from matplotlib import pyplot as plt

from decoder.norms import layer_norm, rms_norm


def draw_two_norms():
    angles = torch.linspace(0, 2 * torch.pi, 25)[:-1] + 0.1
    radii = 2.2 + 1.3 * torch.cos(3 * angles)
    cloud = torch.stack(
        (radii * torch.cos(angles), radii * torch.sin(angles)), -1
    )
    marked = torch.tensor([[3.0, 4.0]])

    _, panels = plt.subplots(
        1, 2, figsize=(7.5, 3.9), sharex=True, sharey=True
    )
    for axes, norm, name in zip(
        panels, (rms_norm, layer_norm), ("RMSNorm", "LayerNorm"), strict=True
    ):
        axes.set(
            title=name,
            aspect="equal",
            xlabel="first coordinate",
            xlim=(-4.2, 4.2),
            ylim=(-4.2, 4.4),
        )
        axes.add_patch(
            plt.Circle(
                (0, 0),
                2**0.5,
                fill=False,
                color="C3",
                linewidth=1,
                linestyle=":",
            )
        )
        if name == "LayerNorm":
            axes.axline(
                (0, 0), slope=-1, color="C3", linewidth=1, linestyle=":"
            )
        for points, colour, size in ((cloud, "C0", 18), (marked, "C1", 46)):
            sent = norm(points, 0.0)
            for before, after in zip(points, sent, strict=True):
                axes.plot(
                    *zip(before.tolist(), after.tolist(), strict=True),
                    color=colour,
                    linewidth=0.8,
                    alpha=0.5,
                )
            axes.scatter(
                *points.T, s=size, facecolors="none", edgecolors=colour
            )
            axes.scatter(*sent.T, s=size, color=colour)
    panels[0].set_ylabel("second coordinate")
    panels[0].annotate("(3, 4)", (3, 4), (1.7, 4.0), fontsize=10)


draw_two_norms()
