from matplotlib import pyplot as plt

from decoder.ablate.result import read_results

MARKERS = {"pre": "o", "post": "s", "output": "^", "both": "D"}
DEPTHS = (2, 6, 12)


def draw_placement():
    placement = read_results("docs/decoder/results")["placement"]
    _, (by_depth, curve) = plt.subplots(1, 2, figsize=(7.5, 3.8))
    for number, (name, marker) in enumerate(MARKERS.items()):
        colour, shift = f"C{number}", 0.93 + 0.045 * number
        for depth in DEPTHS:
            losses = placement.losses(f"{name}, {depth} layers")
            label = name if depth == DEPTHS[0] else None
            by_depth.plot(
                [depth * shift] * len(losses),
                losses,
                marker,
                color=colour,
                markersize=5,
                label=label,
            )
        for run in placement.variant(f"{name}, 12 layers")["runs"]:
            curve.plot(
                run["curve"]["step"],
                run["curve"]["held_out"],
                color=colour,
                linewidth=1.2,
            )
    by_depth.set(
        xscale="log",
        xlabel="layers",
        ylabel="held-out nats a byte",
        title="at the end, each run",
    )
    by_depth.set_xticks(DEPTHS, DEPTHS)
    by_depth.minorticks_off()
    by_depth.legend()
    curve.set(xlabel="step", title="on the way, 12 layers", ylim=(2.0, 3.2))


draw_placement()
