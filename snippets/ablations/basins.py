from functools import partial

from matplotlib import pyplot as plt

from decoder.ablate.result import read_results

RATIOS = {"aspect": ("width", "layers"), "ffn-ratio": ("hidden", "width")}


def ratio(plan: str, variant: dict) -> float:
    above, below = RATIOS[plan]
    return variant["config"][above] / variant["config"][below]


def draw_basins():
    results = read_results("docs/decoder/results")
    _, panels = plt.subplots(1, 2, figsize=(7.5, 3.8), sharey=True)
    for axes, plan in zip(panels, RATIOS, strict=True):
        variants = sorted(
            results[plan].content["variants"], key=partial(ratio, plan)
        )
        x = [ratio(plan, variant) for variant in variants]
        for runs in zip(
            *(variant["runs"] for variant in variants), strict=True
        ):
            axes.plot(
                x,
                [run["held_out"] for run in runs],
                color="C7",
                linewidth=0.8,
            )
        mean = [variant["held_out"]["mean"] for variant in variants]
        reach = [
            variant["held_out"]["interval"][1] - variant["held_out"]["mean"]
            for variant in variants
        ]
        axes.errorbar(
            x, mean, reach, color="C0", marker="o", linewidth=2, capsize=4
        )
        axes.set(xscale="log", xlabel=" / ".join(RATIOS[plan]))
        axes.set_xticks(x, [f"{each:.2g}" for each in x])
        axes.minorticks_off()
    panels[0].set(ylabel="held-out nats a byte")


draw_basins()
