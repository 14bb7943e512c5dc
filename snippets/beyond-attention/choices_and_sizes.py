from decoder import families

listed = (
    "gpt2-xl", "gpt-j-6b", "opt-350m", "bloom-7b1", "falcon-7b",
    "Llama-2-7b-hf", "Mistral-7B-v0.1", "Meta-Llama-3-8B", "gemma-7b",
    "OLMo-2-1124-7B", "gemma-3-12b-pt", "Qwen3-8B", "gpt-oss-20b",
    "DeepSeek-V3",
)  # fmt: skip
choices = "{:<16}{:<5}{:<6}{:<7}{:<9}{:<12}{:<5}{:<5}{}"
head = ("model", "year", "norm", "place", "position", "FFN", "tied", "bias")
print(choices.format(*head, "block"))
for name in listed:
    o = families.get(name)
    kind = f"{o.activation}{' x' if o.gated else ''}"
    tied, bias = "yes" if o.tied else "no", o.attention_bias or "no"
    cells = (
        o.norm,
        o.norm_placement,
        o.positions,
        kind,
        tied,
        bias,
        o.block,
    )
    print(choices.format(name, families.row(name).year, *cells))
sizes = "{:<16} {:>6} {:>4} {:>4} {:>4} {:>4} {:>7} {:>5} {:>6}"
print()
print(sizes.format("model", "d", "L", "H", "K", "h", "V", "m/d", "d/L"))
for name in listed:
    o = families.get(name)
    shape = (o.width, o.layers, o.heads, o.kv_heads, o.head_width, o.vocab)
    print(
        sizes.format(
            name,
            *shape,
            f"{o.hidden / o.width:.1f}",
            f"{o.width / o.layers:.0f}",
        )
    )
