ROTATE_Q = "apply_rotary(q, *view.rotation, self.pairing)"
ROTATE_K = ROTATE_Q.replace("(q", "(k")
ROTATE_V = ROTATE_Q.replace("(q", "(v")
ROTATE = f"q, k = {ROTATE_Q}, {ROTATE_K}"
GATED = "self.activation(self.gate(x)) * self.up(x)"
RMS = (
    "return (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + eps))"
    ".to(x.dtype)\n\n\ndef layer_norm"
)
TIE = "self.head.weight = self.embedding.weight"
CLONE = "nn.Parameter(self.embedding.weight.detach().clone())"
WIDE = "return x.to(torch.promote_types(x.dtype, torch.float32))"

MUTATIONS = {  # what is changed: (text of architecture.py, replacement)
    "causal mask off": ("is_causal=causal", "is_causal=False"),
    "key/value heads tiled": (
        "x.repeat_interleave(times, dim=1)",
        "x.repeat(1, times, 1, 1)",
    ),
    "values rotated too": (
        ROTATE,
        f"{ROTATE}\n            v = {ROTATE_V}",
    ),
    "nothing rotated": (
        "if self.rotary and view.rotation is not None:",
        "if False:",
    ),
    "queries rotated only": (
        ROTATE,
        f"q = {ROTATE_Q}",
    ),
    "half-split pairs": (
        'if pairing == "adjacent" else',
        'if pairing == "half" else',
    ),
    "final norm removed": (
        "self.embedding_out(self.final_norm(x))",
        "self.embedding_out(x)",
    ),
    "not tied": ("if config.tied:", "if not config.tied:"),
    "tied by a clone": (TIE, f"self.head.weight = {CLONE}"),
    "gate added": (GATED, GATED.replace("*", "+")),
    "SiLU on the other branch": (
        GATED,
        "self.gate(x) * self.activation(self.up(x))",
    ),
    "GELU gate": (
        'activation: Activation = "silu"',
        'activation: Activation = "gelu"',
    ),
    "RMSNorm by the sum": (RMS, RMS.replace("mean(", "sum(")),
    "RMSNorm less the mean": (
        RMS,
        "y = y - y.mean(-1, keepdim=True)\n    " + RMS,
    ),
    "no FP32 in the norm": (WIDE, "return x"),
    "always FP32 in the norm": (WIDE, "return x.float()"),
    "parallel block": (
        "self.feed_forward(self.feed_forward_norm(x))",
        "self.feed_forward(self.attention_norm(x))",
    ),
    "post-norm block": ('NormPlacement = "pre"', 'NormPlacement = "post"'),
    "residual dropped": (
        "self.attention_post_norm(self._carry(x) + branch)",
        "self.attention_post_norm(branch)",
    ),
    "a bias in one projection": ('bias="o" in bias', "bias=True"),
    "offset back to zero": (
        "torch.arange(past, total, device",
        "torch.arange(total - past, device",
    ),
    "repeated heads stored": (
        "k, v = cache.update(k, v)",
        "k, v = cache.update(repeat_kv(k, 2), repeat_kv(v, 2))",
    ),
}
