from decoder import families

released = [(row.name, row.config) for row in families.RELEASED]
t5_width, t5_hidden, t5_heads, t5_layers = 1024, 65_536, 128 * 128, 24
lamda_heads, lamda_width = 128 * 128, 8192
palm, xl = families.get("PaLM 540B"), families.get("gpt2-xl")
command_r = families.get("c4ai-command-r-v01")
ratios = {
    "hidden / width": lambda o: o.hidden / o.width,
    "heads x head width / width": lambda o: o.heads * o.head_width / o.width,
    "width / layers": lambda o: o.width / o.layers,
    "vocab": lambda o: o.vocab,
}
strips = {
    name: [(model, rule(o)) for model, o in released]
    for name, rule in ratios.items()
}
t5_ffn, t5_head = t5_hidden / t5_width, t5_heads / t5_width
t5_aspect, xl_aspect = t5_width / t5_layers, xl.width / xl.layers
palm_head = palm.heads * palm.head_width / palm.width
lamda_head = lamda_heads / lamda_width
outliers = {
    "hidden / width": [
        ("T5-11B", t5_ffn),
        ("Gemma 7B", families.get("gemma-7b")),
    ],
    "heads x head width / width": [
        ("PaLM", palm_head),
        ("LaMDA", lamda_head),
        ("T5-11B", t5_head),
    ],
    "width / layers": [
        ("GPT-2 XL", xl),
        ("T5-11B", t5_aspect),
        ("Command R", command_r),
    ],
    "vocab": [
        ("Llama 2", families.get("Llama-2-7b-hf")),
        ("Gemma 3", families.get("gemma-3-12b-pt")),
    ],
}
for name, rule in ratios.items():
    outliers[name] = [
        (model, rule(value) if hasattr(value, "width") else value)
        for model, value in outliers[name]
    ]
ticks = {
    "hidden / width": [1, 2, 4, 8, 16, 32, 64],
    "heads x head width / width": [0.5, 1, 2, 4, 8, 16],
    "width / layers": [16, 32, 64, 128, 256],
    "vocab": [32_000, 64_000, 128_000, 256_000],
}
