import matplotlib.pyplot as plt

from decoder import families
from decoder.budget import FACTORS, in_unit, kv_cache

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
styles, unit = ("-", "-", "--", "-."), "GiB"
for style, (label, released) in zip(styles, curves.items(), strict=True):
    needed = [kv_cache(released, tokens).needed_bytes for tokens in contexts]
    shown = [in_unit(size, unit) for size in needed]
    axes.plot(contexts, shown, style, label=label)
sold = {f"80 {name}": 80 * FACTORS[name] for name in ("GB", "GiB")}
low, high = (in_unit(size, unit) for size in sold.values())
axes.axhspan(low, high, color="C4", alpha=0.5, linewidth=0)
axes.text(contexts[0], 96, " to ".join(sold), va="bottom")
axes.set(xlabel="context T, tokens", ylabel=f"cache of one sequence, {unit}")
axes.set(xscale="log", yscale="log")
axes.set_xticks(contexts[::3], [f"{tokens:,}" for tokens in contexts[::3]])
ticks = [0.01, 0.1, 1, 10, 100]
axes.set_yticks(ticks, map(str, ticks))
axes.set_ylim(0.01, 700)
axes.minorticks_off()
axes.legend(loc="lower right", fontsize=10)
