"""Reading config.json files: against transformers' own classes and the models they build."""

import copy
import json
import math

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from decoder import families
from decoder.budget import kv_cache, parameters
from decoder.config import Experts
from decoder.config_json import FAMILIES, ConfigError, Value, read_config

transformers.logging.set_verbosity_error()

FILES = {row["name"]: row["config"] for row in families._data()["models"]}
SMALLEST = {}
for row in sorted(families.RELEASED, key=lambda row: parameters(row.config).total):
    SMALLEST.setdefault(row.reading.model_type, row.name)


def peer(data):
    """The configuration object that transformers makes of the same file."""
    data = copy.deepcopy(data)
    return CONFIG_MAPPING[data.pop("model_type")](**data)


def numel(config) -> int:
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    model.tie_weights()
    return sum({id(tensor): tensor.numel() for tensor in model.parameters()}.values())


# Sizes pairwise distinct; head width is not width / heads wherever the class allows it.
LLAMA = {
    "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 6, "num_key_value_heads": 2,
    "intermediate_size": 44, "vocab_size": 97, "max_position_embeddings": 57,
}  # fmt: skip
WIDE = {**LLAMA, "head_dim": 10}
GPT2 = {"n_embd": 24, "n_layer": 3, "n_head": 6, "vocab_size": 97, "n_positions": 57}
MOE = {"num_experts_per_tok": 2, "num_experts": 5, "moe_intermediate_size": 14}
MLA = {
    "q_lora_rank": 11, "kv_lora_rank": 13, "qk_rope_head_dim": 4, "qk_nope_head_dim": 6, "v_head_dim": 8,
    "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 14, "n_shared_experts": 2,
    "first_k_dense_replace": 1, "num_key_value_heads": 6,
}  # fmt: skip
VARIANTS = [
    ("gpt2", GPT2),
    ("gpt2", {**GPT2, "n_inner": 50, "tie_word_embeddings": False}),
    ("gptj", {**GPT2, "n_inner": 50, "rotary_dim": 2}),
    ("gptj", {**GPT2, "rotary_dim": 4, "tie_word_embeddings": True}),
    ("gpt_neox", {**LLAMA, "num_attention_heads": 3, "rotary_pct": 0.5}),
    ("gpt_neox", {**LLAMA, "num_attention_heads": 3, "attention_bias": False, "use_parallel_residual": False}),
    ("opt", {**LLAMA, "ffn_dim": 50}),
    ("opt", {**LLAMA, "ffn_dim": 50, "word_embed_proj_dim": 10, "do_layer_norm_before": False}),
    ("opt", {**LLAMA, "ffn_dim": 50, "enable_bias": False, "_remove_final_layer_norm": True}),
    ("falcon", LLAMA),
    ("falcon", {**LLAMA, "ffn_hidden_size": 50, "multi_query": False, "bias": True, "parallel_attn": False}),
    ("falcon", {**LLAMA, "new_decoder_architecture": True, "num_kv_heads": 2}),
    ("falcon", {**LLAMA, "new_decoder_architecture": True, "num_kv_heads": 3, "num_ln_in_parallel_attn": 1}),
    ("bloom", {"hidden_size": 24, "n_layer": 3, "n_head": 6, "vocab_size": 97}),
    ("mpt", {"d_model": 24, "n_layers": 3, "n_heads": 6, "vocab_size": 97, "max_seq_len": 57}),
    ("llama", LLAMA),
    ("llama", {**WIDE, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}),
    ("mistral", WIDE),
    ("mixtral", {**WIDE, "num_local_experts": 5, "num_experts_per_tok": 2}),
    ("qwen2", LLAMA),
    ("qwen3", WIDE),
    ("qwen3", {**WIDE, "attention_bias": True}),
    ("qwen2_moe", {**LLAMA, **MOE, "shared_expert_intermediate_size": 18}),
    ("qwen2_moe", {**LLAMA, **MOE, "shared_expert_intermediate_size": 18, "mlp_only_layers": [1], "qkv_bias": False}),
    ("qwen3_moe", {**WIDE, **MOE}),
    ("qwen3_moe", {**WIDE, **MOE, "decoder_sparse_step": 2}),
    ("gemma", WIDE),
    ("gemma2", WIDE),
    ("gemma3_text", {**WIDE, "num_hidden_layers": 7}),
    ("phi", LLAMA),
    ("phi", {**LLAMA, "partial_rotary_factor": 1.0}),
    ("phi3", {**LLAMA, "pad_token_id": 0}),
    ("olmo", LLAMA),
    ("olmo2", LLAMA),
    ("olmo3", LLAMA),
    ("olmoe", {**LLAMA, "num_experts": 5, "num_experts_per_tok": 2}),
    ("cohere", LLAMA),
    ("cohere", {**LLAMA, "use_qk_norm": True, "attention_bias": True}),
    ("cohere2", LLAMA),
    ("starcoder2", LLAMA),
    ("starcoder2", {**LLAMA, "use_bias": False}),
    ("smollm3", {**LLAMA, "pad_token_id": 0, "mlp_bias": True}),
    ("deepseek_v2", {**LLAMA, **MLA}),
    ("deepseek_v2", {**LLAMA, **MLA, "q_lora_rank": None, "first_k_dense_replace": 0}),
    ("deepseek_v3", {**LLAMA, **MLA, "n_group": 2, "topk_group": 1}),
    ("deepseek_v3", {**LLAMA, **MLA, "q_lora_rank": None, "n_group": 2, "topk_group": 1, "first_k_dense_replace": 3}),
    ("gpt_oss", {**WIDE, "num_local_experts": 5, "num_experts_per_tok": 2}),
]  # fmt: skip


@pytest.mark.parametrize(("model_type", "keys"), VARIANTS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_small_model_of_each_family_has_the_counted_parameters(model_type, keys):
    data = {"model_type": model_type, **keys}
    built = peer(data)
    assert parameters(read_config(data).config).total == numel(built)
    written = json.loads(json.dumps(built.to_dict(), default=str))  # and as transformers would save it
    assert read_config(written).config == read_config(data).config


def test_every_family_has_a_small_model():
    assert {model_type for model_type, _ in VARIANTS} == set(FAMILIES)


@pytest.mark.parametrize("model_type", sorted(FAMILIES))
def test_class_defaults_are_those_of_the_class(model_type):
    extra = {"num_experts_per_tok": 6} if model_type == "deepseek_v2" else {}
    bare = read_config({"model_type": model_type, **extra})
    stated = read_config(json.loads(json.dumps(peer({"model_type": model_type, **extra}).to_dict(), default=str)))
    assert bare.config == stated.config
    assert "stated" not in {value.origin for name, value in bare.values.items() if name != "experts.per_token"}


def mutations():
    for model_type, name in SMALLEST.items():
        for key in FILES[name]:
            if key != "model_type":
                yield pytest.param(name, key, id=f"{model_type}-{key}")


@pytest.mark.parametrize(("name", "key"), list(mutations()))
@pytest.mark.parametrize("change", ["removed", "null"])
def test_one_key_removed_or_null_is_right_or_refused_by_name(name, key, change):
    data = dict(FILES[name])
    if change == "removed":
        del data[key]
    else:
        data[key] = None
    try:
        reading = read_config(data)
    except ConfigError as error:
        assert key in str(error)
        return
    try:
        built = peer(data)
    except Exception:  # the class refuses what we can still count; then nothing else may have changed
        if change == "null":
            assert reading.config == families.get(name) or key == "num_key_value_heads" or key == "rotary_dim"
        return
    assert parameters(reading.config).total == numel(built)


def tiny(model_type, **keys):
    config = peer({"model_type": model_type, **keys})
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()


@pytest.mark.parametrize(
    ("model_type", "keys"),
    [
        ("gpt2", GPT2),
        ("llama", WIDE),
        ("falcon", LLAMA),
        ("mixtral", {**WIDE, "num_local_experts": 5, "num_experts_per_tok": 2}),
        ("deepseek_v3", {**LLAMA, **MLA, "n_group": 2, "topk_group": 1, "moe_intermediate_size": 16}),
    ],
)
def test_cache_bytes_equal_what_transformers_caches(model_type, keys):
    batch, tokens = 2, 5
    with torch.no_grad():
        held = tiny(model_type, **keys)(torch.zeros(batch, tokens, dtype=torch.int64), use_cache=True).past_key_values
    nbytes = sum(layer.keys.nbytes + layer.values.nbytes for layer in held.layers)
    assert kv_cache(read_config({"model_type": model_type, **keys}).config, tokens, batch, "fp32").bytes == nbytes


# --- What the classes mean by keys that are absent, null, 0 or elsewhere.


def read(model_type="llama", **keys):
    return read_config({"model_type": model_type, **keys}, "f.json")


@pytest.mark.parametrize("head_dim", [None, "absent"])
def test_head_width_follows_where_it_is_not_stated(head_dim):
    keys = LLAMA if head_dim == "absent" else {**LLAMA, "head_dim": head_dim}
    reading = read(**keys)
    assert reading.config.head_width == 4
    assert reading.values["head_width"] == Value(4, "derived", "head_dim")


def test_origins():
    values = read("qwen3", **LLAMA).values
    assert values["width"] == Value(24, "stated", "hidden_size")
    assert values["head_width"] == Value(128, "class default", "head_dim")
    assert values["tied"] == Value(False, "class default", "tie_word_embeddings")
    assert read(**{**LLAMA, "num_key_value_heads": None}).values["kv_heads"] == Value(
        6, "derived", "num_key_value_heads"
    )


def without(name):
    return {key: value for key, value in LLAMA.items() if key != name}


@pytest.mark.parametrize(
    ("model_type", "keys", "note"),
    [
        (
            "llama",
            {**without("num_key_value_heads"), "num_kv_heads": 2},
            "num_kv_heads has no effect: the class reads num_key_value_heads; kv_heads is 6 (derived)",
        ),
        (
            "qwen3",
            {**LLAMA, "head_size": 4},
            "head_size has no effect: the class reads head_dim; head_width is 128 (class default)",
        ),
        (
            "newcomer",
            {**without("num_key_value_heads"), "tie_word_embeddings": True, "n_kv_heads": 2},
            "n_kv_heads has no effect: the class reads num_key_value_heads or num_kv_heads or n_head_kv; "
            "kv_heads is 6 (derived)",
        ),
    ],
)
def test_a_size_under_a_name_that_the_class_does_not_read_is_said(model_type, keys, note):
    assert note in read(model_type, **keys).notes


def test_another_name_beside_the_right_one_and_a_key_of_no_size_are_not_spoken_of():
    assert read("llama", **LLAMA, num_kv_heads=6, n_ctx=2, dropout=0.0).notes == ()
    one_kind_of_head = read("gpt_neox", hidden_size=24, num_attention_heads=6, rotary_pct=1.0, n_kv_heads=2)
    assert one_kind_of_head.notes == ()


def test_no_released_model_states_a_size_in_vain():
    notes = [note for data in FILES.values() for note in read_config(data).notes]
    assert [note for note in notes if "has no effect" in note] == []


@pytest.mark.parametrize(
    ("model_type", "tied"), [("gemma", True), ("llama", False), ("falcon", True), ("gpt_neox", False), ("cohere", True)]
)
def test_an_absent_tie_is_the_class_default(model_type, tied):
    assert read(model_type).config.tied is tied


def test_windows():
    assert read("mistral", **LLAMA).config.windowed_layers == (0, 1, 2)
    assert read("mistral", **LLAMA, sliding_window=None).config.window is None
    off = read("qwen2", **LLAMA, sliding_window=8, use_sliding_window=False)
    assert off.config.window is None
    assert off.notes == ("sliding_window is 8, but use_sliding_window is false: every layer sees all keys",)
    on = read("qwen2", **LLAMA, sliding_window=8, use_sliding_window=True, max_window_layers=1)
    assert (on.config.window, on.config.windowed_layers) == (8, (1, 2))
    gemma = read("gemma3_text", **{**LLAMA, "num_hidden_layers": 8}, sliding_window_pattern=3).config
    assert gemma.windowed_layers == (0, 1, 3, 4, 6, 7)
    assert (gemma.rope_base, gemma.rope_base_windowed) == (1e6, 1e4)
    smollm = read("smollm3", **{**LLAMA, "num_hidden_layers": 4}, use_sliding_window=True, sliding_window=5).config
    assert (smollm.no_rope_layers, smollm.windowed_layers) == ((3,), (3,))
    assert read("cohere2", **{**LLAMA, "num_hidden_layers": 4}).config.no_rope_layers == (3,)


def test_nested_text_config_with_the_tie_outside_or_inside():
    inner = {"model_type": "llama", **LLAMA}
    outer = {"model_type": "llava", "text_config": inner, "tie_word_embeddings": True, "vision_config": {}}
    assert read_config(outer).config.tied is True
    inner["tie_word_embeddings"] = False
    assert read_config(outer).config.tied is False
    assert read_config({"model_type": "gemma3", "text_config": LLAMA}).model_type == "gemma3_text"


@pytest.mark.parametrize("holder", ["rope_scaling", "rope_parameters"])
def test_rope_scaling_under_both_names(holder):
    scaling = {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }  # fmt: skip
    config = read(**LLAMA, **{holder: scaling}, rope_theta=5e5).config
    assert config.rope_base == 5e5
    assert (config.rope_scaling.kind, config.rope_scaling.factor) == ("llama3", 8.0)
    assert (config.rope_scaling.original_context, config.rope_scaling.high_frequency) == (8192, 4.0)


def test_yarn_scales_the_attention_of_deepseek():
    yarn = {"type": "yarn", "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 16}
    keys = {**LLAMA, **MLA, "n_group": 2, "topk_group": 1, "rope_scaling": yarn}
    built = tiny("deepseek_v3", **keys).model.layers[0].self_attn.scaling
    assert math.isclose(read("deepseek_v3", **keys).config.attention_scale, built)


def test_longrope_of_phi3():
    factors = {"short_factor": [1.0, 1.5], "long_factor": [2.0, 3.0], "rope_type": "longrope"}
    config = read("phi3", **LLAMA, rope_scaling=factors, original_max_position_embeddings=19).config
    assert config.rope_scaling.long_factors == (2.0, 3.0)
    assert (config.rope_scaling.factor, config.rope_scaling.original_context) == (3.0, 19)


def test_what_a_config_cannot_express_is_said():
    assert read("olmo", **LLAMA, clip_qkv=8.0).unsupported == ("clip_qkv is 8.0, which a Config does not express",)
    reading = read(**LLAMA, rope_scaling={"rope_type": "mrope"})
    assert reading.unsupported == ('rope_scaling.rope_type is "mrope", which a Config does not express',)
    assert "clamped" in read("gpt_oss", **WIDE, num_local_experts=5, num_experts_per_tok=2).unsupported[0]


def test_how_experts_are_chosen_is_read():
    groups = {"n_group": 4, "topk_group": 2}
    v3 = read("deepseek_v3", **{**LLAMA, **MLA}, **groups, routed_scaling_factor=1.5)
    assert not v3.unsupported
    assert v3.config.experts == Experts(
        8, 2, 14, shared=2, selection_bias=True, scores="sigmoid", routed_scale=1.5, groups=4, groups_per_token=2,
        group_best=2, dense_layers=v3.config.experts.dense_layers,
    )  # fmt: skip
    greedy = read("deepseek_v2", **{**LLAMA, **MLA}, **groups).config.experts
    assert (greedy.groups, greedy.normalised, greedy.routed_scale) == (1, False, 1.0)
    limited = read("deepseek_v2", **{**LLAMA, **MLA}, **groups, topk_method="group_limited_greedy").config.experts
    assert (limited.groups, limited.groups_per_token, limited.group_best) == (4, 2, 1)
    assert read("mixtral", **WIDE, num_local_experts=5, num_experts_per_tok=2).config.experts.normalised
    assert not read("qwen3_moe", **WIDE, **MOE).config.experts.normalised
    assert read("qwen3_moe", **WIDE, **MOE, norm_topk_prob=True).config.experts.normalised


def test_a_grouping_that_cannot_be_is_refused():
    with pytest.raises(ConfigError, match=r"n_group: experts\.groups must divide experts\.count 8, got 3$"):
        read("deepseek_v3", **{**LLAMA, **MLA}, n_group=3, topk_group=1)


def test_an_unknown_model_type_is_read_by_its_keys():
    keys = {**WIDE, "tie_word_embeddings": False, "hidden_act": "silu"}
    reading = read("newcomer", **keys)
    assert parameters(reading.config).total == parameters(read(**keys).config).total
    assert reading.notes[0].startswith('model_type "newcomer" is not known: read by its keys alone')
    assert read_config(keys).notes[0].startswith("model_type absent is not known")


# --- Refusals: one line with the file, the key, the value and the rule.

REFUSED = [
    ({"hidden_size": "24"}, 'hidden_size: got "24"; must be a whole number'),
    ({"hidden_size": 24.0}, "hidden_size: got 24.0; must be a whole number"),
    ({"hidden_size": True}, "hidden_size: got true; must be a whole number"),
    ({"hidden_size": None}, "hidden_size: got null; must be a whole number"),
    ({"hidden_size": -24}, "hidden_size: got -24; must be from 1 to 100,000,000"),
    ({"hidden_size": 10**30}, f"hidden_size: got {10**30}; must be from 1 to 100,000,000"),
    ({"num_hidden_layers": 0}, "num_hidden_layers: got 0; must be from 1 to 100,000,000"),
    ({"num_hidden_layers": 20_000}, "num_hidden_layers: got 20000; must be at most 10,000"),
    ({"head_dim": 0}, "head_dim: got 0; must be from 1 to 100,000,000"),
    ({"num_key_value_heads": 4}, "num_key_value_heads: got 4; must divide num_attention_heads 6"),
    ({"num_attention_heads": 10}, "num_attention_heads: got 10; must divide hidden_size 24 where no head_dim is "),
    ({"tie_word_embeddings": 1}, "tie_word_embeddings: got 1; must be true or false"),
    ({"tie_word_embeddings": None}, "tie_word_embeddings: got null; must be true or false"),
    ({"rms_norm_eps": 0}, "rms_norm_eps: got 0; must be above 0 and at most 1e+15"),
    ({"rms_norm_eps": "tiny"}, 'rms_norm_eps: got "tiny"; must be a number'),
    ({"rms_norm_eps": False}, "rms_norm_eps: got false; must be a number"),
    ({"rms_norm_eps": 1e300}, "rms_norm_eps: got 1e+300; must be above 0 and at most 1e+15"),
    ({"rms_norm_eps": math.nan}, "rms_norm_eps: got nan; must be above 0 and at most 1e+15"),
    ({"rope_theta": math.inf}, "rope_theta: got inf; must be above 0 and at most 1e+15"),
    ({"rope_theta": [1]}, "rope_theta: got [1]; must be a number"),
    ({"hidden_act": "gloo"}, 'hidden_act: got "gloo"; must be one of gelu, '),
    ({"hidden_act": {}}, "hidden_act: got {}; must be one of gelu, "),
    ({"rope_scaling": 8}, "rope_scaling: got 8; must be an object"),
    ({"rope_scaling": {"type": 3}}, "rope_scaling.rope_type: got 3; must be a string"),
    ({"rope_scaling": {"type": "linear"}}, "rope_scaling.factor: absent; rope_type linear needs it"),
    ({"rope_scaling": {"type": "linear", "factor": -2}}, "rope_scaling.factor: got -2; must be above 0"),
    (
        {"rope_scaling": {"type": "llama3", "factor": 2, "low_freq_factor": 4, "high_freq_factor": 1}},
        "rope_scaling: rope_scaling.high_frequency must be above ",
    ),
    ({"rope_scaling": {"type": "longrope"}}, "rope_scaling.short_factor: got null; must be a list of numbers"),
    ({"partial_rotary_factor": 0.3}, "partial_rotary_factor: got 0.3; must rotate an even number of coordinates"),
    ({"partial_rotary_factor": 1.5}, "partial_rotary_factor: got 1.5; must be at most 1"),
    ({"layer_types": "all"}, 'layer_types: got "all"; must be a list of full_attention and sliding_attention'),
    ({"layer_types": ["linear_attention"] * 3}, 'layer_types: got ["linear_attention", "linear_attention", "lin...'),
    ({"layer_types": ["full_attention"]}, 'layer_types: got ["full_attention"]; must have one entry a layer, num_hid'),
    ({"layer_types": ["sliding_attention"] * 3}, "sliding_window: got null; must be a whole number, 3 of layer_types"),
    ({"model_type": 7}, "model_type: got 7; must be a string"),
    ({"model_type": "gpt2", "n_embd": 48}, "hidden_size: got 24; must equal n_embd, which is 48"),
    ({"model_type": "gpt2", "add_cross_attention": True}, "add_cross_attention: got true; must be false, nothing else"),
    ({"model_type": "mpt", "attn_config": [1]}, "attn_config: got [1]; must be an object"),
    ({"model_type": "mpt", "no_bias": False}, "no_bias: got false; must be true, nothing else is counted for mpt"),
    ({"model_type": "mpt", "expansion_ratio": 3}, "expansion_ratio: got 3; must be 4"),
    ({"model_type": "phi", "qk_layernorm": True}, "qk_layernorm: got true; must be false"),
    ({"model_type": "mixtral", "num_experts_per_tok": 9}, "num_experts_per_tok: experts.per_token must be at most"),
    ({"model_type": "falcon", "new_decoder_architecture": True, "parallel_attn": False}, "parallel_attn: got false"),
    ({"model_type": "smollm3", "no_rope_layers": [1]}, "no_rope_layers: got [1]; must be 3 numbers"),
    ({"model_type": "qwen3_moe", "mlp_only_layers": 3}, "mlp_only_layers: got 3; must be a list of layer numbers"),
    ({"model_type": "olmoe", "head_dim": 10}, "head_dim: got 10; must be hidden_size 24 / num_attention_heads 6"),
    ({"model_type": "deepseek_v3", "head_dim": 128}, "head_dim: got 128; must be qk_rope_head_dim, 64"),
    ({"model_type": "deepseek_v2"}, "num_experts_per_tok: absent; experts.per_token has no default here"),
    ({"model_type": "newcomer"}, "tie_word_embeddings: absent; tied has no default here, the file must state it"),
    ({"model_type": "newcomer", "kv_lora_rank": 8}, 'kv_lora_rank: got 8; cannot be counted for an unknown model_type'),
    ({"text_config": [1]}, "text_config: got [1]; must be an object"),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "message"), REFUSED)
def test_refusals_name_file_key_value_and_rule(keys, message):
    with pytest.raises(ConfigError) as caught:
        read_config({"model_type": "llama", **LLAMA, **keys}, "f.json")
    assert str(caught.value).startswith(f"f.json: {message}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", ":1:1: not JSON: Expecting value"),
        (b"{'a': 1}", ":1:2: not JSON: Expecting property name"),
        (b"[1]", ": must hold one JSON object, got a list"),
        (b"3", ": must hold one JSON object, got a int"),
        (b'{"hidden_size": NaN}', ": NaN is not JSON; every number must be finite"),
        (b'{"hidden_size": -Infinity}', ": -Infinity is not JSON"),
        (b'{"hidden_size": 1, "hidden_size": 2}', ": hidden_size: stated twice, 1 and 2"),
        (b"\xff\xfe{}", ": not UTF-8 text"),
        (b'{"model_type": ' + b"[" * 980 + b"]" * 980 + b"}", ": "),
        (b'{"a": ' + b"[" * 100_000, ": objects nested too deeply"),
        (b'{"hidden_size": ' + b"9" * 5000 + b"}", ": a number too long to read"),
        (b'{"k%d": 1}' + b" " * 10_000_000, ": more than 1,000,000 bytes; no config.json is that long"),
    ],
)
def test_files_that_are_no_config(tmp_path, text, message):
    path = tmp_path / "config.json"
    path.write_bytes(text)
    with pytest.raises(ConfigError) as caught:
        read_config(path)
    assert str(caught.value).startswith(f"{path}{message}")
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_folder(tmp_path):
    for path in (tmp_path / "absent.json", tmp_path):
        with pytest.raises(ConfigError, match="cannot be read: "):
            read_config(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)


@given(st.sampled_from(sorted(FILES)), st.data())
@settings(max_examples=300, deadline=None)
def test_any_value_anywhere_is_read_or_refused_in_one_line(name, data):
    changed = copy.deepcopy(FILES[name])
    key = data.draw(st.sampled_from(sorted(changed)))
    if isinstance(changed[key], dict) and changed[key] and data.draw(st.booleans()):
        changed[key][data.draw(st.sampled_from(sorted(changed[key])))] = data.draw(JSON)
    else:
        changed[key] = data.draw(JSON)
    try:
        parameters(read_config(changed, "f.json").config)
    except ConfigError as error:
        assert "\n" not in str(error)
        assert str(error).startswith("f.json: ")
