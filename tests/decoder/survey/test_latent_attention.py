"""Latent attention against transformers' DeepSeek-V2 and V3 modules, against itself in its other form, and counted."""

import pytest
import torch
from transformers import DeepseekV2Config, DeepseekV3Config
from transformers.models.deepseek_v2.modeling_deepseek_v2 import DeepseekV2Attention, DeepseekV2RotaryEmbedding
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3Attention, DeepseekV3RotaryEmbedding

from decoder import families
from decoder.attention import View, make_attention
from decoder.budget import kv_cache, parameters
from decoder.cache import KVCache
from decoder.config import Config, LatentAttention
from decoder.config_json import read_config
from decoder.generate import generate
from decoder.model import Decoder, parameter_count
from decoder.positions import layer_rotation
from decoder.survey.latent_attention import MultiHeadLatentAttention

LATENT = LatentAttention(kv_rank=13, rope_width=4, nope_width=7, value_width=5, query_rank=11)


@pytest.fixture(params=[11, None], ids=["query latent", "direct queries"])
def config(request, small) -> Config:
    latent = LatentAttention(13, 4, 7, 5, request.param)
    return small.replace(latent=latent, rotary_width=None)


def peer_sizes(config: Config, **more) -> dict:
    latent = config.latent
    return dict(
        vocab_size=config.vocab, hidden_size=config.width, num_attention_heads=config.heads,
        num_key_value_heads=config.heads, q_lora_rank=latent.query_rank, kv_lora_rank=latent.kv_rank,
        qk_rope_head_dim=latent.rope_width, qk_nope_head_dim=latent.nope_width, v_head_dim=latent.value_width,
        max_position_embeddings=64, attn_implementation="sdpa", **more,
    )  # fmt: skip


def copy_weights(ours: MultiHeadLatentAttention, peer: torch.nn.Module) -> None:
    names = {
        "kv_down": "kv_a_proj_with_mqa", "kv_norm": "kv_a_layernorm", "kv_up": "kv_b_proj", "o": "o_proj",
        "q_down": "q_a_proj", "q_norm": "q_a_layernorm", "q_up": "q_b_proj" if ours.q_down is not None else "q_proj",
    }  # fmt: skip
    theirs = peer.state_dict()
    copied = {}
    for name, weight in ours.state_dict().items():
        part, _, kind = name.partition(".")
        copied[name] = theirs.pop(f"{names[part]}.{kind}")
        assert copied[name].shape == weight.shape
    assert not theirs
    ours.load_state_dict(copied)


def in_float64(peer: torch.nn.Module) -> torch.nn.Module:
    """The peer's norms compute in float32; torch's own take their place and their weights' names."""
    for name in ("q_a_layernorm", "kv_a_layernorm"):
        norm = getattr(peer, name)
        if norm is not None:
            setattr(peer, name, torch.nn.RMSNorm(norm.weight.shape, eps=1e-6))
    return peer.double()


def random_weights(module: torch.nn.Module) -> None:
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.5)


def ours_and_v3(config: Config, **more) -> tuple[torch.Tensor, torch.Tensor]:
    peer_config = DeepseekV3Config(**peer_sizes(config, **more))
    peer = in_float64(DeepseekV3Attention(peer_config, 0))
    random_weights(peer)
    ours = make_attention(config, 0).double()
    copy_weights(ours, peer)
    x = torch.randn(2, 9, config.width, dtype=torch.float64)
    positions = torch.arange(9)[None]
    rotation = layer_rotation(config, positions, False, torch.float64)
    cos, sin = (torch.cat((part[:, 0], part[:, 0]), -1) for part in rotation)  # the peer's own are float32
    stated, _ = DeepseekV3RotaryEmbedding(peer_config)(x, positions)
    torch.testing.assert_close(cos, stated, rtol=0, atol=2e-6)
    return ours(x, View(rotation)), peer(x, (cos, sin), None)[0]


def test_equals_deepseek_v3(config):
    ours, theirs = ours_and_v3(config)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


def test_equals_deepseek_v3_with_yarn_and_its_scale(config):
    stated = {
        "rope_type": "yarn", "rope_theta": 10_000.0, "factor": 8.0, "original_max_position_embeddings": 16,
        "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0,
    }  # fmt: skip
    document = DeepseekV3Config(**peer_sizes(config, rope_parameters=stated)).to_dict()
    read = read_config(document).config
    changed = config.replace(rope_scaling=read.rope_scaling, attention_scale=read.attention_scale)
    assert changed.attention_scale > (7 + 4) ** -0.5
    ours, theirs = ours_and_v3(changed, rope_parameters=stated)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


def test_equals_deepseek_v2(config):
    peer_config = DeepseekV2Config(**peer_sizes(config))
    peer = in_float64(DeepseekV2Attention(peer_config, 0))
    random_weights(peer)
    ours = make_attention(config, 0).double()
    copy_weights(ours, peer)
    x = torch.randn(2, 9, config.width, dtype=torch.float64)
    positions = torch.arange(9)[None]
    turns = DeepseekV2RotaryEmbedding(peer_config)(x, positions)  # complex64: the peer rotates in float32
    rotation = layer_rotation(config, positions, False, torch.float64)
    theirs, _ = peer(x, position_embeddings=turns)
    torch.testing.assert_close(ours(x, View(rotation)), theirs, rtol=0, atol=2e-5)
    still = peer(x, position_embeddings=torch.ones_like(turns))[0]
    torch.testing.assert_close(ours(x, View()), still, rtol=0, atol=1e-5)


def parts(config: Config, tokens: int):
    latent = config.latent
    widths = ((config.heads, latent.nope_width), (config.heads, latent.rope_width), (1, latent.kv_rank))
    made = [torch.randn(2, n, tokens, w, dtype=torch.float64, requires_grad=True) for n, w in widths]
    return *made, torch.randn(2, 1, tokens, latent.rope_width, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("masked", [False, True])
def test_absorbed_equals_expanded_with_gradients(config, masked):
    attention = make_attention(config, 0).double()
    random_weights(attention)
    inputs = parts(config, 6)
    mask = torch.ones(6, 6, dtype=torch.bool).tril() & ~torch.ones(6, 6, dtype=torch.bool).tril(-3) if masked else None
    expanded, absorbed = attention.expand(*inputs, mask), attention.absorb(*inputs, mask)
    torch.testing.assert_close(absorbed, expanded, rtol=1e-12, atol=1e-12)
    wanted = (*inputs, attention.kv_up.weight)
    pull = torch.randn_like(expanded)
    for one, other in zip(
        torch.autograd.grad(expanded, wanted, pull), torch.autograd.grad(absorbed, wanted, pull), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_absorbed_is_multi_query_attention_over_what_is_cached(config):
    attention = make_attention(config, 0).double()
    q_nope, q_rope, latent, k_rope = parts(config, 5)
    up = attention.kv_up.weight.unflatten(0, (config.heads, 12))
    q = torch.cat((torch.einsum("bhtn,hnc->bhtc", q_nope, up[:, :7]), q_rope), -1)
    k = torch.cat((latent, k_rope), -1)
    scores = torch.einsum("bhtw,bsw->bhts", q, k[:, 0]) / 11**0.5
    weights = scores.masked_fill(~torch.ones(5, 5, dtype=torch.bool).tril(), -torch.inf).softmax(-1)
    expected = torch.einsum("bhts,bsc,hvc->bhtv", weights, latent[:, 0], up[:, 7:])
    torch.testing.assert_close(attention.absorb(q_nope, q_rope, latent, k_rope, None), expected)


def test_no_single_matrix_absorbs_a_rotation():
    """Were the expanded key rotated, the matrix between query and latent would change with every offset."""
    up = torch.randn(4, 3, dtype=torch.float64)

    def between(offset: float) -> torch.Tensor:
        angle = torch.tensor(offset * 0.3, dtype=torch.float64)
        turn = torch.stack((torch.stack((angle.cos(), -angle.sin())), torch.stack((angle.sin(), angle.cos()))))
        return up.T @ torch.block_diag(turn, turn)

    assert (between(1) - between(0)).abs().max() > 0.1
    assert (between(2) - between(1)).abs().max() > 0.1


@pytest.mark.parametrize("mode", ["windowed", "padded", "plain"])
def test_generates_the_same_with_and_without_a_cache(config, build, mode):
    if mode == "windowed":
        config = config.replace(window=3, windowed_layers=(0, 2))
    model = build(config)
    ids = torch.randint(0, config.vocab, (2, 5))
    mask = torch.tensor([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]]) if mode == "padded" else None
    cached = generate(model, ids, 9, attention_mask=mask)
    assert cached.shape == (2, 14)
    assert torch.equal(cached, generate(model, ids, 9, attention_mask=mask, cached=False))


def test_steps_through_a_cache_equal_one_pass(config, build):
    model = build(config)
    ids = torch.randint(0, config.vocab, (2, 11))
    cache = KVCache(config)
    with torch.no_grad():
        whole = model(ids)
        steps = [model(part, cache) for part in ids.split([4, 1, 3, 1, 1, 1], 1)]
    torch.testing.assert_close(torch.cat(steps, 1), whole, rtol=1e-10, atol=1e-10)


def test_the_cache_holds_what_the_budget_counts(config, build):
    cache = KVCache(config)
    with torch.no_grad():
        build(config).to(torch.bfloat16)(torch.randint(0, config.vocab, (2, 7)), cache)
    assert cache.nbytes == 2 * 7 * config.layers * (13 + 4) * 2 == kv_cache(config, tokens=7, batch=2).bytes
    layer = cache.layers[0]
    assert (layer.keys.shape[1:], layer.values.shape[1:]) == ((1, 24, 13), (1, 24, 4))


def test_the_built_model_has_the_counted_parameters(config):
    assert parameter_count(Decoder(config)) == parameters(config).total


def test_deepseek_v3_caches_576_values_a_token_and_layer():
    config = families.get("DeepSeek-V3")
    with torch.device("meta"):
        attention = make_attention(config, 0)
    peer_sizes_of_v3 = DeepseekV3Config()
    with torch.device("meta"):
        peer = DeepseekV3Attention(peer_sizes_of_v3, 0)
    assert parameter_count(attention) == parameter_count(peer)
    assert attention.kv_down.out_features == peer.kv_a_proj_with_mqa.out_features == 576
    assert kv_cache(config).bytes_per_token == 70_272  # as tabulated for DeepSeek-V3 (2505.09343)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"latent": None}, r"^latent must be given for latent attention, got None$"),
        ({"attention_bias": "qo"}, r"^attention_bias must be '' with latent attention, got 'qo'$"),
        ({"qk_norm": "head"}, r"^qk_norm must be 'none' with latent attention, got 'head'$"),
        ({"sinks": True}, r"^sinks must be False with latent attention, got True$"),
        ({"attention_softcap": 30.0}, r"^attention_softcap must be None with latent attention, got 30.0$"),
    ],
)
def test_what_latent_attention_lacks_is_refused(small, change, message):
    config = small.replace(**{"latent": LATENT, "rotary_width": None} | change)
    with pytest.raises(ValueError, match=message):
        MultiHeadLatentAttention(config)


def test_layers_without_rotary_positions_do_not_rotate(small):
    config = small.replace(latent=LATENT, rotary_width=None, no_rope_layers=(1,))
    x = torch.randn(1, 5, config.width)
    rotation = layer_rotation(config, torch.arange(5)[None], False, torch.float32)
    rotates, still = (make_attention(config, layer) for layer in (0, 1))
    assert not torch.allclose(rotates(x, View(rotation)), rotates(x, View()))
    assert torch.equal(still(x, View(rotation)), still(x, View()))
