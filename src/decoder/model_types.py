"""What each ``model_type`` of a config.json means, as a table.

One entry for each family, checked against the configuration and model classes of transformers 5.24: under which keys
its sizes stand, what the class takes where a key is absent or null, and which choices it fixes without any key.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from decoder.config_keys import (
    DERIVED,
    REQUIRED,
    ConfigFile,
    Family,
    Key,
    Rope,
    Windows,
    activation,
    biases,
    flag,
    number,
    whole,
)  # fmt: skip

_SIZES = {
    "width": whole("hidden_size"),
    "layers": whole("num_hidden_layers"),
    "heads": whole("num_attention_heads"),
    "kv_heads": whole("num_key_value_heads", default=DERIVED),
    "head_width": whole("head_dim", default=DERIVED),
    "hidden": whole("intermediate_size"),
    "vocab": whole("vocab_size"),
    "context": whole("max_position_embeddings"),
}


def _sizes(**defaults: Any) -> dict[str, Key]:
    """The sizes under their usual keys, with a family's class defaults."""
    return {name: replace(key, default=defaults[name]) if name in defaults else key for name, key in _SIZES.items()}


def _rms(eps: float = 1e-6) -> dict[str, Any]:
    return {"norm": "rms", "norm_eps": number("rms_norm_eps", default=eps)}


def _layer_norm(*names: str, eps: float = 1e-5, bias: bool = True) -> dict[str, Any]:
    return {"norm": "layer", "norm_bias": bias, "norm_eps": number(*names, default=eps)}


def _gated(default: str = "silu", *names: str) -> dict[str, Any]:
    return {"gated": True, "activation": activation(*(names or ("hidden_act",)), default=default)}


def _plain(*names: str, default: str, bias: Any) -> dict[str, Any]:
    return {"gated": False, "activation": activation(*names, default=default), "hidden_bias": bias}


def _tied(default: bool) -> dict[str, Key]:
    return {"tied": flag("tie_word_embeddings", default=default)}


def _every(cycle_key: str | None, cycle: int) -> Callable[[int, ConfigFile], bool]:
    """All layers slide but each ``cycle``-th; ``cycle_key`` may state another cycle."""

    def slides(layer: int, file: ConfigFile) -> bool:
        stated = file.get(cycle_key) if cycle_key else REQUIRED
        size = cycle if stated is REQUIRED else file.whole(cycle_key or "", stated)
        return (layer + 1) % size != 0

    return slides


def _from_max_window_layers(layer: int, file: ConfigFile) -> bool:
    stated = file.get("max_window_layers")
    return layer >= (28 if stated is REQUIRED else file.whole("max_window_layers", stated, 0))


def _odd_below_max_window_layers(layer: int, file: ConfigFile) -> bool:
    return layer % 2 == 0 and not _from_max_window_layers(layer, file)


def _dense_by_step(layer: int, file: ConfigFile) -> bool:
    stated = file.get("mlp_only_layers")
    named = [] if stated is REQUIRED or stated is None else stated
    if not isinstance(named, list) or any(isinstance(i, bool) or not isinstance(i, int) for i in named):
        raise file.error("mlp_only_layers", stated, "must be a list of layer numbers")
    step = file.get("decoder_sparse_step")
    step = 1 if step is REQUIRED else file.whole("decoder_sparse_step", step, 0)
    return layer in named or step == 0 or (layer + 1) % step != 0


def _dense_first(default: int) -> Callable[[int, ConfigFile], bool]:
    def dense(layer: int, file: ConfigFile) -> bool:
        stated = file.get("first_k_dense_replace")
        return layer < (default if stated is REQUIRED else file.whole("first_k_dense_replace", stated, 0))

    return dense


def _if_group_limited(name: str, key: str) -> Callable[[ConfigFile], int]:
    """DeepSeek-V2 states its groups whether or not its method looks at them."""

    def read(file: ConfigFile) -> int:
        limited = file.get("topk_method") == "group_limited_greedy"
        return file.take(f"experts.{name}", whole(key, default=1, null=1)) if limited else 1

    return read


def _four_widths(file: ConfigFile, read: dict[str, Any]) -> None:
    if read["hidden"] is DERIVED:
        read["hidden"] = file.derive("hidden", 4 * read["width"])


def _gptj(file: ConfigFile, read: dict[str, Any]) -> None:
    _four_widths(file, read)
    rotated = file.take("rotary_width", whole("rotary_dim", default=64, null=DERIVED))
    read["rotary_width"] = read["width"] // read["heads"] if rotated is DERIVED else rotated


def _neox(file: ConfigFile, read: dict[str, Any]) -> None:
    read["parallel_norms"] = 2 if read["block"] == "parallel" else 1


def _opt(file: ConfigFile, read: dict[str, Any]) -> None:
    read["position_rows"] = file.derive("position_rows", read["context"] + 2)  # the class starts at row 2
    removed = file.take("final_norm", flag("_remove_final_layer_norm", default=False))
    read["final_norm"] = file.derive("final_norm", read["norm_placement"] == "pre" and not removed)
    if read["embedding_width"] == read["width"]:
        read["embedding_width"] = None


def _falcon(file: ConfigFile, read: dict[str, Any]) -> None:
    _four_widths(file, read)
    new = file.take("new_decoder_architecture", flag("new_decoder_architecture", default=False, null=False))
    shared = file.take("multi_query", flag("multi_query", default=True, null=False))
    if not new:  # the older layout knows one key/value head, or as many as queries
        read["kv_heads"] = file.derive("kv_heads", 1 if shared else read["heads"], "multi_query")
    if new and read["block"] == "serial":
        raise file.error("parallel_attn", False, "must be true where new_decoder_architecture is")
    norms = file.take("parallel_norms", whole("num_ln_in_parallel_attn", default=DERIVED))
    read["parallel_norms"] = norms if norms is not DERIVED else file.derive("parallel_norms", 2 if new else 1)
    if file.take("alibi", flag("alibi", default=False, null=False)):
        read["positions"] = file.derive("positions", "alibi", "alibi")
        file.unsupported.append("alibi is true: Falcon scales the bias together with the scores, a Config does not")


def _bloom(file: ConfigFile, read: dict[str, Any]) -> None:
    read["hidden"] = file.derive("hidden", 4 * read["width"])
    # The class has no such key: ALiBi reaches any length. Old files say how long training sequences were.
    read["context"] = file.take("context", whole("seq_length", default=2048, null=2048))


def _mpt(file: ConfigFile, read: dict[str, Any]) -> None:
    ratio = file.take("expansion_ratio", whole("expansion_ratio", default=4))
    if ratio != 4:
        raise file.error("expansion_ratio", ratio, "must be 4, the only ratio the released class builds")
    read["hidden"] = file.derive("hidden", 4 * read["width"], "expansion_ratio")


def _scale_by_width(file: ConfigFile, read: dict[str, Any]) -> None:
    read["embedding_scale"] = file.derive("embedding_scale", math.sqrt(read["width"]))


def _gemma(file: ConfigFile, read: dict[str, Any]) -> None:
    _scale_by_width(file, read)
    if read["activation"] == "gelu":  # what the released files say, and never what was meant
        read["activation"] = file.derive("activation", "gelu_tanh", "hidden_act")


def _gemma_scaled(file: ConfigFile, read: dict[str, Any]) -> None:
    _scale_by_width(file, read)
    scalar = file.take("attention_scale", number("query_pre_attn_scalar", default=256))
    read["attention_scale"] = file.derive("attention_scale", scalar**-0.5, "query_pre_attn_scalar")


def _still_layers(file: ConfigFile, layers: int) -> tuple[int, ...]:
    """Layers without rotary positions. ``no_rope_layers`` holds one number a layer, 1 where the layer does rotate."""
    stated = file.get("no_rope_layers")
    if stated is REQUIRED or stated is None:
        step = file.get("no_rope_layer_interval")
        step = 4 if step is REQUIRED else file.whole("no_rope_layer_interval", step)
        return tuple(layer for layer in range(layers) if (layer + 1) % step == 0)
    if not isinstance(stated, list) or len(stated) != layers or any(rotates not in (0, 1) for rotates in stated):
        raise file.error("no_rope_layers", stated, f"must be {layers} numbers, 1 where the layer rotates")
    return tuple(layer for layer, rotates in enumerate(stated) if not rotates)


def _slides_where_still(layer: int, file: ConfigFile) -> bool:
    return layer in _still_layers(file, file.values["layers"].value)


def _smollm3(file: ConfigFile, read: dict[str, Any]) -> None:
    still = _still_layers(file, read["layers"])
    read["no_rope_layers"] = file.derive("no_rope_layers", still, "no_rope_layers")


def _cohere2(file: ConfigFile, read: dict[str, Any]) -> None:
    """Full layers carry no positions."""
    still = tuple(layer for layer in range(read["layers"]) if layer not in read["windowed_layers"])
    read["no_rope_layers"] = file.derive("no_rope_layers", still, "layer_types")


def _heads_fill_width(file: ConfigFile, read: dict[str, Any]) -> None:
    if read["heads"] * read["head_width"] != read["width"]:
        raise file.error("head_dim", read["head_width"], f"must be {file.named('width')} / {file.named('heads')}")


def _deepseek(file: ConfigFile, read: dict[str, Any]) -> None:
    latent, scaling = read["latent"], read["rope_scaling"]
    stated = file.get("head_dim")
    if stated not in (REQUIRED, None, latent.rope_width):
        raise file.error("head_dim", stated, f"must be qk_rope_head_dim, {latent.rope_width}, where it is stated")
    read["head_width"] = file.derive("head_width", latent.nope_width + latent.rope_width, "qk_nope_head_dim")
    read["kv_heads"] = file.derive("kv_heads", read["heads"])  # the latent serves every head
    if scaling is not None and scaling.kind == "yarn" and scaling.mscale_all_dim:
        growth = 0.1 * scaling.mscale_all_dim * math.log(scaling.factor) + 1
        read["attention_scale"] = file.derive("attention_scale", read["head_width"] ** -0.5 * growth**2)


_ONE_KIND_OF_HEAD = {"kv_heads": DERIVED, "head_width": DERIVED}  # the class reads no key for them
_LLAMA = {
    **_sizes(width=4096, layers=32, heads=32, hidden=11008, vocab=32000, context=2048),
    **_rms(),
    **_gated(),
    "hidden_bias": flag("mlp_bias", default=False),
    "attention_bias": biases("attention_bias", default=False),
    **_tied(False),
}
_MISTRAL = {
    **_sizes(width=4096, layers=32, heads=32, hidden=14336, vocab=32000, context=131072),
    "kv_heads": whole("num_key_value_heads", default=8, null=DERIVED),
    **_rms(),
    **_gated(),
    **_tied(False),
}
_QWEN2 = {
    **_sizes(width=4096, layers=32, heads=32, hidden=22016, vocab=151936, context=32768),
    "kv_heads": whole("num_key_value_heads", default=32, null=DERIVED),
    **_rms(),
    **_gated(),
    "attention_bias": "qkv",
    **_tied(False),
}
_QWEN3 = {
    **_QWEN2,
    "head_width": whole("head_dim", default=128),
    "attention_bias": biases("attention_bias", default=False),
    "qk_norm": "head",
}
_GEMMA = {
    "head_width": whole("head_dim", default=256),
    "norm_scale": "one_plus_weight",
    **_rms(),
    "attention_bias": biases("attention_bias", default=False),
    **_tied(True),
}
_GEMMA2 = {
    **_sizes(width=2304, layers=26, heads=8, hidden=9216, vocab=256000, context=8192),
    **_GEMMA,
    **_gated("gelu_tanh", "hidden_activation"),
    "kv_heads": whole("num_key_value_heads", default=4),
    "norm_placement": "both",
    "attention_softcap": number("attn_logit_softcapping", default=50.0, null=DERIVED),
    "logit_softcap": number("final_logit_softcapping", default=30.0, null=DERIVED),
}
_COHERE = {
    **_sizes(width=8192, layers=40, heads=64, hidden=22528, vocab=256000, context=8192),
    **_layer_norm("layer_norm_eps", bias=False),
    **_gated(),
    "attention_bias": biases("attention_bias", default=False),
    "block": "parallel",
    "logit_scale": number("logit_scale", default=0.0625),
    **_tied(True),
}
_OLMO = {
    **_sizes(width=4096, layers=32, heads=32, hidden=11008, vocab=50304, context=2048),
    **_gated(),
    "attention_bias": biases("attention_bias", default=False),
    **_tied(False),
}
_GPT2_SIZES = {
    "width": whole("n_embd", "hidden_size", default=768),
    "layers": whole("n_layer", "num_hidden_layers", default=12),
    "heads": whole("n_head", "num_attention_heads", default=12),
    "hidden": whole("n_inner", default=DERIVED),
    "vocab": whole("vocab_size", default=50257),
    "context": whole("n_positions", "max_position_embeddings", default=1024),
}
_WINDOW = whole("sliding_window", default=4096, null=DERIVED)
_SWITCH = flag("use_sliding_window", default=False)
_CAUSAL = {"use_bidirectional_attention": (None, False)}
_NORM_TOPK = {"normalised": flag("norm_topk_prob", default=False)}
_DEEPSEEK_LATENT = {
    "kv_rank": whole("kv_lora_rank", default=512),
    "query_rank": whole("q_lora_rank", default=1536, null=DERIVED),
    "rope_width": whole("qk_rope_head_dim", default=64),
    "nope_width": whole("qk_nope_head_dim", default=128),
    "value_width": whole("v_head_dim", default=128),
}

FAMILIES: dict[str, Family] = {
    "gpt2": Family(
        {
            **_GPT2_SIZES,
            **_layer_norm("layer_norm_epsilon"),
            **_plain("activation_function", default="gelu_tanh", bias=True),
            "positions": "learned",
            "attention_bias": "qkvo",
            **_tied(True),
        },
        finish=_four_widths,
        only={"add_cross_attention": (False,)},
        expressed={"scale_attn_by_inverse_layer_idx": (False,), "scale_attn_weights": (True,)},
    ),
    "gptj": Family(
        {
            **_GPT2_SIZES,
            "width": whole("n_embd", "hidden_size", default=4096),
            "layers": whole("n_layer", "num_hidden_layers", default=28),
            "heads": whole("n_head", "num_attention_heads", default=16),
            "vocab": whole("vocab_size", default=50400),
            "context": whole("n_positions", "max_position_embeddings", default=2048),
            **_layer_norm("layer_norm_epsilon"),
            **_plain("activation_function", default="gelu_tanh", bias=True),
            "block": "parallel",
            "head_bias": True,
            **_tied(False),
        },
        rope=Rope("adjacent", part_keys=()),
        finish=_gptj,
    ),
    "gpt_neox": Family(
        {
            **_sizes(width=6144, layers=44, heads=64, hidden=24576, vocab=50432, context=2048),
            **_ONE_KIND_OF_HEAD,
            **_layer_norm("layer_norm_eps"),
            **_plain("hidden_act", default="gelu", bias=True),
            "attention_bias": biases("attention_bias", default=True),
            "block": flag("use_parallel_residual", default=True, means={True: "parallel", False: "serial"}),
            **_tied(False),
        },
        rope=Rope(base_keys=("rotary_emb_base", "rope_theta"), part=0.25, part_keys=("rotary_pct",)),
        finish=_neox,
    ),
    "opt": Family(
        {
            **_sizes(width=768, layers=12, heads=12, vocab=50272, context=2048),
            **_ONE_KIND_OF_HEAD,
            "hidden": whole("ffn_dim", default=3072),
            "embedding_width": whole("word_embed_proj_dim", default=DERIVED),
            "norm": "layer",
            "norm_bias": True,
            "norm_eps": 1e-5,
            "norm_placement": flag("do_layer_norm_before", default=True, means={True: "pre", False: "post"}),
            **_plain("activation_function", default="relu", bias=flag("enable_bias", default=True)),
            "attention_bias": biases("enable_bias", default=True),
            "positions": "learned",
            **_tied(True),
        },
        finish=_opt,
        only={"layer_norm_elementwise_affine": (True,)},
    ),
    "falcon": Family(
        {
            "width": whole("hidden_size", "n_embed", default=4544),
            "layers": whole("num_hidden_layers", "n_layer", default=32),
            "heads": whole("num_attention_heads", "n_head", default=71),
            "kv_heads": whole("num_kv_heads", "n_head_kv", default=DERIVED),
            "hidden": whole("ffn_hidden_size", default=DERIVED),
            "vocab": whole("vocab_size", default=65024),
            "context": whole("max_position_embeddings", default=2048),
            **_layer_norm("layer_norm_epsilon"),
            **_plain("activation", default="gelu", bias=flag("bias", default=False, null=False)),
            "attention_bias": biases("bias", default=False),
            "block": flag("parallel_attn", default=True, means={True: "parallel", False: "serial"}),
            **_tied(True),
        },
        rope=Rope(),
        finish=_falcon,
    ),
    "bloom": Family(
        {
            "width": whole("hidden_size", "n_embed", default=64),
            "layers": whole("n_layer", "num_hidden_layers", default=2),
            "heads": whole("n_head", "num_attention_heads", default=8),
            "vocab": whole("vocab_size", default=250880),
            **_layer_norm("layer_norm_epsilon"),
            "gated": False,
            "activation": "gelu_tanh",
            "hidden_bias": True,
            "attention_bias": "qkvo",
            "positions": "alibi",
            "embedding_norm": True,
            **_tied(True),
        },
        finish=_bloom,
        expressed={"apply_residual_connection_post_layernorm": (False,)},
    ),
    "mpt": Family(
        {
            "width": whole("d_model", "hidden_size", default=2048),
            "layers": whole("n_layers", "num_hidden_layers", default=24),
            "heads": whole("n_heads", "num_attention_heads", default=16),
            "vocab": whole("vocab_size", default=50368),
            "context": whole("max_seq_len", default=2048),
            **_layer_norm("layer_norm_epsilon", bias=False),
            "gated": False,
            "activation": "gelu",
            "positions": "alibi",
            "attention_scale": number("attn_config.softmax_scale", default=DERIVED),
            **_tied(True),
        },
        finish=_mpt,
        only={
            "no_bias": (True,),
            "attn_config.qk_ln": (False,),
            "attn_config.alibi": (True,),
            "attn_config.attn_type": ("multihead_attention",),
        },
        expressed={"attn_config.clip_qkv": (None,), "logit_scale": (None,), "attn_config.alibi_bias_max": (8,)},
    ),
    "llama": Family(_LLAMA, rope=Rope()),
    "mistral": Family(_MISTRAL, rope=Rope(), windows=Windows(_WINDOW)),
    "mixtral": Family(
        {**_MISTRAL, **_rms(1e-5)},
        rope=Rope(base=1_000_000.0),
        windows=Windows(replace(_WINDOW, default=DERIVED)),
        experts={
            "count": whole("num_local_experts", "num_experts", default=8),
            "per_token": whole("num_experts_per_tok", default=2),
            "hidden": "hidden",
        },
    ),
    "qwen2": Family(_QWEN2, rope=Rope(), windows=Windows(_WINDOW, _SWITCH, _from_max_window_layers)),
    "qwen3": Family(_QWEN3, rope=Rope(), windows=Windows(_WINDOW, _SWITCH, _from_max_window_layers)),
    "qwen2_moe": Family(
        {
            **_QWEN2,
            "width": whole("hidden_size", default=2048),
            "layers": whole("num_hidden_layers", default=24),
            "heads": whole("num_attention_heads", default=16),
            "kv_heads": whole("num_key_value_heads", default=16),
            "hidden": whole("intermediate_size", default=5632),
            "attention_bias": biases("qkv_bias", default=True, letters="qkv"),
        },
        rope=Rope(),
        windows=Windows(replace(_WINDOW, least=0), _SWITCH, _odd_below_max_window_layers),
        experts={
            "count": whole("num_experts", "num_local_experts", default=60),
            "per_token": whole("num_experts_per_tok", default=4),
            "hidden": whole("moe_intermediate_size", default=1408),
            "shared": 1,
            "shared_hidden": whole("shared_expert_intermediate_size", default=5632),
            "shared_gate": True,
            **_NORM_TOPK,
        },
        dense_layer=_dense_by_step,
    ),
    "qwen3_moe": Family(
        {
            **_QWEN3,
            "width": whole("hidden_size", default=2048),
            "layers": whole("num_hidden_layers", default=24),
            "kv_heads": whole("num_key_value_heads", default=4),
            "head_width": replace(whole("head_dim", default=DERIVED), null=REQUIRED),
            "hidden": whole("intermediate_size", default=6144),
        },
        rope=Rope(),
        windows=Windows(_WINDOW, _SWITCH),
        experts={
            "count": whole("num_local_experts", "num_experts", default=128),
            "per_token": whole("num_experts_per_tok", default=8),
            "hidden": whole("moe_intermediate_size", default=768),
            **_NORM_TOPK,
        },
        dense_layer=_dense_by_step,
    ),
    "gemma": Family(
        {
            **_sizes(width=3072, layers=28, heads=16, hidden=24576, vocab=256000, context=8192),
            **_GEMMA,
            **_gated("gelu_tanh"),
            "kv_heads": whole("num_key_value_heads", default=16),
        },
        rope=Rope(),
        finish=_gemma,
        only=_CAUSAL,
    ),
    "gemma2": Family(
        _GEMMA2,
        rope=Rope(),
        windows=Windows(_WINDOW, slides=_every(None, 2)),
        finish=_gemma_scaled,
        only=_CAUSAL,
    ),
    "gemma3_text": Family(
        {
            **_GEMMA2,
            "vocab": whole("vocab_size", default=262208),
            "context": whole("max_position_embeddings", default=131072),
            "attention_softcap": number("attn_logit_softcapping", default=DERIVED),
            "logit_softcap": number("final_logit_softcapping", default=DERIVED),
            "qk_norm": "head",
        },
        rope=Rope(base=1_000_000.0, base_windowed=10_000.0),
        windows=Windows(_WINDOW, slides=_every("sliding_window_pattern", 6)),
        finish=_gemma_scaled,
        only=_CAUSAL,
    ),
    "phi": Family(
        {
            **_sizes(width=2048, layers=24, heads=32, hidden=8192, vocab=51200, context=2048),
            **_layer_norm("layer_norm_eps"),
            **_plain("hidden_act", default="gelu_tanh", bias=True),
            "attention_bias": "qkvo",
            "block": "parallel",
            "head_bias": True,
            **_tied(False),
        },
        rope=Rope(part=0.5),
        only={"qk_layernorm": (False,)},
    ),
    "phi3": Family(
        {
            **_sizes(width=3072, layers=32, heads=32, hidden=8192, vocab=32064, context=4096),
            **_rms(1e-5),
            **_gated(),
            **_tied(False),
        },
        rope=Rope(kinds={"su": "longrope", "yarn": "longrope"}),
        windows=Windows(replace(_WINDOW, default=DERIVED)),
    ),
    "olmo": Family(
        {**_OLMO, "norm": "layer", "norm_scale": "none", "norm_eps": 1e-5},
        rope=Rope(),
        expressed={"clip_qkv": (None,)},
    ),
    "olmo2": Family({**_OLMO, **_rms(1e-5), "norm_placement": "output", "qk_norm": "full"}, rope=Rope()),
    "olmo3": Family(
        {**_OLMO, **_rms(1e-5), "norm_placement": "output", "qk_norm": "full"},
        rope=Rope(base=500_000.0, base_windowed=500_000.0),
        windows=Windows(_WINDOW, slides=_every(None, 4)),
    ),
    "olmoe": Family(
        {
            **_OLMO,
            **_rms(1e-5),
            "width": whole("hidden_size", default=2048),
            "layers": whole("num_hidden_layers", default=16),
            "heads": whole("num_attention_heads", default=16),
            "hidden": whole("intermediate_size", default=2048),
            "context": whole("max_position_embeddings", default=4096),
            "qk_norm": "full",
        },
        rope=Rope(),
        experts={
            "count": whole("num_experts", "num_local_experts", default=64),
            "per_token": whole("num_experts_per_tok", default=8),
            "hidden": "hidden",
            **_NORM_TOPK,
        },
        finish=_heads_fill_width,
        expressed={"clip_qkv": (None,)},
    ),
    "cohere": Family(
        {
            **_COHERE,
            "qk_norm": flag("use_qk_norm", default=False, null="none", means={True: "per_head_weights", False: "none"}),
        },
        rope=Rope("adjacent", base=500_000.0),
    ),
    "cohere2": Family(
        _COHERE,
        rope=Rope("adjacent"),
        windows=Windows(_WINDOW, slides=_every("sliding_window_pattern", 4)),
        finish=_cohere2,
    ),
    "starcoder2": Family(
        {
            **_sizes(width=3072, layers=30, heads=24, hidden=12288, vocab=49152, context=4096),
            "kv_heads": whole("num_key_value_heads", default=2),
            **_layer_norm("norm_epsilon"),
            **_plain("hidden_act", default="gelu_tanh", bias=flag("use_bias", default=True)),
            "attention_bias": biases("use_bias", default=True),
            **_tied(True),
        },
        rope=Rope(),
        windows=Windows(replace(_WINDOW, default=DERIVED)),
    ),
    "smollm3": Family(
        {
            **_LLAMA,
            **_sizes(width=2048, layers=36, heads=16, hidden=11008, vocab=128256, context=32768),
            "kv_heads": whole("num_key_value_heads", default=4, null=DERIVED),
            **_tied(True),
        },
        rope=Rope(base=2_000_000.0),
        windows=Windows(
            replace(_WINDOW, default=DERIVED),
            _SWITCH,
            _slides_where_still,
        ),
        finish=_smollm3,
    ),
    "deepseek_v2": Family(
        {
            **_LLAMA,
            "vocab": whole("vocab_size", default=102400),
            "head_width": DERIVED,
        },
        rope=Rope("adjacent", part_keys=()),
        experts={
            "count": whole("n_routed_experts", "num_experts", default=64),
            "per_token": whole("num_experts_per_tok"),
            "hidden": whole("moe_intermediate_size", default=1407),
            "shared": whole("n_shared_experts", default=2, least=0),
            "normalised": False,
            "routed_scale": number("routed_scaling_factor", default=1.0),
            "groups": _if_group_limited("groups", "n_group"),
            "groups_per_token": _if_group_limited("groups_per_token", "topk_group"),
        },
        dense_layer=_dense_first(0),
        latent=_DEEPSEEK_LATENT,
        finish=_deepseek,
        only={"attention_bias": (False,), "mlp_bias": (False,)},
        expressed={"topk_method": ("greedy", "group_limited_greedy"), "norm_topk_prob": (False,)},
    ),
    "deepseek_v3": Family(
        {
            **_sizes(width=7168, layers=61, heads=128, hidden=18432, vocab=129280, context=4096),
            "kv_heads": whole("num_key_value_heads", default=128, null=DERIVED),
            "head_width": DERIVED,
            **_rms(),
            **_gated(),
            **_tied(False),
        },
        rope=Rope("adjacent", part_keys=()),
        experts={
            "count": whole("n_routed_experts", "num_local_experts", default=256),
            "per_token": whole("num_experts_per_tok", default=8),
            "hidden": whole("moe_intermediate_size", default=2048),
            "shared": whole("n_shared_experts", default=1, least=0),
            "selection_bias": True,
            "scores": "sigmoid",
            "normalised": flag("norm_topk_prob", default=True),
            "routed_scale": number("routed_scaling_factor", default=2.5),
            "groups": whole("n_group", default=8),
            "groups_per_token": whole("topk_group", default=4),
            "group_best": 2,
        },
        dense_layer=_dense_first(3),
        latent=_DEEPSEEK_LATENT,
        finish=_deepseek,
        only={"attention_bias": (False,)},
        expressed={"rope_interleave": (True,)},
    ),
    "gpt_oss": Family(
        {
            **_sizes(width=2880, layers=36, heads=64, hidden=2880, vocab=201088, context=131072),
            "kv_heads": whole("num_key_value_heads", default=8, null=DERIVED),
            "head_width": whole("head_dim", default=64, null=DERIVED),
            **_rms(1e-5),
            **_gated(),
            "attention_bias": biases("attention_bias", default=True),
            "sinks": True,
            **_tied(False),
        },
        rope=Rope(
            base=150_000.0,
            scaling={
                "rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
                "original_max_position_embeddings": 4096,
            },
        ),
        windows=Windows(replace(_WINDOW, default=128), slides=_every(None, 2)),
        experts={
            "count": whole("num_local_experts", "num_experts", default=128),
            "per_token": whole("num_experts_per_tok", default=4),
            "hidden": "hidden",
            "router_bias": True,
            "bias": True,
        },
        beyond=("the gate of its experts is clamped (swiglu_limit) and its other half has 1 added",),
    ),
}  # fmt: skip

# What every unknown family is taken to be, if its file states the sizes and the tie.
GENERIC = Family(
    {
        "width": whole("hidden_size", "n_embd", "d_model"),
        "layers": whole("num_hidden_layers", "n_layer", "n_layers"),
        "heads": whole("num_attention_heads", "n_head", "n_heads"),
        "kv_heads": whole("num_key_value_heads", "num_kv_heads", "n_head_kv", default=DERIVED),
        "head_width": whole("head_dim", default=DERIVED),
        "hidden": whole("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"),
        "vocab": whole("vocab_size"),
        "context": whole("max_position_embeddings", "n_positions", "max_seq_len"),
        "norm": "rms",
        "norm_eps": number("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_eps", default=1e-6),
        "activation": activation("hidden_act", "hidden_activation", "activation_function", default="silu"),
        "attention_bias": biases("attention_bias", default=False),
        "hidden_bias": flag("mlp_bias", default=False),
        **_tied(REQUIRED),  # type: ignore[arg-type]
    },
    rope=Rope(),
    windows=Windows(replace(_WINDOW, default=DERIVED), replace(_SWITCH, default=True)),
)
# Names that other programs give to what a config.json names differently: litgpt, Megatron-LM, Llama's params.json.
_ELSEWHERE = {
    "kv_heads": ("n_kv_heads", "kv_heads", "n_query_groups", "num_query_groups"),
    "head_width": ("head_size", "d_head", "dim_head", "kv_channels"),
    "context": ("max_sequence_length", "block_size"),
}

# The keys that any class or another program has for a size, and the field that each of them states.
OTHER_NAMES = {
    name: field
    for family in (*FAMILIES.values(), GENERIC)
    for field, spec in family.fields.items()
    if isinstance(spec, Key) and spec.kind == "whole"
    for name in spec.names
} | {name: field for field, names in _ELSEWHERE.items() for name in names}

# Keys of parts that a guess would miscount.
GENERIC_REFUSES = (
    "num_experts", "num_local_experts", "n_routed_experts", "moe_intermediate_size", "kv_lora_rank", "q_lora_rank",
    "ssm_cfg", "state_size", "mamba_d_state", "linear_num_key_heads", "is_encoder_decoder", "cross_attention_layers",
)  # fmt: skip
