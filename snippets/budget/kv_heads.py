import matplotlib.pyplot as plt

from decoder.budget import in_unit, kv_cache, parameters
from decoder.config import Config
from decoder.solve import valid_kv_heads

variants = [
    Config(kv_heads=count) for count in valid_kv_heads(Config().heads)
]
choices = [str(variant.kv_heads) for variant in variants]
figure, panels = plt.subplots(1, 2, figsize=(7.5, 3.4))
totals = [parameters(v).total for v in variants]
caches = [kv_cache(v).bytes_per_token for v in variants]
for panel, title, unit, color, form, counts in (
    (panels[0], "parameters", "million", "C0", ".2f", totals),
    (panels[1], "cache for a token", "KiB", "C1", "g", caches),
):
    sizes = [in_unit(count, unit) for count in counts]
    panel.bar(choices, sizes, color=color)
    for place, size in enumerate(sizes):
        panel.text(
            place,
            size * 1.01,
            f"{size:{form}}",
            ha="center",
            va="bottom",
            fontsize=8,
        )
    panel.set(ylim=(0, 1.1 * max(sizes)), xlabel="key/value heads K")
    panel.set_title(f"{title}, {unit}", fontsize=11)
    panel.grid(False, axis="x")
