from matplotlib import pyplot as plt


def draw_gradients():
    figure, (by_layer, by_depth) = plt.subplots(1, 2, figsize=(7.5, 3.6), sharey=True)
    for placement, colour, marker in (("post", "C1", "s"), ("pre", "C0", "o")):
        norms = over_seeds(placement, 12)
        mean, steps = norms.mean(0), range(1, 13)
        by_layer.fill_between(
            steps, norms.min(0).values, norms.max(0).values, color=colour, alpha=0.2, linewidth=0
        )
        by_layer.plot(
            steps, mean, color=colour, marker=marker, markersize=4, label=f"{placement}-norm"
        )
        last = [over_seeds(placement, depth)[:, -1].mean() for depth in DEPTHS]
        by_depth.plot(DEPTHS, last, color=colour, marker=marker, markersize=5)
    by_layer.set(
        yscale="log", xlabel="layer", ylabel="gradient norm", title="12 layers", xticks=range(1, 13)
    )
    by_depth.set(xscale="log", xlabel="layers in the stack", title="the last layer")
    by_depth.set_xticks(DEPTHS, DEPTHS)
    by_depth.minorticks_off()
    by_layer.set_yticks((0.1, 0.2, 0.4, 0.8), ("0.1", "0.2", "0.4", "0.8"))
    by_layer.legend()


draw_gradients()
