from matplotlib import pyplot as plt

from decoder.ablate.result import read_results

MARKERS = {"pre": "o", "post": "s", "output": "^", "both": "D"}


def draw_gradients():
    placement = read_results("docs/decoder/results")["placement"]
    _, panels = plt.subplots(1, 2, figsize=(7.5, 3.6), sharey=True)
    for axes, when in zip(panels, ("first", "last"), strict=True):
        for number, (name, marker) in enumerate(MARKERS.items()):
            runs = placement.variant(f"{name}, 12 layers")["runs"]
            by_layer = list(
                zip(
                    *(run["gradient_norms"][when] for run in runs),
                    strict=True,
                )
            )
            layers = range(1, len(by_layer) + 1)
            mean = [sum(norms) / len(norms) for norms in by_layer]
            low, high = map(min, by_layer), map(max, by_layer)
            axes.fill_between(
                layers,
                list(low),
                list(high),
                color=f"C{number}",
                alpha=0.2,
                linewidth=0,
            )
            axes.plot(
                layers,
                mean,
                color=f"C{number}",
                marker=marker,
                markersize=4,
                label=name,
            )
        axes.set(
            yscale="log", xlabel="layer", title=f"{when} step", xticks=layers
        )
    panels[0].set(ylabel="norm of a layer's gradient")
    panels[0].legend()


draw_gradients()
