"""What released checkpoints call their tensors, family by family.

``CHECKPOINTS`` holds one table for each ``model_type`` of config.json: on the left a module as the file names it, on
the right the module of `decoder.model.Decoder` that it is. Where one tensor of the file holds several of ours, or
holds it another way round, the right side is a `Stored`. Weights and biases follow their modules. A table may name
parts that some models of the family lack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from decoder.config import Config


@dataclass(frozen=True)
class Stored:
    """Which modules of ours one module of the file holds, and how.

    ``transposed``: (in, out) as in GPT-2, ours are (out, in). ``grouped``: query, key and value rows lie together
    key/value head by key/value head, (K, H / K + 2, h, ...); else the parts lie one after another. ``unused_rows``:
    rows before the first position; ours go to the end of the table.
    """

    parts: tuple[str, ...]
    transposed: bool = False
    grouped: bool = False
    unused_rows: int = 0

    def shape(self, parts: Sequence[Tensor]) -> tuple[int, ...]:
        """The shape of the file's tensor, from the parameters that it holds."""
        whole = (sum(part.shape[0] for part in parts), *parts[0].shape[1:])
        return whole[::-1] if self.transposed else whole

    def split(self, tensor: Tensor, parts: Sequence[Tensor], config: Config) -> Iterator[Tensor]:
        """The file's tensor as one tensor for each parameter that it holds."""
        if self.transposed and tensor.ndim == 2:
            tensor = tensor.T
        if self.unused_rows:
            tensor = tensor.roll(-self.unused_rows, 0)
        if not self.grouped:
            yield from tensor.split([part.shape[0] for part in parts])
            return
        per_group = config.heads // config.kv_heads
        heads = tensor.unflatten(0, (config.kv_heads, per_group + 2, config.head_width))  # (K, H / K + 2, h, ...)
        yield heads[:, :per_group].flatten(0, 2)
        yield heads[:, per_group].flatten(0, 1)
        yield heads[:, per_group + 1].flatten(0, 1)


@dataclass(frozen=True)
class Checkpoint:
    """The names of one family. ``once`` stand at the top, ``layer`` below ``layers`` and the number of the layer.

    ``stem`` leads every name but the head's; some released files leave it away throughout. ``head`` has no stem.
    A name of ``layer`` with an asterisk stands once for each expert, the number of which replaces it.
    ``buffers`` are constants that old files hold in each layer, and that nobody needs to read.
    """

    stem: str
    layers: str
    once: Mapping[str, str | Stored]
    layer: Mapping[str, str | Stored]
    head: str = "lm_head"
    buffers: tuple[str, ...] = ()

    def modules(self, config: Config, stem: str) -> Iterator[tuple[str, Stored]]:
        """Every module that a file of ``config`` may hold, with what it is to us."""
        yield from ((stem + theirs, _stored(ours)) for theirs, ours in self.once.items())
        yield self.head, Stored(("head",))
        for number in range(config.layers):
            for theirs, ours in self.layer.items():
                stored = _stored(ours)
                parts = tuple(f"blocks.{number}.{part}" for part in stored.parts)
                name = f"{stem}{self.layers}.{number}.{theirs}"
                for expert in _experts(config, theirs):
                    numbered = tuple(part.replace("*", expert) for part in parts)
                    yield name.replace("*", expert), replace(stored, parts=numbered)

    def constants(self, config: Config, stem: str) -> set[str]:
        """The names of the buffers of every layer."""
        return {f"{stem}{self.layers}.{number}.{name}" for number in range(config.layers) for name in self.buffers}


def _experts(config: Config, name: str) -> Iterator[str]:
    """The numbers that an asterisk in ``name`` stands for; one empty one for a name without."""
    if "*" not in name:
        return iter([""])
    return map(str, range(config.experts.count if config.experts else 0))


def _stored(ours: str | Stored) -> Stored:
    return Stored((ours,)) if isinstance(ours, str) else ours


QKV = ("attention.q", "attention.k", "attention.v")


def _transposed(*parts: str) -> Stored:
    return Stored(parts, transposed=True)


# --- Llama, and those that kept its names.

_SELF_ATTENTION = {f"self_attn.{name}_proj": f"attention.{name}" for name in "qkvo"}
_QK_NORM = {f"self_attn.{name}_norm": f"attention.{name}_norm" for name in "qk"}
_GATED = {f"mlp.{name}_proj": f"feed_forward.{name}" for name in ("gate", "up", "down")}
_PRE_NORMS = {"input_layernorm": "attention_norm", "post_attention_layernorm": "feed_forward_norm"}
_OUT_NORMS = {
    "post_attention_layernorm": "attention_out_norm",
    "post_feedforward_layernorm": "feed_forward_out_norm",
}
_FOUR_NORMS = {
    "input_layernorm": "attention_norm",
    "pre_feedforward_layernorm": "feed_forward_norm",
    **_OUT_NORMS,
}

LLAMA = Checkpoint(
    stem="model.",
    layers="layers",
    once={"embed_tokens": "embedding", "norm": "final_norm"},
    layer={**_SELF_ATTENTION, **_GATED, **_PRE_NORMS},
    buffers=("self_attn.rotary_emb.inv_freq",),
)
QWEN3 = replace(LLAMA, layer={**LLAMA.layer, **_QK_NORM})
GEMMA2 = replace(LLAMA, layer={**_SELF_ATTENTION, **_GATED, **_FOUR_NORMS})
GEMMA3 = replace(LLAMA, layer={**GEMMA2.layer, **_QK_NORM})
OLMO = replace(LLAMA, once={"embed_tokens": "embedding"}, layer={**_SELF_ATTENTION, **_GATED})
OLMO2 = replace(LLAMA, layer={**_SELF_ATTENTION, **_QK_NORM, **_GATED, **_OUT_NORMS})
COHERE = replace(LLAMA, layer={**_SELF_ATTENTION, **_QK_NORM, **_GATED, "input_layernorm": "attention_norm"})
PHI3 = replace(
    LLAMA,
    layer={
        "self_attn.qkv_proj": Stored(QKV),
        "self_attn.o_proj": "attention.o",
        "mlp.gate_up_proj": Stored(("feed_forward.gate", "feed_forward.up")),
        "mlp.down_proj": "feed_forward.down",
        **_PRE_NORMS,
    },
)
STARCODER2 = replace(
    LLAMA,
    layer={
        **_SELF_ATTENTION,
        "mlp.c_fc": "feed_forward.up",
        "mlp.c_proj": "feed_forward.down",
        **_PRE_NORMS,
    },
)
PHI = replace(
    LLAMA,
    once={"embed_tokens": "embedding", "final_layernorm": "final_norm"},
    layer={
        **{f"self_attn.{name}_proj": f"attention.{name}" for name in "qkv"},
        "self_attn.dense": "attention.o",
        "mlp.fc1": "feed_forward.up",
        "mlp.fc2": "feed_forward.down",
        "input_layernorm": "attention_norm",
    },
)

# --- Mixtures of experts and latent attention, with Llama's names for the rest. Layers without experts keep theirs.

_ROUTER = {"mlp.gate": "feed_forward.router.linear"}
_EXPERTS = {f"mlp.experts.*.{name}_proj": f"feed_forward.experts.*.{name}" for name in ("gate", "up", "down")}


def _shared(holder: str) -> dict[str, str]:
    return {f"mlp.{holder}.{name}_proj": f"feed_forward.shared.{name}" for name in ("gate", "up", "down")}


MIXTRAL = replace(
    LLAMA,
    layer={
        **_SELF_ATTENTION,
        **_PRE_NORMS,
        "block_sparse_moe.gate": "feed_forward.router.linear",
        "block_sparse_moe.experts.*.w1": "feed_forward.experts.*.gate",
        "block_sparse_moe.experts.*.w3": "feed_forward.experts.*.up",
        "block_sparse_moe.experts.*.w2": "feed_forward.experts.*.down",
    },
)
QWEN3_MOE = replace(LLAMA, layer={**QWEN3.layer, **_ROUTER, **_EXPERTS})
QWEN2_MOE = replace(
    LLAMA,
    layer={
        **LLAMA.layer,
        **_ROUTER,
        **_EXPERTS,
        **_shared("shared_expert"),
        "mlp.shared_expert_gate": "feed_forward.shared_gate",
    },
)
DEEPSEEK = replace(
    LLAMA,
    layer={
        "self_attn.q_a_proj": "attention.q_down",
        "self_attn.q_a_layernorm": "attention.q_norm",
        "self_attn.q_b_proj": "attention.q_up",
        "self_attn.kv_a_proj_with_mqa": "attention.kv_down",
        "self_attn.kv_a_layernorm": "attention.kv_norm",
        "self_attn.kv_b_proj": "attention.kv_up",
        "self_attn.o_proj": "attention.o",
        **_GATED,
        **_ROUTER,
        "mlp.gate.e_score_correction_bias": "feed_forward.router.selection_bias",
        **_EXPERTS,
        **_shared("shared_experts"),
        **_PRE_NORMS,
    },
)

# --- Those with names of their own.

GPT2 = Checkpoint(
    stem="transformer.",
    layers="h",
    once={"wte": "embedding", "wpe": "position_embedding", "ln_f": "final_norm"},
    layer={
        "ln_1": "attention_norm",
        "attn.c_attn": _transposed(*QKV),
        "attn.c_proj": _transposed("attention.o"),
        "ln_2": "feed_forward_norm",
        "mlp.c_fc": _transposed("feed_forward.up"),
        "mlp.c_proj": _transposed("feed_forward.down"),
    },
    buffers=("attn.bias", "attn.masked_bias"),
)
GPTJ = Checkpoint(
    stem="transformer.",
    layers="h",
    once={"wte": "embedding", "ln_f": "final_norm"},
    layer={
        "ln_1": "attention_norm",
        **{f"attn.{name}_proj": f"attention.{name}" for name in "qkv"},
        "attn.out_proj": "attention.o",
        "mlp.fc_in": "feed_forward.up",
        "mlp.fc_out": "feed_forward.down",
    },
    buffers=("attn.bias", "attn.masked_bias"),
)
_FOUR_H = {"mlp.dense_h_to_4h": "feed_forward.up", "mlp.dense_4h_to_h": "feed_forward.down"}
GPT_NEOX = Checkpoint(
    stem="gpt_neox.",
    layers="layers",
    once={"embed_in": "embedding", "final_layer_norm": "final_norm"},
    layer={
        "attention.query_key_value": Stored(QKV, grouped=True),
        "attention.dense": "attention.o",
        **_FOUR_H,
        **_PRE_NORMS,
    },
    head="embed_out",
    buffers=("attention.bias", "attention.masked_bias", "attention.rotary_emb.inv_freq"),
)
BLOOM = Checkpoint(
    stem="transformer.",
    layers="h",
    once={"word_embeddings": "embedding", "word_embeddings_layernorm": "embedding_norm", "ln_f": "final_norm"},
    layer={
        "self_attention.query_key_value": Stored(QKV, grouped=True),
        "self_attention.dense": "attention.o",
        **_FOUR_H,
        **_PRE_NORMS,
    },
)
MPT = Checkpoint(
    stem="transformer.",
    layers="blocks",
    once={"wte": "embedding", "norm_f": "final_norm"},
    layer={
        "norm_1": "attention_norm",
        "attn.Wqkv": Stored(QKV),
        "attn.out_proj": "attention.o",
        "norm_2": "feed_forward_norm",
        "ffn.up_proj": "feed_forward.up",
        "ffn.down_proj": "feed_forward.down",
    },
)


def falcon(config: Config) -> Checkpoint:
    """Falcon renamed its norms where a parallel block has two of them."""
    two = config.block == "parallel" and config.parallel_norms == 2
    norms = {"ln_attn": "attention_norm", "ln_mlp": "feed_forward_norm"} if two else _PRE_NORMS
    once = {"word_embeddings": "embedding", "ln_f": "final_norm"}
    shared = {name: ours for name, ours in BLOOM.layer.items() if name not in _PRE_NORMS}
    return replace(BLOOM, once=once, layer={**shared, **norms})


def deepseek(config: Config) -> Checkpoint:
    """DeepSeek gives the query projection another name where it is direct, as in V2-Lite."""
    if config.latent is not None and config.latent.query_rank is None:
        direct = {
            "self_attn.q_proj" if ours == "attention.q_up" else name: ours for name, ours in DEEPSEEK.layer.items()
        }
        return replace(DEEPSEEK, layer=direct)
    return DEEPSEEK


def opt(config: Config) -> Checkpoint:
    """OPT uses one name for a norm before a branch and for one after it, and starts its positions at row 2."""
    place = "norm" if config.norm_placement == "pre" else "post_norm"
    return Checkpoint(
        stem="model.decoder.",
        layers="layers",
        once={
            "embed_tokens": "embedding",
            "embed_positions": Stored(("position_embedding",), unused_rows=2),
            "project_in": "embedding_in",
            "project_out": "embedding_out",
            "final_layer_norm": "final_norm",
        },
        layer={
            **{f"self_attn.{name}_proj": f"attention.{name}" for name in "qkv"},
            "self_attn.out_proj": "attention.o",
            "self_attn_layer_norm": f"attention_{place}",
            "fc1": "feed_forward.up",
            "fc2": "feed_forward.down",
            "final_layer_norm": f"feed_forward_{place}",
        },
    )


CHECKPOINTS: dict[str, Checkpoint | Callable[[Config], Checkpoint]] = {
    "gpt2": GPT2,
    "gptj": GPTJ,
    "gpt_neox": GPT_NEOX,
    "opt": opt,
    "falcon": falcon,
    "bloom": BLOOM,
    "mpt": MPT,
    "llama": LLAMA,
    "mistral": LLAMA,
    "qwen2": LLAMA,
    "qwen3": QWEN3,
    "gemma": LLAMA,
    "gemma2": GEMMA2,
    "gemma3_text": GEMMA3,
    "phi": PHI,
    "phi3": PHI3,
    "olmo": OLMO,
    "olmo2": OLMO2,
    "olmo3": OLMO2,
    "cohere": COHERE,
    "cohere2": COHERE,
    "starcoder2": STARCODER2,
    "smollm3": LLAMA,
    "mixtral": MIXTRAL,
    "qwen2_moe": QWEN2_MOE,
    "qwen3_moe": QWEN3_MOE,
    "olmoe": QWEN3_MOE,
    "deepseek_v2": deepseek,
    "deepseek_v3": deepseek,
}
# Families that are counted but not built. One that is built moves to the table above.
AWAITED = {"gpt_oss": "experts whose gate is clamped"}
