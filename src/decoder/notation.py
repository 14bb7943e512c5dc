"""The book's notation: each symbol once, with its meaning, and its value for a Config.

Sizes are written as in the book (d width, L layers, ...). A choice that changes a count is a symbol too, 0 or 1, so
that one formula covers every decoder; ``values`` says what a Config gives it.
"""

from __future__ import annotations

from sympy import Expr, Symbol, symbols

from decoder.config import Config

B, T, d, L, H, K, h, m, V, e, g, N = symbols("B T d L H K h m V e g N", integer=True, positive=True)
bits, n_b, D = symbols("bits n_b D", integer=True, positive=True)
P, p, c, r, n, v, q, E, k, m_e, m_s, w = symbols("P p c r n v q E k m_e m_s w", integer=True, nonnegative=True)
L_w, L_f, L_e, a, u, x, s, y, z = symbols("L_w L_f L_e a u x s y z", integer=True, nonnegative=True)
b_q, b_k, b_v, b_o, b_m, b_r, b_e, b_h = symbols("b_q b_k b_v b_o b_m b_r b_e b_h", integer=True, nonnegative=True)
n_f, n_e, q_1, q_h = symbols("n_f n_e q_1 q_h", integer=True, nonnegative=True)

# In the order in which a product is displayed.
MEANING: dict[Symbol, str] = {
    B: "batch: sequences at once",
    T: "tokens in a sequence",
    L: "layers",
    d: "width",
    H: "heads",
    K: "kv_heads",
    h: "head_width",
    m: "hidden width of the feed-forward part",
    V: "vocab",
    e: "width of an embedding row",
    P: "rows of a learned position table",
    g: "matrices of a feed-forward part: 3 gated, 2 not",
    N: "norms in a layer",
    p: "trained vectors of a norm: 0, 1 or 2 (scale, bias)",
    c: "width of the key-value latent",
    r: "width of the shared rotary key",
    n: "unrotated width of a latent-attention head",
    v: "value width of a latent-attention head",
    q: "width of the query latent",
    E: "experts",
    k: "experts a token visits",
    m_e: "hidden width of one expert",
    m_s: "hidden width of the shared experts together",
    w: "window: keys a windowed layer sees",
    a: "1 if attention keeps a latent in place of per-head keys and values",
    L_w: "windowed layers",
    L_f: "layers with a dense feed-forward part",
    L_e: "layers with experts",
    b_q: "1 if the query projection has a bias",
    b_k: "1 if the key projection has a bias",
    b_v: "1 if the value projection has a bias",
    b_o: "1 if the attention output has a bias",
    b_m: "1 if the feed-forward part has biases",
    b_r: "1 if the router has a bias",
    b_e: "1 if the experts have biases",
    b_h: "1 if the head has a bias",
    u: "1 if the head has its own matrix (untied)",
    x: "1 if projections lead from and to embedding rows of another width",
    s: "1 if each head has a sink",
    y: "1 if the shared experts have a gate",
    z: "1 if queries pass through a latent",
    n_f: "1 if there is a final norm",
    n_e: "1 if there is a norm after the embedding",
    q_1: "1 if queries and keys are normed with one weight vector for all heads",
    q_h: "1 if queries and keys are normed with weights of their own for each head",
    bits: "bits in a stored value",
    n_b: "bytes a parameter takes",
    D: "devices that share a part",
}
CALLERS = (B, T, bits, n_b, D)  # what no Config fixes

# Symbols that say which decoder it is, and sizes of parts that a decoder may lack.
SWITCHES = (
    "g", "N", "p", "a", "z", "u", "x", "s", "y", "n_f", "n_e", "q_1", "q_h",
    "b_q", "b_k", "b_v", "b_o", "b_m", "b_r", "b_e", "b_h",
)  # fmt: skip
OPTIONAL = ("P", "c", "r", "n", "v", "q", "E", "k", "m_e", "m_s", "w", "L_w", "L_f", "L_e")

NORMS_PER_LAYER = {"pre": 2, "post": 2, "output": 2, "both": 4}


def values(config: Config) -> dict[str, int]:
    """Every symbol that a Config fixes, by name; ``CALLERS`` are the caller's."""
    latent, experts = config.latent, config.experts
    dense = config.layers if experts is None else len(experts.dense_layers)
    biases = config.attention_bias
    return {
        "d": config.width,
        "L": config.layers,
        "H": config.heads,
        "K": config.kv_heads,
        "h": config.head_width,
        "m": config.hidden,
        "V": config.vocab,
        "e": config.embedding_width or config.width,
        "P": config.position_rows if config.positions == "learned" else 0,
        "g": 3 if config.gated else 2,
        "N": config.parallel_norms if config.block == "parallel" else NORMS_PER_LAYER[config.norm_placement],
        "p": (config.norm_scale != "none") + config.norm_bias,
        "c": latent.kv_rank if latent else 0,
        "r": latent.rope_width if latent else 0,
        "n": latent.nope_width if latent else 0,
        "v": latent.value_width if latent else 0,
        "q": (latent.query_rank or 0) if latent else 0,
        "z": int(latent is not None and latent.query_rank is not None),
        "E": experts.count if experts else 0,
        "k": experts.per_token if experts else 0,
        "m_e": experts.hidden if experts else 0,
        "m_s": experts.shared_hidden if experts else 0,
        "y": int(experts is not None and experts.shared > 0 and experts.shared_gate),
        "b_r": int(experts is not None and experts.router_bias),
        "b_e": int(experts is not None and experts.bias),
        "w": config.window or 0,
        "a": int(latent is not None),
        "L_w": len(config.windowed_layers),
        "L_f": dense,
        "L_e": config.layers - dense,
        "b_q": int("q" in biases),
        "b_k": int("k" in biases),
        "b_v": int("v" in biases),
        "b_o": int("o" in biases),
        "b_m": int(config.hidden_bias),
        "b_h": int(config.head_bias),
        "u": int(not config.tied),
        "x": int(config.embedding_width is not None),
        "s": int(config.sinks),
        "n_f": int(config.final_norm),
        "n_e": int(config.embedding_norm),
        "q_1": int(config.qk_norm == "head"),
        "q_h": int(config.qk_norm in ("full", "per_head_weights")),
    }


def specialise(expr: Expr, config: Config) -> Expr:
    """``expr`` as this decoder needs it: choices take their value, sizes stay letters.

    What the decoder lacks (experts, windows, a latent, a position table) drops out, layers of one kind that are all
    of them become L, and embedding rows as wide as the stream become d.
    """
    known = values(config)
    chosen: dict[str, Expr | int] = {name: known[name] for name in SWITCHES}
    for name in OPTIONAL:
        if known[name] == 0:
            chosen[name] = 0
        elif name.startswith("L_") and known[name] == config.layers:
            chosen[name] = L
    if known["e"] == config.width:
        chosen["e"] = d
    return expr.subs({symbol: chosen[symbol.name] for symbol in expr.free_symbols if symbol.name in chosen})
