import matplotlib.pyplot as plt

from decoder import families
from decoder.budget import kv_cache

contexts = [2**power for power in range(8, 21)]
curves = {
    "Llama 3 8B with K = 32": families.get("Meta-Llama-3-8B").replace(
        kv_heads=32
    ),
    "Llama 3 8B, K = 8": families.get("Meta-Llama-3-8B"),
    "DeepSeek-V3, a latent": families.get("DeepSeek-V3"),
    "Mistral 7B v0.1, window": families.get("Mistral-7B-v0.1"),
}

figure, axes = plt.subplots(figsize=(7.5, 4.6))
styles = ("-", "-", "--", "-.")
for style, (label, released) in zip(styles, curves.items(), strict=True):
    needed = [kv_cache(released, tokens).needed_bytes for tokens in contexts]
    axes.plot(
        contexts, [size / 2**30 for size in needed], style, label=label
    )
gigabyte = 1e9 / 2**30
axes.axhspan(80 * gigabyte, 80, color="C4", alpha=0.5, linewidth=0)
axes.text(contexts[0], 96, "80 GB to 80 GiB", va="bottom")
axes.set(xlabel="context T, tokens", ylabel="cache of one sequence, GiB")
axes.set(xscale="log", yscale="log")
axes.set_xticks(contexts[::3], [f"{tokens:,}" for tokens in contexts[::3]])
ticks = [0.01, 0.1, 1, 10, 100]
axes.set_yticks(ticks, map(str, ticks))
axes.set_ylim(0.01, 700)
axes.minorticks_off()
axes.legend(loc="lower right", fontsize=10)
