"""The loss and the z-loss of one set of scores under a common shift."""

import torch
from matplotlib import pyplot as plt


def draw_common_shift():
    scores, target, weight = torch.tensor([3.0, 1.0, 0.5, -2.0]), 0, 1e-4
    shifts = torch.linspace(-20, 20, 201)
    shifted = scores + shifts[:, None]  # (shifts, V)
    log_z = shifted.logsumexp(-1)
    lowest = -scores.logsumexp(-1).item()

    _, (left, right) = plt.subplots(1, 2, figsize=(7.5, 3.2), sharex=True)
    left.plot(shifts, log_z - shifted[:, target], color="C0")
    left.set(title="−log P", ylim=(0, 0.5), ylabel="nats")
    right.plot(shifts, weight * log_z.square(), color="C1")
    right.set(title="z-loss", ylim=(0, 0.056))
    for axes in (left, right):
        axes.axvline(lowest, color="C3", linewidth=1, linestyle=":")
        axes.set_xlabel("common shift of all scores")
    right.annotate(
        "log Z = 0", (lowest, 0.03), (lowest + 1.5, 0.042), fontsize=10
    )


draw_common_shift()
