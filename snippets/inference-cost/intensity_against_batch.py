import matplotlib.pyplot as plt

width, heads, head_width = 4096, 32, 128
batches = [2**power for power in range(11)]


def decode_line(context, kv_heads):
    rest = 1 / width + context * kv_heads * head_width / width**2
    return [1 / (rest + 1 / batch) for batch in batches]


def prefill_line(context):
    rest = 1 / width + heads * context / width**2
    return [1 / (rest + 1 / (batch * context)) for batch in batches]


figure, axes = plt.subplots(figsize=(6.5, 5.4))
for colour, name, kv_heads in (
    ("C0", "MHA", 32),
    ("C1", "GQA, K = 8", 8),
    ("C2", "MQA", 1),
):
    for style, context in (("-", 2048), ("--", 8192)):
        axes.plot(
            batches, decode_line(context, kv_heads), style,
            color=colour, label=f"{name}, T = {context:,}",
        )  # fmt: skip
axes.plot(
    batches, prefill_line(2048), color="C3", label="prefill, T = 2,048"
)
axes.set(xlabel="batch B", ylabel="operations per value moved")
axes.set(xscale="log", yscale="log")
axes.set_xticks(
    [1, 4, 16, 64, 256, 1024], ["1", "4", "16", "64", "256", "1,024"]
)
ticks = [1, 10, 100]
axes.set_yticks(ticks, map(str, ticks))
axes.minorticks_off()
axes.set_ylim(0.3, 500)
figure.legend(loc="outside lower center", ncols=2, fontsize=10)
