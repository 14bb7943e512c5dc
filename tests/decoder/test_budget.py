"""The formulas against what does not share them: built models, real caches, torch's FLOP counter, released counts."""

import json
import shutil
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction
from pathlib import Path

import pytest
import sympy
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from decoder import budget, families, formula
from decoder.budget import (
    BITS,
    TimeBound,
    activations,
    count,
    flops,
    intensity,
    kv_cache,
    paged_window,
    parameters,
    six_n,
    time_bound,
    training_memory,
    weights,
)
from decoder.cache import KVCache
from decoder.config import Config, Experts, LatentAttention
from decoder.model import Decoder
from decoder.notation import CALLERS, MEANING, specialise, values

COUNTS = json.loads((Path(__file__).parent / "data" / "released_counts.json").read_text())
NODE = shutil.which("node")


@st.composite
def configs(draw, **fixed):
    """Decoders of small, pairwise distinct sizes; the head width is not width / heads."""
    kv_heads, group = draw(st.sampled_from([(1, 5), (2, 3), (3, 2), (5, 1), (2, 1)]))
    layers = draw(st.sampled_from([1, 2, 3, 4]))
    norm = draw(st.sampled_from(["rms", "layer"]))
    scale = draw(st.sampled_from(["weight", "one_plus_weight", "none"]))
    block = draw(st.sampled_from(["serial", "parallel"]))
    window = draw(st.sampled_from([None, 7, 40]))
    chosen = {
        "vocab": draw(st.sampled_from([101, 128])),
        "width": draw(st.sampled_from([22, 34])),
        "layers": layers,
        "heads": kv_heads * group,
        "kv_heads": kv_heads,
        "head_width": draw(st.sampled_from([8, 14])),
        "hidden": draw(st.sampled_from([37, 58])),
        "context": draw(st.sampled_from([31, 64])),
        "norm": norm,
        "norm_scale": scale,
        "norm_bias": norm == "layer" and scale != "none" and draw(st.booleans()),
        "norm_placement": "pre" if block == "parallel" else draw(st.sampled_from(["pre", "post", "both", "output"])),
        "final_norm": draw(st.booleans()),
        "embedding_norm": draw(st.booleans()),
        "qk_norm": draw(st.sampled_from(["none", "head", "full", "per_head_weights"])),
        "positions": draw(st.sampled_from(["rotary", "learned", "sinusoidal", "none"])),
        "attention_bias": draw(st.sampled_from(["", "qkv", "qkvo", "o"])),
        "window": window,
        "windowed_layers": None if window is None else tuple(range(0, layers, 2)),
        "sinks": draw(st.booleans()),
        "activation": draw(st.sampled_from(["gelu", "silu"])),
        "gated": draw(st.booleans()),
        "hidden_bias": draw(st.booleans()),
        "block": block,
        "parallel_norms": draw(st.sampled_from([1, 2])),
        "tied": draw(st.booleans()),
        "embedding_width": draw(st.sampled_from([None, 19])),
        "head_bias": draw(st.booleans()),
    }
    return Config(**{**chosen, **fixed})


def part_of(name: str) -> str:
    if "norm" in name:
        return "norms"
    if name.startswith("blocks"):
        return "attention" if ".attention." in name else "feed_forward"
    return "head" if name.startswith("head") else "embedding"


@given(configs())
@settings(max_examples=60, deadline=None)
def test_parameters_equal_the_built_model_part_by_part(config):
    with torch.device("meta"):
        model = Decoder(config)
    built = dict.fromkeys(("embedding", "attention", "feed_forward", "norms", "head"), 0)
    for name, tensor in model.named_parameters():
        built[part_of(name)] += tensor.numel()
    counted = parameters(config)
    assert {name: getattr(counted, name) for name in built} == built
    assert counted.total == int(counted) == sum(built.values())
    assert counted.active == counted.total


@given(configs(), st.integers(1, 3), st.integers(1, 31))
@settings(max_examples=25, deadline=None)
def test_cache_bytes_equal_a_real_cache(config, batch, tokens):
    cache = KVCache(config)
    with torch.no_grad():
        Decoder(config).to(torch.bfloat16)(torch.zeros(batch, tokens, dtype=torch.int64), cache)
    counted = kv_cache(config, tokens, batch, "bf16")
    assert counted.layers == tuple(layer.nbytes for layer in cache.layers)
    assert counted.needed_bytes == sum(counted.layers)
    assert counted.bytes == int(counted) == counted.bytes_per_token * tokens * batch


def counted_flops(model, *inputs) -> int:
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(*inputs)
    return counter.get_total_flops()


@given(configs(attention_softcap=50.0), st.integers(1, 2), st.integers(2, 31))
@settings(max_examples=20, deadline=None)
def test_flops_equal_torch_counter_over_all_pairs(config, batch, tokens):
    # A soft cap makes attention two plain products, which the counter sees whole, masked pairs included.
    ids = torch.zeros(batch, tokens, dtype=torch.int64)
    counted = flops(config, tokens, batch, pairs="all")
    assert counted_flops(Decoder(config), ids) == int(counted) == counted.weights + counted.attention


@given(configs(attention_softcap=50.0), st.integers(1, 3), st.integers(2, 31))
@settings(max_examples=15, deadline=None)
def test_decode_intensity_equals_a_real_step(config, batch, tokens):
    model, cache = Decoder(config).to(torch.bfloat16), KVCache(config)
    with torch.no_grad():
        model(torch.zeros(batch, tokens - 1, dtype=torch.int64), cache)
    before = sum(layer.nbytes for layer in cache.layers)
    step = intensity(config, tokens, batch)
    assert counted_flops(model, torch.zeros(batch, 1, dtype=torch.int64), cache) == step.flops
    matrices = [module.weight for module in model.modules() if isinstance(module, torch.nn.Linear)]
    assert step.weight_bytes == sum(matrix.nbytes for matrix in matrices)
    after = sum(layer.nbytes for layer in cache.layers)
    written = kv_cache(config, 1, batch).bytes
    assert step.cache_bytes == after + written
    assert before <= after
    assert float(step) == step.flops / step.bytes


@pytest.mark.parametrize("window", [None, 4, 9])
@pytest.mark.parametrize("tokens", [1, 3, 4, 8, 13])
def test_pairs_are_what_a_mask_shows(window, tokens):
    config = Config(layers=3, window=window, windowed_layers=None if window is None else (0, 2))
    visible = 0
    for layer in range(config.layers):
        reach = window if layer in config.windowed_layers else tokens
        visible += sum(1 for q in range(tokens) for k in range(tokens) if k <= q < k + reach)
    per_pair = flops(config).attention_per_token_per_key // config.layers
    assert flops(config, tokens).attention == per_pair * visible
    assert flops(config, tokens, pairs="all").attention == per_pair * config.layers * tokens**2
    full = flops(config.replace(window=None, windowed_layers=None), tokens, pairs="halved").attention
    assert full * 2 == per_pair * config.layers * tokens**2


@pytest.mark.parametrize("expected", COUNTS, ids=[row["name"] for row in COUNTS])
def test_released_models_to_the_last_parameter_and_byte(expected):
    config = families.get(expected["name"])
    counted, work, cache = parameters(config), flops(config), kv_cache(config)
    for part in ("total", "embedding", "attention", "feed_forward", "router", "norms", "head", "other"):
        assert getattr(counted, part) == expected[part], part
    assert counted.active == expected.get("active", expected["total"])
    if "active" in expected:
        assert counted.active_without_embedding == expected["active_without_embedding"]
    assert cache.bytes_per_token == expected["cache_bytes_per_token"]
    assert work.forward_per_token_weights == expected["forward_per_token_weights"]
    assert work.attention_per_token_per_key == expected["attention_per_token_per_key"]
    long = 10 * (config.window or 1)
    if "windowed" in expected:
        windowed = expected["windowed"]
        growing = windowed["growing_bytes_per_token_beyond_window"] * long
        assert kv_cache(config, long).needed_bytes == windowed["capped_bytes"] + growing
    else:
        assert config.window is None


def test_every_released_model_is_expected():
    assert {row["name"] for row in COUNTS} == {row.name for row in families.RELEASED}
    assert len(COUNTS) == 63


# --- Reports of wrong figures elsewhere, restated: each names what was counted wrongly.

BARE = {"norm": "rms", "rope_pairing": "half", "context": 16}


def test_tied_matrix_counts_once():  # karpathy/llama2.c#378
    config = Config(**BARE, vocab=32000, width=288, layers=6, heads=6, kv_heads=6, hidden=768, tied=True)
    assert parameters(config).total == 15_191_712
    assert parameters(config.replace(tied=False)).total == 24_407_712


def test_pipeline_copies_are_not_parameters():  # bigscience-workshop/Megatron-DeepSpeed#99
    config = Config(**BARE, vocab=50304, width=1024, layers=2, heads=16, kv_heads=16, hidden=4096)
    assert parameters(config).embedding == 51_511_296
    assert 300_000_000 + parameters(config).embedding == 351_511_296


LLAMA_70B = Config(
    **BARE, vocab=32000, width=8192, layers=80, heads=64, kv_heads=8, head_width=128, hidden=28672, tied=False
)


def test_grouped_keys_and_values_are_narrow():  # meta-llama/llama#1111
    assert parameters(LLAMA_70B).total == 68_976_648_192


def test_all_experts_are_stored_and_few_run():  # jranaraki/vllm-fit#27
    config = Config(
        **BARE, vocab=32000, width=4096, layers=32, heads=32, kv_heads=8, hidden=14336, tied=False,
        experts=Experts(count=8, per_token=2, hidden=14336),
    )  # fmt: skip
    assert parameters(config).total == 46_702_792_704
    assert parameters(config).active == 12_879_925_248


def test_active_keeps_everything_that_is_not_routed():  # huggingface/huggingface.js#2182
    counted = parameters(families.get("Qwen/Qwen3-30B-A3B"))
    assert counted.active == 3_353_032_704
    assert counted.active - 28_991_029_248 * 8 // 128 == 1_541_093_376


def test_matrix_rows_not_tokenizer_entries():  # bigscience-workshop/bigscience#30
    config = families.get("bigscience/bloom-7b1")
    assert (config.vocab, parameters(config).embedding) == (250_880, 1_027_604_480)


def test_vocabulary_is_outside_the_stack():  # jax-ml/scaling-book#34
    config = Config(
        vocab=1000, width=64, layers=12, heads=4, kv_heads=4, hidden=256, norm_scale="none", context=16, tied=True
    )
    assert parameters(config).total == 850_432


QWEN3_4B = Config(**BARE, vocab=512, width=2560, layers=36, heads=32, kv_heads=8, head_width=128, hidden=9728)


def test_stated_head_width_counts():  # LMCache/LMCache#688
    assert kv_cache(QWEN3_4B).bytes_per_token == 147_456


DEEPSEEK = families.get("deepseek-ai/DeepSeek-V3")


def test_latent_has_no_factor_two_and_no_heads():  # gpustack/gguf-parser-go#8
    cache = kv_cache(DEEPSEEK, 65_536, dtype="int4")
    assert cache.layers[0] == 18_874_368 == 18 * 2**20
    assert cache.bytes == 1_151_336_448


LLAMA_8B = families.get("meta-llama/Meta-Llama-3-8B")


def test_cache_is_as_wide_as_the_kv_heads():  # vllm-project/vllm#29736
    assert kv_cache(LLAMA_8B).bytes_per_token == 131_072


def test_cache_of_all_heads_of_a_layer():  # rohitg00/ai-engineering-from-scratch#57
    cache = kv_cache(families.get("Llama-2-7b-hf"), 32_768)
    assert (cache.bytes_per_token, cache.bytes) == (524_288, 16 * 2**30)


def alternating(layers: int, heads: int = 64) -> Config:
    return Config(
        **BARE, vocab=512, width=2880, layers=layers, heads=heads, kv_heads=8, head_width=64, hidden=2880,
        window=128, windowed_layers=tuple(range(0, layers, 2)),
    )  # fmt: skip


def test_windowed_layers_cache_too():  # alvarobartt/hf-mem#60
    assert kv_cache(alternating(36)).needed_bytes == 73_728


def test_needed_and_reserved_are_two_answers():  # alvarobartt/hf-mem#70
    cache = kv_cache(alternating(24), 8192, batch=32)
    assert (cache.needed_bytes, cache.bytes) == (6_543_114_240, 12_884_901_888)


def test_cache_has_its_own_dtype():  # inference-sim/inference-sim#1565
    cache = kv_cache(LLAMA_8B, 4096, dtype="fp8")
    assert (cache.bytes_per_token, cache.bytes) == (65_536, 268_435_456)


def test_gigabytes_and_gibibytes():  # alvarobartt/hf-mem#33
    assert budget.bytes_text(16_060_522_496) == "16,060,522,496 bytes (16.06 GB, 14.96 GiB)"
    assert budget.bytes_text(131_072) == "131,072 bytes (131.07 kB, 128.00 KiB)"
    assert budget.bytes_text(1000) == "1,000 bytes"


def test_attention_grows_with_the_square():  # MrYxJ/calculate-flops.pytorch#48
    config = Config(**BARE, vocab=64, width=8, layers=2, heads=2, kv_heads=2, head_width=4, hidden=16)
    assert [flops(config, tokens, pairs="all").attention for tokens in (16, 32)] == [16_384, 65_536]


def test_three_conventions_for_pairs():  # AI-Hypercomputer/maxtext#1972
    config = Config(**BARE, vocab=64, width=64, layers=1, heads=4, kv_heads=4, hidden=16)
    found = [flops(config, 4, pairs=pairs).attention for pairs in ("all", "causal", "halved")]
    assert found == [4096, 2560, 2048]
    windowed = config.replace(window=3, windowed_layers=(0,))
    pairs = {"all": 7 * 7, "causal": 1 + 2 + 5 * 3, "halved": Fraction(3 * 3, 2) + 4 * 3}  # halved: the first keys only
    for name, seen in pairs.items():
        assert flops(windowed, 7, pairs=name).attention == 4 * 64 * seen


def test_a_training_step_is_three_forward_passes():
    config = Config(**BARE, vocab=70, width=64, layers=2, heads=4, kv_heads=2, hidden=40)
    found = flops(config, tokens=5, batch=3)
    assert found.training == 6 * 3 * 5 * count("matmul_weights", config) + 3 * found.attention


def test_where_both_limits_are_equal_a_step_is_bound_by_compute():
    assert [TimeBound(compute, 2.0).limit for compute in (1.9, 2.0, 2.1)] == ["memory", "compute", "compute"]


def test_input_embedding_multiplies_nothing():  # tenstorrent/tt-metal#50114
    config = families.get("TinyLlama-1.1B")
    assert flops(config).forward_per_token_weights == 2 * (968_884_224 + 32_000 * 2048) == 2_068_840_448


def test_six_n_keeps_the_attention_weights():  # karpathy/nanoGPT#322
    config = families.get("gpt2").replace(attention_bias="", hidden_bias=False, norm_bias=False)
    assert parameters(config).total - 1024 * 768 == 123_551_232
    assert six_n(config, 1024) == 854_553_600
    assert six_n(config, 1024) * 1024 == 875_062_886_400
    assert flops(config, 1024, pairs="all").forward == 291_648_307_200  # the forward figure of the same notebook


def test_six_n_leaves_out_an_untied_input_table():
    config = Config(vocab=61, width=24, layers=2, heads=3, kv_heads=1, head_width=10, hidden=40, context=9, tied=False)
    assert six_n(config, 7) == 6 * (parameters(config).total - 61 * 24) + 12 * 2 * 3 * 10 * 7
    assert six_n(config.replace(tied=True), 7) == six_n(config, 7)


# --- Memory.


def test_training_memory_is_what_adamw_holds():
    config = Config(vocab=61, width=24, layers=2, heads=3, kv_heads=1, hidden=40, context=9)
    model = Decoder(config)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.zeros(1, 4, dtype=torch.int64)).sum().backward()
    optimizer.step()
    states = [state[name] for state in optimizer.state.values() for name in ("exp_avg", "exp_avg_sq")]
    memory = training_memory(config, "12-byte")
    assert memory.moments == sum(tensor.nbytes for tensor in states)
    assert memory.weights == sum(parameter.to(torch.bfloat16).nbytes for parameter in model.parameters())
    assert memory.gradients == sum(parameter.grad.to(torch.bfloat16).nbytes for parameter in model.parameters())
    assert memory.master == 0
    assert training_memory(config, zero=3) == training_memory(config, zero=3, devices=1)
    assert training_memory(config, "16-byte").master == sum(parameter.nbytes for parameter in model.parameters())
    assert (memory.total, int(training_memory(config))) == (12 * int(parameters(config)), 16 * int(parameters(config)))


def test_zero_stages_divide_more_and_more():
    total = parameters(LLAMA_8B).total
    stages = [training_memory(LLAMA_8B, zero=stage, devices=8).total for stage in (0, 1, 2, 3)]
    each = total // 8
    assert total % 8 == 0
    assert stages == [16 * total, 4 * total + 12 * each, 2 * total + 14 * each, 16 * each]


def test_zero_rounds_up():
    config = Config(vocab=61, width=24, layers=2, heads=3, kv_heads=1, hidden=40, context=9)
    assert training_memory(config, zero=3, devices=7).weights == -(-2 * parameters(config).total // 7)


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_weights_are_the_bytes_of_the_tensors(dtype):
    config = Config(vocab=61, width=24, layers=2, heads=3, kv_heads=1, hidden=40, context=9, tied=False)
    model = Decoder(config).to({"fp32": torch.float32, "bf16": torch.bfloat16}[dtype])
    assert weights(config, dtype).bytes == sum(parameter.nbytes for parameter in model.parameters())


def test_dtypes_are_as_wide_as_those_of_torch():
    torch_names = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "fp8": "float8_e4m3fn", "int8": "int8"}
    assert {name: 8 * getattr(torch, torch_names[name]).itemsize for name in torch_names} | {
        "fp4": 4,
        "int4": 4,
    } == BITS


def test_four_bit_weights_round_up_to_bytes():
    config = Config(vocab=61, width=23, layers=1, heads=1, kv_heads=1, head_width=4, hidden=41, context=9)
    total = parameters(config).total
    assert total % 2 == 1
    assert weights(config, "int4").bytes == total // 2 + 1


def saved_elements(block, x) -> int:
    """Elements of the tensors that autograd keeps for a backward pass, each storage once, parameters left out."""
    kept: dict[int, int] = {}
    own = {parameter.untyped_storage().data_ptr() for parameter in block.parameters()}
    alive = []

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes() // tensor.element_size()
            alive.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        block(x)
    return sum(kept.values())


class PlainBlock(torch.nn.Module):
    """A pre-norm block in the plainest torch there is, its scores kept."""

    def __init__(self, d, heads, kv_heads, h, m, gated):
        super().__init__()
        linear = lambda i, o: torch.nn.Linear(i, o, bias=False)
        self.q, self.k, self.v = linear(d, heads * h), linear(d, kv_heads * h), linear(d, kv_heads * h)
        self.o, self.up, self.down = linear(heads * h, d), linear(d, m), linear(m, d)
        self.gate = linear(d, m) if gated else None
        self.heads, self.kv_heads = heads, kv_heads

    def forward(self, x):
        batch, tokens, d = x.shape
        y = F.layer_norm(x, (d,))
        q = self.q(y).view(batch, tokens, self.heads, -1).transpose(1, 2)
        k = self.k(y).view(batch, tokens, self.kv_heads, -1).transpose(1, 2)
        v = self.v(y).view(batch, tokens, self.kv_heads, -1).transpose(1, 2)
        scores = (q @ k.transpose(-1, -2)).softmax(-1)
        x = x + self.o((scores @ v).transpose(1, 2).reshape(batch, tokens, -1))
        y = F.layer_norm(x, (d,))
        hidden = F.gelu(self.up(y)) if self.gate is None else F.silu(self.gate(y)) * self.up(y)
        return x + self.down(hidden)


@pytest.mark.parametrize("gated", [False, True])
def test_activations_are_what_autograd_keeps(gated):
    batch, tokens, d, heads, h, m = 2, 7, 30, 5, 8, 44
    config = Config(
        vocab=50, width=d, layers=3, heads=heads, kv_heads=heads, head_width=h, hidden=m, context=7, gated=gated,
        activation="silu" if gated else "gelu",
    )  # fmt: skip
    x = torch.randn(batch, tokens, d, requires_grad=True)
    statistics = 2 * 2 * batch * tokens  # mean and deviation of two norms, below the formula's grain
    kept = saved_elements(PlainBlock(d, heads, heads, h, m, gated), x) - statistics
    counted = activations(config, tokens, batch, "fp32", scores_kept=True)
    assert counted.block == 4 * kept
    assert counted.total == int(counted) == 3 * counted.block
    fused = activations(config, tokens, batch, "fp32")
    assert counted.block - fused.block == 4 * batch * heads * tokens**2
    assert fused.logits == 4 * batch * tokens * 50


class PlainLatentAttention(torch.nn.Module):
    """Latent attention in the plainest torch there is, expanded, without rotation, its scores kept."""

    def __init__(self, d, heads, latent):
        super().__init__()
        linear = lambda i, o: torch.nn.Linear(i, o, bias=False)
        self.heads, self.latent = heads, latent
        self.q_down = linear(d, latent.query_rank) if latent.query_rank else None
        self.q_up = linear(latent.query_rank or d, heads * (latent.nope_width + latent.rope_width))
        self.kv_down = linear(d, latent.kv_rank + latent.rope_width)
        self.k_up, self.v_up = (linear(latent.kv_rank, heads * n) for n in (latent.nope_width, latent.value_width))
        self.o = linear(heads * latent.value_width, d)

    def forward(self, x):
        y = F.layer_norm(x, x.shape[-1:])
        split = lambda z: z.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        q = split(self.q_up(y if self.q_down is None else F.layer_norm(self.q_down(y), (self.latent.query_rank,))))
        latent, k_rope = self.kv_down(y).split([self.latent.kv_rank, self.latent.rope_width], -1)
        latent = F.layer_norm(latent, (self.latent.kv_rank,))
        k = torch.cat((split(self.k_up(latent)), k_rope[:, None].expand(-1, self.heads, -1, -1)), -1)
        heads = (q @ k.mT).softmax(-1) @ split(self.v_up(latent))
        return x + self.o(heads.transpose(1, 2).flatten(2))


@pytest.mark.parametrize("query_rank", [None, 9])
def test_latent_attention_has_the_weights_of_the_built_one(query_rank):
    latent = LatentAttention(kv_rank=11, rope_width=2, nope_width=6, value_width=5, query_rank=query_rank)
    config = Config(vocab=50, width=30, layers=3, heads=4, head_width=8, hidden=44, context=7, latent=latent)
    with torch.device("meta"):
        model = Decoder(config)
    found, built = parameters(config), {name: p.numel() for name, p in model.named_parameters()}
    assert found.total == sum(built.values())
    assert found.attention == sum(n for name, n in built.items() if ".attention." in name and "norm" not in name)
    matrices = [p.numel() for p in model.parameters() if p.ndim == 2]  # the tied one multiplies as the head
    assert count("matmul_weights", config) == sum(matrices)


@pytest.mark.parametrize("query_rank", [None, 9])
def test_activations_of_latent_attention_are_what_autograd_keeps(query_rank):
    batch, tokens, d, heads, m = 2, 7, 30, 4, 44
    latent = LatentAttention(kv_rank=11, rope_width=2, nope_width=6, value_width=5, query_rank=query_rank)
    config = Config(
        vocab=50, width=d, layers=1, heads=heads, head_width=8, hidden=m, context=7, gated=False, latent=latent
    )
    x = torch.randn(batch, tokens, d, requires_grad=True)
    norms = 2 if query_rank is None else 3
    kept = saved_elements(PlainLatentAttention(d, heads, latent), x) - norms * 2 * batch * tokens
    rest = batch * tokens * (2 * d + 2 * m)  # the second norm's input and output, two hidden tensors
    assert activations(config, tokens, batch, "fp32", scores_kept=True).block == 4 * (kept + rest)


def test_activations_of_a_gpt_block_are_those_of_korthikanti_without_dropout():
    # 34 s b h bytes and 5 a s s b bytes, of which masks are 2 s b h and a s s b, and a dropped-out copy 2 a s s b.
    s, b, h, a = 64, 3, 48, 6
    config = Config(vocab=50, width=h, layers=1, heads=a, kv_heads=a, hidden=4 * h, context=64, gated=False)
    assert activations(config, s, b).block == (34 - 2) * s * b * h
    assert activations(config, s, b, scores_kept=True).block == (34 - 2) * s * b * h + (5 - 3) * a * s * s * b


@pytest.mark.parametrize("gated", [True, False])
@pytest.mark.parametrize("qk_norm", ["none", "head", "full"])
def test_activations_of_experts_by_a_list_of_tensors(gated, qk_norm):
    d, heads, kv_heads, h, m, each, shared = 30, 6, 3, 8, 44, 9, 13
    experts = Experts(count=5, per_token=2, hidden=each, shared=1, shared_hidden=shared, dense_layers=(1,))
    config = Config(
        vocab=50, width=d, layers=4, heads=heads, kv_heads=kv_heads, head_width=h, hidden=m, context=7, gated=gated,
        activation="silu" if gated else "gelu", qk_norm=qk_norm, experts=experts,
    )  # fmt: skip
    attention = [
        d,
        d,
        heads * h,
        kv_heads * h,
        kv_heads * h,
        heads * h,
    ]  # into, out of the norm, q, k, v, output
    attention += [] if qk_norm == "none" else [heads * h, kv_heads * h]  # q and k before their norms
    sides = 4 if gated else 2  # gate, what its activation gives, up, the product; or up and what its activation gives
    dense = [d, d] + [m] * sides
    sparse = [d, d, 5] + [each] * 2 * sides + [shared] * sides
    per_token = 2 * 3 * 7  # bytes of bf16, sequences, tokens
    found = activations(config, tokens=7, batch=3)
    assert found.block == per_token * sum(attention + dense)
    assert found.total == per_token * (4 * sum(attention) + sum(dense) + 3 * sum(sparse))
    kept = activations(config, tokens=7, batch=3, scores_kept=True)
    assert kept.total - found.total == 2 * 4 * 3 * heads * 7 * 7 and kept.logits == 4 * 3 * 7 * 50
    everywhere = activations(config.replace(experts=replace(experts, dense_layers=())), tokens=7, batch=3)
    assert everywhere.block == per_token * sum(attention + sparse)


def test_paged_window_keeps_whole_blocks_and_one_more():
    assert paged_window(window=128, context=8192, batched_tokens=1) == 144
    assert [paged_window(window, 8192, 1) for window in (1, 16, 17, 32, 33)] == [32, 32, 48, 48, 64]
    assert [paged_window(16, 8192, batched, block=8) for batched in (1, 2, 9, 10)] == [24, 32, 32, 40]
    assert [paged_window(128, context, 1) for context in (96, 97, 112, 128, 129)] == [112, 128, 128, 144, 144]
    assert paged_window(window=128, context=8192, batched_tokens=2048, block=16) == (136 + 1) * 16
    assert paged_window(window=4096, context=1000, batched_tokens=8192, block=16) == (63 + 1) * 16


def test_prefill_is_bound_by_compute_where_decode_is_bound_by_memory():
    prefill, decode = (intensity(LLAMA_8B, 2048, 4, phase) for phase in ("prefill", "decode"))
    assert prefill.flops == flops(LLAMA_8B, 2048, 4).forward
    assert [time_bound(step, 1e15, 3e12).limit for step in (prefill, decode)] == ["compute", "memory"]
    bound = time_bound(decode, 1e15, 3e12)
    assert float(bound) == bound.seconds == bound.memory == decode.bytes / 3e12


def test_decode_reads_only_the_experts_it_can_visit():
    config = families.get("Mixtral-8x7B-v0.1")
    one, three, many = (intensity(config, 64, batch).weight_bytes for batch in (1, 3, 100))
    expert = 2 * 3 * 4096 * 14336 * 32
    assert three - one == 4 * expert
    assert many - one == 6 * expert


def test_a_prompt_reads_only_the_experts_that_its_tokens_can_visit():
    config = families.get("Mixtral-8x7B-v0.1").replace(experts=Experts(count=9, per_token=2, hidden=14336))
    expert = 2 * 3 * 4096 * 14336 * 32
    one, eight, all_nine = (
        intensity(config, tokens, batch, "prefill").weight_bytes for tokens, batch in ((1, 1), (2, 2), (3, 5))
    )
    assert (eight - one, all_nine - one) == (6 * expert, 7 * expert)


def test_a_step_moves_weights_and_cache():
    step = intensity(LLAMA_8B, 2048, 4)
    assert step.bytes == step.weight_bytes + step.cache_bytes and step.cache_bytes > 0
    assert step.ratio == Fraction(step.flops, step.weight_bytes + step.cache_bytes) and float(step) == float(step.ratio)


def test_latent_attention_has_nothing_of_separate_heads():
    latent = LatentAttention(kv_rank=14, rope_width=4, nope_width=6, value_width=10, query_rank=9)
    config = Config(vocab=61, width=24, layers=2, heads=3, kv_heads=3, hidden=40, context=9, latent=latent)
    for changes in ({"attention_bias": "qkvo"}, {"sinks": True}, {"qk_norm": "head"}, {"qk_norm": "per_head_weights"}):
        other = config.replace(**changes)
        assert replace(parameters(other), config=config) == parameters(config)
        assert activations(other, 7) == activations(config, 7)


# --- One expression, three faces.


def test_importing_the_budget_imports_no_torch():
    program = "import decoder.budget, decoder.config_json, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_each_symbol_is_used_named_and_valued():
    used = {symbol for expr in budget.FORMULAS.values() for symbol in expr.free_symbols}
    assert used == set(MEANING)
    assert {symbol.name for symbol in used} - set(values(Config())) == {symbol.name for symbol in CALLERS}


def moe_and_latent():
    plain = Config(vocab=61, width=24, layers=5, heads=6, kv_heads=2, head_width=10, hidden=40, context=9)
    experts = Experts(count=7, per_token=3, hidden=11, shared=2, shared_gate=True, router_bias=True, bias=True)
    latent = LatentAttention(kv_rank=13, rope_width=4, nope_width=8, value_width=15, query_rank=17)
    return [
        plain,
        plain.replace(experts=experts, window=4, windowed_layers=(0, 3), sinks=True),
        plain.replace(latent=latent, rotary_width=4, experts=Experts(4, 1, 9, dense_layers=(0,))),
        plain.replace(
            norm="layer", norm_bias=True, attention_bias="qkvo", hidden_bias=True, tied=False, head_bias=True
        ),
        plain.replace(positions="learned", embedding_width=12, qk_norm="head", gated=False, embedding_norm=True),
    ]


@pytest.mark.parametrize("config", moe_and_latent())
@pytest.mark.parametrize("name", list(budget.FORMULAS))
def test_the_displayed_formula_has_the_same_value(config, name):
    sizes = {"T": 6, "B": 3, "bits": 4, "n_b": 2, "D": 7}
    known = values(config) | sizes
    shown = specialise(budget.FORMULAS[name], config)
    used = {symbol.name for symbol in budget.FORMULAS[name].free_symbols}
    exact = shown.subs({symbol: known[symbol.name] for symbol in shown.free_symbols})
    assert exact == count(name, config, **{size: sizes[size] for size in sizes if size in used})


def test_a_displayed_formula_drops_what_the_decoder_lacks():
    config = Config()
    known = {symbol.name: symbol for symbol in MEANING}
    d, H, K, h, L = (known[name] for name in "dHKhL")
    assert sympy.expand(parameters(config).formula("attention") - L * (2 * d * H * h + 2 * d * K * h)) == 0
    assert sympy.expand(kv_cache(config, dtype="bf16").formula("bytes_per_token") - 4 * K * L * h) == 0
    assert parameters(config).latex("norms") == r"d\,\left(2\,L + 1\right)"
    assert parameters(config).latex("attention") == r"L\,\left(2\,d\,H\,h + 2\,d\,K\,h\right)"
    assert kv_cache(config).latex("bytes") == r"4\,B\,T\,L\,K\,h"
    assert budget.latex("weight_bytes", config).startswith(r"\left\lceil{\frac{\mathrm{bits}\,\left(")
    assert r"H\,b_{q} + K\,b_{k}" in budget.latex("attention")


@pytest.mark.skipif(NODE is None, reason="needs node")
def test_javascript_agrees_on_every_figure(tmp_path):
    generator = torch.Generator().manual_seed(0)

    def random_values():
        draw = lambda most: int(torch.randint(0, most, (), generator=generator))
        sizes = {symbol.name: draw(2) for symbol in MEANING}
        for symbol in MEANING:
            if not (symbol.name[0] in "bnquxszya" and symbol.name != "n" and symbol.name != "q"):
                sizes[symbol.name] = 1 + draw(10 ** (1 + draw(7)))
        return sizes | {"bits": [4, 8, 16, 32][draw(4)]}

    rows = [values(row.config) | {"T": 4099, "B": 3, "bits": 16, "n_b": 4, "D": 7} for row in families.RELEASED]
    rows += [random_values() for _ in range(1000)]
    expected = [
        {name: str(budget._evaluator(name)(row)) for name in budget.FORMULAS}
        | {"ratio": repr(row["m"] / row["d"]), "big": repr(float(Fraction(row["V"] ** 9 + 1, row["d"] * 3 + 1)))}
        for row in rows
    ]
    (tmp_path / "budget.mjs").write_text(budget.javascript())
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    (tmp_path / "main.mjs").write_text(
        'import {formulas, ratio} from "./budget.mjs"; import {readFileSync} from "fs";\n'
        'const rows = JSON.parse(readFileSync("rows.json"));\n'
        "console.log(JSON.stringify(rows.map((row) => {\n"
        "  const found = Object.fromEntries(Object.keys(formulas).map((n) => [n, String(formulas[n](row))]));\n"
        "  found.ratio = ratio(BigInt(row.m), BigInt(row.d));\n"
        "  found.big = ratio(BigInt(row.V) ** 9n + 1n, BigInt(row.d) * 3n + 1n);\n"
        "  return found;\n"
        "})));\n"
    )
    done = subprocess.run([NODE, "main.mjs"], cwd=tmp_path, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    for row in found:
        row["ratio"], row["big"] = repr(float(row["ratio"])), repr(float(row["big"]))
    assert len(found) == 63 + 1000
    assert found == expected
    assert any(int(row["weight_bytes"]) > 2**53 for row in expected)


@pytest.mark.skipif(NODE is None, reason="needs node")
@pytest.mark.parametrize("bad", ["1.5", "-1", "2 ** 53", "NaN", '"12"', "undefined", "null", "true"])
def test_javascript_refuses_what_is_no_whole_number(tmp_path, bad):
    (tmp_path / "budget.mjs").write_text(
        formula.javascript_module({"twice": 2 * sympy.Symbol("d")}, [sympy.Symbol("d")])
    )
    program = f'import {{formulas}} from "./budget.mjs"; formulas.twice({{d: {bad}}})'
    done = subprocess.run([NODE, "--input-type=module", "-e", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "RangeError: d must be a whole number from 0" in done.stderr


X, Y = sympy.symbols("X Y", integer=True, positive=True)


def expressions():
    leaves = st.sampled_from([X, Y]) | st.integers(0, 7).map(sympy.Integer)

    def grow(inner):
        pair = st.tuples(inner, inner)
        return st.one_of(
            pair.map(lambda two: two[0] + two[1]),
            pair.map(lambda two: two[0] - two[1]),
            pair.map(lambda two: two[0] * two[1]),
            pair.map(lambda two: sympy.Min(*two)),
            pair.map(lambda two: sympy.Max(*two)),
            inner.map(lambda one: one**2),
            st.tuples(inner, st.integers(2, 9)).map(lambda two: sympy.ceiling(two[0] / two[1])),
            st.tuples(inner, st.integers(2, 9)).map(lambda two: sympy.floor(two[0] / two[1])),
            inner.map(lambda one: sympy.ceiling(one / Y)),
        )

    return st.recursive(leaves, grow, max_leaves=6)


@given(expressions(), st.integers(1, 2**60), st.integers(1, 2**40))
@settings(max_examples=150, deadline=None)
def test_printed_python_is_exact(expr, x, y):
    assert formula.evaluator(expr, [X, Y])({"X": x, "Y": y}) == expr.subs({X: x, Y: y})


@pytest.mark.skipif(NODE is None, reason="needs node")
def test_printed_javascript_is_exact(tmp_path):
    drawn = []

    @given(expressions(), st.integers(1, 2**60), st.integers(1, 2**40))
    @settings(max_examples=150, deadline=None, database=None)
    def collect(expr, x, y):
        drawn.append((expr, x, y))

    collect()
    lines = [f"out.push(String(((X, Y) => {formula.javascript(expr)})({x}n, {y}n)));" for expr, x, y in drawn]
    program = "\n".join([formula.PRELUDE, "const out = [];", *lines, "console.log(JSON.stringify(out));"])
    (tmp_path / "all.mjs").write_text(program)
    done = subprocess.run([NODE, "all.mjs"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [str(expr.subs({X: x, Y: y})) for expr, x, y in drawn]
    assert len(drawn) >= 100


@pytest.mark.parametrize(
    "expr", [X / 2, X / Y, sympy.sqrt(X), X**-1, 0.5 * X, sympy.pi * X, sympy.log(X), X**Y, sympy.oo]
)
@pytest.mark.parametrize("printer", [formula.python, formula.javascript])
def test_what_may_leave_the_whole_numbers_is_refused(expr, printer):
    with pytest.raises(ValueError, match=r"whole number|whole-number|no exact form"):
        printer(sympy.sympify(expr))


# --- Refusals and texts.


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: kv_cache(c, 0), "tokens must be a whole number from 1, got 0"),
        (lambda c: kv_cache(c, 5, batch=True), "batch must be a whole number from 1, got True"),
        (lambda c: kv_cache(c, dtype="bf8"), "dtype must be one of 'fp32', 'bf16', 'fp16', 'fp8', 'int8', 'fp4',"),
        (lambda c: flops(c, 2.0), "tokens must be a whole number from 1, got 2.0"),
        (lambda c: flops(c, 2, pairs="half"), "pairs must be one of 'causal', 'halved', 'all', got 'half'"),
        (lambda c: training_memory(c, "18-byte"), "layout must be one of '12-byte', '16-byte', got '18-byte'"),
        (lambda c: training_memory(c, zero=4), "zero must be one of 0, 1, 2, 3, got 4"),
        (lambda c: training_memory(c, devices=0), "devices must be a whole number from 1, got 0"),
        (lambda c: intensity(c, 2, phase="train"), "phase must be one of 'prefill', 'decode', got 'train'"),
        (lambda c: time_bound(intensity(c, 2), 0, 1.0), "flop_rate must be a finite number above 0, got 0"),
        (lambda c: time_bound(intensity(c, 2), 1, float("inf")), "bandwidth must be a finite number above 0, got inf"),
        (lambda c: budget.in_unit(1, "KB"), "unit must be one of 'thousand', 'million',"),
        (lambda c: count("totals", c), "formula must be one of 'embedding', 'attention'"),
        (lambda c: count("cache_bytes", c, T=3), "cache_bytes needs B, bits"),
        (lambda c: count("weight_bytes", c, bits=0), "bits must be a whole number from 1, got 0"),
        (lambda c: paged_window(0, 9, 1), "window must be a whole number from 1, got 0"),
        (lambda c: paged_window(4, 9, 1, block=0), "block must be a whole number from 1, got 0"),
        (lambda c: budget.latex("all"), "formula must be one of 'embedding', 'attention'"),
        (lambda c: parameters(c).formula("all"), "Parameters has formulas for embedding"),
    ],
)  # fmt: skip
def test_refusals(call, message):
    with pytest.raises(ValueError) as caught:
        call(Config())
    assert str(caught.value).startswith(message)


def test_a_formula_with_an_unlisted_symbol_is_refused():
    with pytest.raises(ValueError, match="formula uses X, which the notation does not list"):
        formula.evaluator(X + 1, MEANING)


def test_results_print_themselves():
    config = Config()
    assert "total                       100,092,672 parameters" in str(parameters(config))
    assert "a shared tensor counts once" in str(parameters(config))
    assert "bytes_per_token             12,288 bytes (12.29 kB, 12.00 KiB)" in str(kv_cache(config))
    assert "pairs                       causal" in str(flops(config))
    assert "an FP32 master copy" in str(training_memory(config))
    assert "master copy" not in str(training_memory(config, "12-byte"))
    assert "scores not kept (fused attention)" in str(activations(config, 8))
    assert str(intensity(config, 8)).startswith("Intensity of decode: ")
    assert "limited by memory" in str(time_bound(intensity(config, 8), 1e15, 1e12))
    assert "config" not in repr(parameters(config))
    assert [budget.bytes_text(1024**power - 1) for power in (1, 2)] == [
        "1,023 bytes",
        "1,048,575 bytes (1,048.58 kB, 1,024.00 KiB)",
    ]
    units = ("kB", "KiB", "MB", "MiB", "GB", "GiB", "TB", "TiB", "thousand", "million", "billion", "trillion")
    ones = [1000, 1024, 1000**2, 1024**2, 1000**3, 1024**3, 1000**4, 1024**4, 1e3, 1e6, 1e9, 1e12]
    assert [budget.in_unit(one, unit) for unit, one in zip(units, ones, strict=True)] == [1] * 12
    assert (budget.in_unit(3 * 2**29, "GiB"), set(budget.FACTORS)) == (1.5, set(units))
    assert budget.bytes_text(1024) == "1,024 bytes (1.02 kB, 1.00 KiB)"
    assert budget.bytes_text(2**30) == "1,073,741,824 bytes (1.07 GB, 1.00 GiB)"
    assert set(BITS) == {"fp32", "bf16", "fp16", "fp8", "int8", "fp4", "int4"}


def test_what_is_not_said_is_one_token_of_one_sequence_decoded_on_one_device():
    config = Config()
    assert kv_cache(config) == kv_cache(config, tokens=1, batch=1, dtype="bf16")
    assert flops(config) == flops(config, tokens=1, batch=1, pairs="causal")
    assert weights(config) == weights(config, "bf16")
    assert training_memory(config, devices=8) == replace(training_memory(config), devices=8)
    assert training_memory(config) == training_memory(config, "16-byte", zero=0, devices=1)
    assert activations(config, 8) == activations(config, 8, batch=1, dtype="bf16", scores_kept=False)
    assert intensity(config, 8) == intensity(config, 8, 1, "decode", dtype="bf16", cache_dtype="bf16")


def test_results_cannot_be_changed():
    config = Config()
    step = intensity(config, 8)
    results = (
        parameters(config), kv_cache(config), flops(config), weights(config), training_memory(config),
        activations(config, 8), step, time_bound(step, 1e15, 1e12),
    )  # fmt: skip
    for result in results:
        with pytest.raises(FrozenInstanceError):
            result.dtype = "fp32"
