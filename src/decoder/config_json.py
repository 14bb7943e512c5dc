"""Read a Hugging Face config.json into a Config, and say where each value comes from.

A released config states some values, leaves some to the class that reads it, and implies the rest; an absent key
means different things in different classes. ``FAMILIES`` is that knowledge as a table: one entry for each
``model_type``, checked against the configuration and model classes of transformers 5.24. A ``model_type`` that the
table lacks is read by the keys that most families share, if they are all there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from decoder.config import Config, Experts, LatentAttention, RopeScaling

Origin = Literal["stated", "class default", "derived"]

LARGEST_FILE = 1_000_000  # bytes; released files hold a few thousand
LARGEST = 100_000_000  # of any size
MOST_LAYERS = 10_000
LARGEST_NUMBER = 1e15

ACTIVATIONS = {
    "gelu": "gelu", "gelu_python": "gelu", "gelu_new": "gelu_tanh", "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu", "relu2": "relu2", "silu": "silu", "swish": "silu",
    "linear": "identity",
}  # fmt: skip


class ConfigError(ValueError):
    """A config.json that cannot be read: one line with the file, the key, its value and the rule."""


@dataclass(frozen=True)
class Value:
    """One value as read: what it is, how we know, and the key that states or would state it."""

    value: Any
    origin: Origin
    key: str | None = None


@dataclass(frozen=True)
class Reading:
    """A config.json understood. ``values`` holds every field of ``config`` that was read, by name.

    ``notes`` says what a reader should know; ``unsupported`` what the file asks for that a Config cannot express:
    it changes no count, but weights loaded without it would compute something else.
    """

    config: Config
    model_type: str | None
    source: str
    values: Mapping[str, Value]
    notes: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()


# --- The words of the table.

REQUIRED = object()  # absent: refused
DERIVED = None  # absent: follows from other values


@dataclass(frozen=True)
class Key:
    """Where a value stands in the file, and what its absence and its null mean."""

    names: tuple[str, ...]
    default: Any
    kind: Literal["whole", "number", "flag", "activation"]
    null: Any = REQUIRED  # what null means; REQUIRED: null is refused
    least: float = 1
    means: Mapping[Any, Any] | None = None

    @property
    def name(self) -> str:
        return self.names[0]


def whole(*names: str, default: Any = REQUIRED, null: Any = REQUIRED, least: int = 1) -> Key:
    return Key(names, default, "whole", DERIVED if default is DERIVED else null, least)


def number(*names: str, default: Any = REQUIRED, null: Any = REQUIRED) -> Key:
    return Key(names, default, "number", DERIVED if default is DERIVED else null)


def flag(*names: str, default: Any = REQUIRED, null: Any = REQUIRED, means: Mapping[bool, Any] | None = None) -> Key:
    return Key(names, default, "flag", null, means=means)


def activation(*names: str, default: Any = REQUIRED) -> Key:
    return Key(names, default, "activation")


def biases(*names: str, default: Any, letters: str = "qkvo") -> Key:
    return flag(*names, default=default, means={True: letters, False: ""})


@dataclass(frozen=True)
class Rope:
    """Rotary positions of a family: the pairing of its code, and the class defaults of base and rotated part."""

    pairing: Literal["adjacent", "half"] = "half"
    base: float = 10_000.0
    base_keys: tuple[str, ...] = ("rope_theta",)
    part: float = 1.0
    part_keys: tuple[str, ...] = ("partial_rotary_factor",)
    base_windowed: float | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)  # names that mean another kind here
    scaling: Mapping[str, Any] | None = None  # class default of rope_parameters


@dataclass(frozen=True)
class Windows:
    """Sliding windows of a family: the width's key, the switch, and which layers slide if ``layer_types`` is absent."""

    width: Key
    switch: Key | None = None
    slides: Callable[[int, _File], bool] = lambda layer, file: True


@dataclass(frozen=True)
class Family:
    """How one ``model_type`` is read. ``fields`` gives each Config field a Key, or the value its class fixes."""

    fields: Mapping[str, Any]
    rope: Rope | None = None
    windows: Windows | None = None
    experts: Mapping[str, Any] | None = None
    dense_layer: Callable[[int, _File], bool] = lambda layer, file: False
    latent: Mapping[str, Key] | None = None
    finish: Callable[[_File, dict[str, Any]], None] | None = None
    only: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # key: the values that counts hold for
    expressed: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # key: the values that a Config expresses
    beyond: tuple[str, ...] = ()  # what its class always does and a Config does not express


# --- One file being read.


class _File:
    """The keys of one file, the origin of what was taken from them, and errors that name both."""

    def __init__(self, data: Mapping[str, Any], source: str) -> None:
        self.data, self.source = data, source
        self.values: dict[str, Value] = {}
        self.notes: list[str] = []
        self.unsupported: list[str] = []

    def error(self, key: str, value: Any, rule: str) -> ConfigError:
        shown = "absent" if value is REQUIRED else f"got {_short(value)}"
        return ConfigError(f"{self.source}: {key}: {shown}; {rule}")

    def get(self, name: str) -> Any:
        """The raw value of a key, REQUIRED where it is absent. A dot leads into a nested object."""
        outer, _, inner = name.partition(".")
        value = self.data.get(outer, REQUIRED)
        if not inner or value is REQUIRED or value is None:
            return value if not inner else REQUIRED
        if not isinstance(value, dict):
            raise self.error(outer, value, "must be an object")
        return value.get(inner, REQUIRED)

    def take(self, field_name: str, key: Key) -> Any:
        """The value of ``key``, checked, its origin recorded under ``field_name``; DERIVED where it must follow."""
        present = [(name, self.get(name)) for name in key.names if self.get(name) is not REQUIRED]
        if not present:
            if key.default is REQUIRED:
                raise self.error(key.name, REQUIRED, f"{field_name} has no default here, the file must state it")
            if key.default is not DERIVED:
                value = key.means[key.default] if key.means else key.default
                self.values[field_name] = Value(value, "class default", key.name)
                return value
            return DERIVED
        name, value = present[0]
        for other, stated in present[1:]:
            if stated != value:
                raise self.error(other, stated, f"must equal {name}, which is {_short(value)}")
        if value is None:
            if key.null is REQUIRED:
                raise self.error(name, None, f"must be {_KIND[key.kind]}")
            if key.null is not DERIVED:
                self.values[field_name] = Value(key.null, "class default", name)
            return key.null
        value = self.check(name, value, key)
        self.values[field_name] = Value(value, "stated", name)
        return value

    def check(self, name: str, value: Any, key: Key) -> Any:
        if key.kind == "whole":
            self.whole(name, value, int(key.least))
        elif key.kind == "number":
            self.number(name, value)
        elif key.kind == "flag" and not isinstance(value, bool):
            raise self.error(name, value, "must be true or false")
        elif key.kind == "activation":
            if not isinstance(value, str) or value not in ACTIVATIONS:
                raise self.error(name, value, f"must be one of {', '.join(ACTIVATIONS)}")
            return ACTIVATIONS[value]
        return key.means[value] if key.means else value

    def whole(self, name: str, value: Any, least: int = 1, most: int = LARGEST) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error(name, value, "must be a whole number")
        if not least <= value <= most:
            raise self.error(name, value, f"must be from {least} to {most:,}")
        return value

    def number(self, name: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(name, value, "must be a number")
        if not 0 < value <= LARGEST_NUMBER:
            raise self.error(name, value, f"must be above 0 and at most {LARGEST_NUMBER:g}")
        return value

    def named(self, field_name: str) -> str:
        """A value already read, with its key: for the other side of a contradiction."""
        value = self.values[field_name]
        origin = "" if value.origin == "stated" else f" ({value.origin})"
        return f"{value.key} {value.value}{origin}"

    def derive(self, field_name: str, value: Any, key: str | None = None) -> Any:
        self.values[field_name] = Value(value, "derived", key)
        return value


_KIND = {"whole": "a whole number", "number": "a number", "flag": "true or false", "activation": "an activation's name"}


def _short(value: Any) -> str:
    text = json.dumps(value, default=repr) if not isinstance(value, float) else repr(value)
    return text if len(text) <= 48 else text[:45] + "..."


# --- The table.

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


def _every(cycle_key: str | None, cycle: int) -> Callable[[int, _File], bool]:
    """All layers slide but each ``cycle``-th; ``cycle_key`` may state another cycle."""

    def slides(layer: int, file: _File) -> bool:
        stated = file.get(cycle_key) if cycle_key else REQUIRED
        size = cycle if stated is REQUIRED else file.whole(cycle_key or "", stated)
        return (layer + 1) % size != 0

    return slides


def _from_max_window_layers(layer: int, file: _File) -> bool:
    stated = file.get("max_window_layers")
    return layer >= (28 if stated is REQUIRED else file.whole("max_window_layers", stated, 0))


def _odd_below_max_window_layers(layer: int, file: _File) -> bool:
    return layer % 2 == 0 and not _from_max_window_layers(layer, file)


def _dense_by_step(layer: int, file: _File) -> bool:
    stated = file.get("mlp_only_layers")
    named = [] if stated is REQUIRED or stated is None else stated
    if not isinstance(named, list) or any(isinstance(i, bool) or not isinstance(i, int) for i in named):
        raise file.error("mlp_only_layers", stated, "must be a list of layer numbers")
    step = file.get("decoder_sparse_step")
    step = 1 if step is REQUIRED else file.whole("decoder_sparse_step", step, 0)
    return layer in named or step == 0 or (layer + 1) % step != 0


def _dense_first(default: int) -> Callable[[int, _File], bool]:
    def dense(layer: int, file: _File) -> bool:
        stated = file.get("first_k_dense_replace")
        return layer < (default if stated is REQUIRED else file.whole("first_k_dense_replace", stated, 0))

    return dense


def _four_widths(file: _File, read: dict[str, Any]) -> None:
    if read["hidden"] is DERIVED:
        read["hidden"] = file.derive("hidden", 4 * read["width"])


def _gptj(file: _File, read: dict[str, Any]) -> None:
    _four_widths(file, read)
    rotated = file.take("rotary_width", whole("rotary_dim", default=64, null=DERIVED))
    read["rotary_width"] = read["width"] // read["heads"] if rotated is DERIVED else rotated


def _neox(file: _File, read: dict[str, Any]) -> None:
    read["parallel_norms"] = 2 if read["block"] == "parallel" else 1


def _opt(file: _File, read: dict[str, Any]) -> None:
    read["position_rows"] = file.derive("position_rows", read["context"] + 2)  # the class starts at row 2
    removed = file.take("final_norm", flag("_remove_final_layer_norm", default=False))
    read["final_norm"] = file.derive("final_norm", read["norm_placement"] == "pre" and not removed)
    if read["embedding_width"] == read["width"]:
        read["embedding_width"] = None


def _falcon(file: _File, read: dict[str, Any]) -> None:
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


def _bloom(file: _File, read: dict[str, Any]) -> None:
    read["hidden"] = file.derive("hidden", 4 * read["width"])
    # The class has no such key: ALiBi reaches any length. Old files say how long training sequences were.
    read["context"] = file.take("context", whole("seq_length", default=2048, null=2048))


def _mpt(file: _File, read: dict[str, Any]) -> None:
    ratio = file.take("expansion_ratio", whole("expansion_ratio", default=4))
    if ratio != 4:
        raise file.error("expansion_ratio", ratio, "must be 4, the only ratio the released class builds")
    read["hidden"] = file.derive("hidden", 4 * read["width"], "expansion_ratio")


def _scale_by_width(file: _File, read: dict[str, Any]) -> None:
    read["embedding_scale"] = file.derive("embedding_scale", math.sqrt(read["width"]))


def _gemma(file: _File, read: dict[str, Any]) -> None:
    _scale_by_width(file, read)
    if read["activation"] == "gelu":  # what the released files say, and never what was meant
        read["activation"] = file.derive("activation", "gelu_tanh", "hidden_act")


def _gemma_scaled(file: _File, read: dict[str, Any]) -> None:
    _scale_by_width(file, read)
    scalar = file.take("attention_scale", number("query_pre_attn_scalar", default=256))
    read["attention_scale"] = file.derive("attention_scale", scalar**-0.5, "query_pre_attn_scalar")


def _still_layers(file: _File, layers: int) -> tuple[int, ...]:
    """Layers without rotary positions. ``no_rope_layers`` holds one number a layer, 1 where the layer does rotate."""
    stated = file.get("no_rope_layers")
    if stated is REQUIRED or stated is None:
        step = file.get("no_rope_layer_interval")
        step = 4 if step is REQUIRED else file.whole("no_rope_layer_interval", step)
        return tuple(layer for layer in range(layers) if (layer + 1) % step == 0)
    if not isinstance(stated, list) or len(stated) != layers or any(rotates not in (0, 1) for rotates in stated):
        raise file.error("no_rope_layers", stated, f"must be {layers} numbers, 1 where the layer rotates")
    return tuple(layer for layer, rotates in enumerate(stated) if not rotates)


def _smollm3(file: _File, read: dict[str, Any]) -> None:
    still = _still_layers(file, read["layers"])
    read["no_rope_layers"] = file.derive("no_rope_layers", still, "no_rope_layers")


def _cohere2(file: _File, read: dict[str, Any]) -> None:
    """Full layers carry no positions."""
    still = tuple(layer for layer in range(read["layers"]) if layer not in read["windowed_layers"])
    read["no_rope_layers"] = file.derive("no_rope_layers", still, "layer_types")


def _heads_fill_width(file: _File, read: dict[str, Any]) -> None:
    if read["heads"] * read["head_width"] != read["width"]:
        raise file.error("head_dim", read["head_width"], f"must be {file.named('width')} / {file.named('heads')}")


def _deepseek(file: _File, read: dict[str, Any]) -> None:
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
            lambda layer, file: layer in _still_layers(file, file.values["layers"].value),
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
        },
        dense_layer=_dense_first(0),
        latent=_DEEPSEEK_LATENT,
        finish=_deepseek,
        only={"attention_bias": (False,), "mlp_bias": (False,)},
        expressed={"n_group": (None, 1), "topk_method": ("greedy",), "norm_topk_prob": (False,)},
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
        },
        dense_layer=_dense_first(3),
        latent=_DEEPSEEK_LATENT,
        finish=_deepseek,
        only={"attention_bias": (False,)},
        expressed={"rope_interleave": (True,)},
        beyond=("experts are chosen within groups, by sigmoid scores, normalised and scaled (routed_scaling_factor)",),
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
# Keys of parts that a guess would miscount.
_GENERIC_REFUSES = (
    "num_experts", "num_local_experts", "n_routed_experts", "moe_intermediate_size", "kv_lora_rank", "q_lora_rank",
    "ssm_cfg", "state_size", "mamba_d_state", "linear_num_key_heads", "is_encoder_decoder", "cross_attention_layers",
)  # fmt: skip


# --- Reading.


def read_config(source: Mapping[str, Any] | str | Path, name: str | None = None) -> Reading:
    """Read a config.json, given as its path or as the object it holds.

    Raises ConfigError, one line that names the file, the key, its value and the rule, for anything that is no
    config of a decoder, or that no count could be trusted for. ``name`` replaces the file's name in messages.
    """
    if isinstance(source, str | Path):
        name = name or str(source)
        data = _load(Path(source), name)
    else:
        name, data = name or "config", source
    if not isinstance(data, Mapping):
        raise ConfigError(f"{name}: must hold one JSON object, got a {type(data).__name__}")
    return _read(_File(_text_part(data, name), name))


def _load(path: Path, name: str) -> Any:
    def refuse(constant: str) -> None:
        raise ConfigError(f"{name}: {constant} is not JSON; every number must be finite")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        known: dict[str, Any] = {}
        for key, value in pairs:
            if key in known and known[key] != value:
                raise ConfigError(f"{name}: {key}: stated twice, {_short(known[key])} and {_short(value)}")
            known[key] = value
        return known

    try:
        size = path.stat().st_size
        if size > LARGEST_FILE:
            raise ConfigError(f"{name}: {size:,} bytes; a config.json has at most {LARGEST_FILE:,}")
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse, object_pairs_hook=once)
    except OSError as error:
        raise ConfigError(f"{name}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{name}: not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise ConfigError(f"{name}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise ConfigError(f"{name}: objects nested too deeply") from None
    except ValueError as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"{name}: a number too long to read") from None


def _text_part(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The language model's own keys: the inner object of a multimodal config, with the outer tie where it has none."""
    inner = data.get("text_config")
    if inner is None:
        return data
    if not isinstance(inner, dict):
        raise ConfigError(f"{name}: text_config: got {_short(inner)}; must be an object")
    outer_tie = {"tie_word_embeddings": data["tie_word_embeddings"]} if "tie_word_embeddings" in data else {}
    outer_type = {"model_type": f"{data['model_type']}_text"} if isinstance(data.get("model_type"), str) else {}
    return {**outer_tie, **outer_type, **inner}


def _read(file: _File) -> Reading:
    model_type = file.get("model_type")
    if model_type is not REQUIRED and not isinstance(model_type, str):
        raise file.error("model_type", model_type, "must be a string")
    family = FAMILIES.get(model_type)
    if family is None:
        shown = "absent" if model_type is REQUIRED else _short(model_type)
        for key in _GENERIC_REFUSES:
            if file.get(key) not in (REQUIRED, None, False, 0):
                raise file.error(key, file.get(key), f"cannot be counted for an unknown model_type ({shown})")
        file.notes.append(
            f"model_type {shown} is not known: read by its keys alone, as a pre-norm decoder with RMS norms and rotary "
            "positions; biases, QK-norm and other parts that its class adds without a key are not counted"
        )
        family = GENERIC
    for key, allowed in family.only.items():
        stated = file.get(key)
        if stated is not REQUIRED and stated not in allowed:
            rule = f"must be {' or '.join(map(_short, allowed))}, nothing else is counted for {model_type}"
            raise file.error(key, stated, rule)
    for key, allowed in family.expressed.items():
        stated = file.get(key)
        if stated is not REQUIRED and stated not in allowed:
            file.unsupported.append(f"{key} is {_short(stated)}, which a Config does not express")
    file.unsupported.extend(family.beyond)
    read = {name: file.take(name, spec) if isinstance(spec, Key) else spec for name, spec in family.fields.items()}
    if family is GENERIC:
        read["gated"] = file.derive("gated", read["activation"] == "silu", "hidden_act")
    _heads(file, family, read)
    if family.latent:
        latent = {name: file.take(f"latent.{name}", key) for name, key in family.latent.items()}
        read["latent"] = LatentAttention(**latent)
    _windows(file, family.windows, read)
    _rotary(file, family.rope, read)
    if family.finish:
        family.finish(file, read)
    _experts(file, family, read)
    try:
        config = Config(**{name: value for name, value in read.items() if value is not DERIVED})
    except ValueError as error:
        raise ConfigError(f"{file.source}: {_with_key(str(error), file)}") from None
    return Reading(
        config,
        None if model_type is REQUIRED else model_type,
        file.source,
        dict(file.values),
        tuple(file.notes),
        tuple(file.unsupported),
    )


def _with_key(message: str, file: _File) -> str:
    """A Config's own message, led by the key that its first word was read from."""
    value = file.values.get(message.split(" ", 1)[0])
    return f"{value.key}: {message}" if value and value.key else message


def _heads(file: _File, family: Family, read: dict[str, Any]) -> None:
    width, heads = read["width"], read["heads"]
    if read["layers"] > MOST_LAYERS:
        raise file.error(file.values["layers"].key, read["layers"], f"must be at most {MOST_LAYERS:,}")
    if read.get("kv_heads") is DERIVED:
        read["kv_heads"] = file.derive("kv_heads", heads)
    if heads % read["kv_heads"]:
        key = file.values["kv_heads"].key or file.values["heads"].key
        raise file.error(str(key), read["kv_heads"], f"must divide {file.named('heads')}")
    if family.latent is None and read.get("head_width") is DERIVED:
        if width % heads:
            rule = f"must divide {file.named('width')} where no head_dim is stated"
            raise file.error(str(file.values["heads"].key), heads, rule)
        read["head_width"] = file.derive("head_width", width // heads, "head_dim")


def _windows(file: _File, windows: Windows | None, read: dict[str, Any]) -> None:
    layers, types = read["layers"], file.get("layer_types")
    if types is REQUIRED or types is None:
        sliding = None
    else:
        known = ("full_attention", "sliding_attention")
        if not isinstance(types, list) or any(kind not in known for kind in types):
            raise file.error("layer_types", types, f"must be a list of {' and '.join(known)}")
        if len(types) != layers:
            raise file.error("layer_types", types, f"must have one entry a layer, {file.named('layers')}")
        sliding = tuple(layer for layer, kind in enumerate(types) if kind == "sliding_attention")
    window = None
    if windows is not None:
        window = file.take("window", windows.width)
        if windows.switch is not None and not file.take("use_sliding_window", windows.switch):
            if file.values.pop("window", None) and window:
                file.notes.append(
                    f"sliding_window is {window}, but use_sliding_window is false: every layer sees all keys"
                )
            window = None
    if sliding and window is None:
        raise file.error("sliding_window", None, f"must be a whole number, {len(sliding)} of layer_types slide")
    if window is None or windows is None:
        read["windowed_layers"] = ()
        return
    if sliding is None:
        sliding = tuple(layer for layer in range(layers) if windows.slides(layer, file))
        file.derive("windowed_layers", sliding)
    else:
        file.values["windowed_layers"] = Value(sliding, "stated", "layer_types")
    read["windowed_layers"] = sliding
    read["window"] = window if sliding else None


def _rotary(file: _File, rope: Rope | None, read: dict[str, Any]) -> None:
    if rope is None:
        return
    read.setdefault("positions", "rotary")
    read["rope_pairing"] = rope.pairing
    holder, every = _rope_parameters(file, rope)
    nested = {
        kind: every[kind] for kind in ("full_attention", "sliding_attention") if isinstance(every.get(kind), dict)
    }
    full = nested.get("full_attention", {} if nested else every)
    read["rope_base"] = _rope_number(file, "rope_base", full, "rope_theta", rope.base_keys, rope.base, holder)
    if rope.base_windowed is not None or "sliding_attention" in nested:
        own = nested.get("sliding_attention", {})
        default = rope.base_windowed or read["rope_base"]
        keys = ("rope_local_base_freq",)
        read["rope_base_windowed"] = _rope_number(file, "rope_base_windowed", own, "rope_theta", keys, default, holder)
        if own.get("rope_type", "default") != "default":
            file.unsupported.append("rope_parameters scale the windowed layers, which a Config does not express")
    if "latent" not in read:
        part = _rope_number(
            file, "rotary_part", full, "partial_rotary_factor", rope.part_keys, rope.part, holder, most=1.0
        )
        rotated = file.derive("rotary_width", int(read["head_width"] * part))
        if rotated < 2 or rotated % 2:
            origin = f"{file.named('width')}, {file.named('heads')}, head_dim {file.values['head_width'].origin}"
            rule = f"must rotate an even number of coordinates, got {rotated} of {read['head_width']} ({origin})"
            raise file.error(file.values["rotary_part"].key or "", part, rule)
        read["rotary_width"] = rotated
    read["rope_scaling"] = _rope_scaling(file, rope, full, read, holder)


def _rope_parameters(file: _File, rope: Rope) -> tuple[str, Mapping[str, Any]]:
    """The object that describes rotary positions, under its new name or its old one."""
    for key in ("rope_scaling", "rope_parameters"):
        stated = file.get(key)
        if stated is REQUIRED or stated is None:
            continue
        if not isinstance(stated, dict):
            raise file.error(key, stated, "must be an object")
        return key, stated
    return "rope_parameters", rope.scaling or {}


def _rope_number(
    file: _File, name: str, stated: Mapping[str, Any], key: str, outer: tuple[str, ...], default: float, holder: str,
    most: float = LARGEST_NUMBER,
) -> float:  # fmt: skip
    """A number of the rotary object; else of a key of the file itself; else the class default."""
    places = [(f"{holder}.{key}", stated.get(key))] + [(other, file.get(other)) for other in outer]
    for place, value in places:
        if value is not None and value is not REQUIRED:
            file.number(place, value)
            if value > most:
                raise file.error(place, value, f"must be at most {most:g}")
            file.values[name] = Value(value, "stated", place)
            return float(value)
    file.values[name] = Value(default, "class default", key)
    return default


def _rope_scaling(
    file: _File, rope: Rope, stated: Mapping[str, Any], read: Mapping[str, Any], holder: str
) -> RopeScaling | None:
    kind = stated.get("rope_type", stated.get("type", "default"))
    if not isinstance(kind, str):
        raise file.error(f"{holder}.rope_type", kind, "must be a string")
    kind = rope.kinds.get(kind, kind)
    if kind == "default":
        return None
    if kind not in ("linear", "dynamic", "yarn", "llama3", "longrope"):
        file.unsupported.append(f"{holder}.rope_type is {_short(kind)}, which a Config does not express")
        return None

    def optional(key: str) -> float | None:
        value = stated.get(key)
        return None if value is None else float(file.number(f"{holder}.{key}", value))

    original = stated.get("original_max_position_embeddings")
    outer = file.get("original_max_position_embeddings")
    if outer is not REQUIRED and outer is not None:  # Phi-3 states it outside, and that one counts
        original = outer
    original = read["context"] if original is None else file.whole("original_max_position_embeddings", original)
    factor = optional("factor")
    if factor is None:
        if kind not in ("yarn", "longrope"):
            raise file.error(f"{holder}.factor", REQUIRED, f"rope_type {kind} needs it")
        factor = read["context"] / original
    chosen: dict[str, Any] = {"kind": kind, "factor": factor, "original_context": original}
    names = {
        "attention_factor": "attention_factor", "mscale": "mscale", "mscale_all_dim": "mscale_all_dim",
        "beta_fast": "beta_fast", "beta_slow": "beta_slow", "low_freq_factor": "low_frequency",
        "high_freq_factor": "high_frequency",
    }  # fmt: skip
    for key, name in names.items():
        if stated.get(key) not in (None, 0):
            chosen[name] = optional(key)
    if "truncate" in stated:
        chosen["truncate"] = bool(stated["truncate"])
    if kind == "longrope":
        for key, name in (("short_factor", "short_factors"), ("long_factor", "long_factors")):
            numbers = stated.get(key)
            if not isinstance(numbers, list):
                raise file.error(f"{holder}.{key}", numbers, "must be a list of numbers, one per rotated pair")
            chosen[name] = tuple(float(file.number(f"{holder}.{key}", value)) for value in numbers)
    try:
        scaling = RopeScaling(**chosen)
    except ValueError as error:
        raise ConfigError(f"{file.source}: {holder}: {error}") from None
    return file.derive("rope_scaling", scaling, holder)


def _experts(file: _File, family: Family, read: dict[str, Any]) -> None:
    if family.experts is None:
        return
    chosen: dict[str, Any] = {}
    for name, spec in family.experts.items():
        if spec == "hidden":  # the key that is a dense width elsewhere
            chosen[name] = read["hidden"]
            file.values["experts.hidden"] = file.values["hidden"]
        else:
            chosen[name] = file.take(f"experts.{name}", spec) if isinstance(spec, Key) else spec
    chosen["dense_layers"] = tuple(layer for layer in range(read["layers"]) if family.dense_layer(layer, file))
    file.derive("experts.dense_layers", chosen["dense_layers"])
    try:
        read["experts"] = Experts(**chosen)
    except ValueError as error:
        raise ConfigError(f"{file.source}: {_with_key(str(error), file)}") from None
