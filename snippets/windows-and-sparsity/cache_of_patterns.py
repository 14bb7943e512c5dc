import matplotlib.pyplot as plt

from decoder.budget import kv_cache

contexts = [2**power for power in range(10, 21)]
lines = {
    "full": ("-", full_stack),
    "three windowed of four": ("--", interleaved),
    "dilated window, step 4": (":", dilated_held),
    "window": ("-.", windowed),
}
figure, axes = plt.subplots(figsize=(7.5, 4.2))
for name, (style, stack) in lines.items():
    sizes = [kv_cache(stack, tokens).needed_bytes / 2**30 for tokens in contexts]
    axes.plot(contexts, sizes, style, label=name)
axes.set(xlabel="context T, tokens", ylabel="needed cache of one sequence, GiB")
axes.set(xscale="log", yscale="log")
axes.set_xticks(contexts[::2], [f"{tokens:,}" for tokens in contexts[::2]])
axes.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
axes.minorticks_off()
axes.legend(loc="upper left", fontsize=10)
