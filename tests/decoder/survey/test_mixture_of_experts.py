"""Mixtures of experts against transformers' blocks, against sums written out by hand, and counted."""

import contextlib

import pytest
import torch
from transformers import DeepseekV2Config, DeepseekV3Config, MixtralConfig, OlmoeConfig, Qwen2MoeConfig, Qwen3MoeConfig
from transformers.models.deepseek_v2.modeling_deepseek_v2 import DeepseekV2Moe
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3MoE
from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock
from transformers.models.olmoe.modeling_olmoe import OlmoeSparseMoeBlock
from transformers.models.qwen2_moe.modeling_qwen2_moe import Qwen2MoeSparseMoeBlock
from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeSparseMoeBlock

from decoder import families
from decoder.budget import parameters
from decoder.config import Config, Experts
from decoder.config_json import read_config
from decoder.generate import generate
from decoder.model import Decoder, parameter_count
from decoder.survey.mixture_of_experts import MixtureOfExperts, Router, recorded_routings

SIZES = {
    "hidden_size": 12, "num_hidden_layers": 5, "num_attention_heads": 6, "num_key_value_heads": 3,
    "intermediate_size": 20, "vocab_size": 31,
}  # fmt: skip
MANY = {"num_experts": 10, "num_experts_per_tok": 3, "moe_intermediate_size": 7}
DEEPSEEK = {
    **SIZES, "num_key_value_heads": 6, "n_routed_experts": 12, "num_experts_per_tok": 5, "moe_intermediate_size": 7,
    "n_shared_experts": 2, "kv_lora_rank": 9, "q_lora_rank": 8, "qk_rope_head_dim": 4, "qk_nope_head_dim": 3,
    "v_head_dim": 5,
}  # fmt: skip
CASES = {
    "Mixtral": (MixtralConfig, MixtralSparseMoeBlock, {**SIZES, "num_local_experts": 5, "num_experts_per_tok": 2}),
    "Qwen3-MoE": (Qwen3MoeConfig, Qwen3MoeSparseMoeBlock, {**SIZES, **MANY}),
    "Qwen3-MoE, normalised": (Qwen3MoeConfig, Qwen3MoeSparseMoeBlock, {**SIZES, **MANY, "norm_topk_prob": True}),
    "Qwen2-MoE": (Qwen2MoeConfig, Qwen2MoeSparseMoeBlock, {**SIZES, **MANY, "shared_expert_intermediate_size": 11}),
    "OLMoE": (OlmoeConfig, OlmoeSparseMoeBlock, {**SIZES, "num_experts": 10, "num_experts_per_tok": 3}),
    "DeepSeek-V2": (DeepseekV2Config, DeepseekV2Moe, {**DEEPSEEK, "routed_scaling_factor": 16.0}),
    "DeepSeek-V2, groups": (
        DeepseekV2Config, DeepseekV2Moe,
        {**DEEPSEEK, "topk_method": "group_limited_greedy", "n_group": 4, "topk_group": 2},
    ),
    "DeepSeek-V3": (DeepseekV3Config, DeepseekV3MoE, {**DEEPSEEK, "n_group": 4, "topk_group": 2}),
    "DeepSeek-V3, not normalised": (
        DeepseekV3Config, DeepseekV3MoE, {**DEEPSEEK, "n_group": 1, "topk_group": 1, "norm_topk_prob": False},
    ),
}  # fmt: skip


@contextlib.contextmanager
def float64_throughout(monkeypatch):
    """The peers' routers compute in float32 whatever comes in; here they do not."""
    with monkeypatch.context() as patch:
        patch.setattr(torch.Tensor, "float", lambda tensor: tensor.double())
        patch.setattr(torch, "float", torch.float64)
        patch.setattr(torch, "float32", torch.float64)
        yield


def copy_weights(ours: MixtureOfExperts, peer: torch.nn.Module) -> None:
    theirs = peer.state_dict()
    copied = {"router.linear.weight": theirs.pop("gate.weight")}
    both, down = theirs.pop("experts.gate_up_proj"), theirs.pop("experts.down_proj")
    for number in range(len(ours.experts)):
        copied[f"experts.{number}.gate.weight"], copied[f"experts.{number}.up.weight"] = both[number].chunk(2)
        copied[f"experts.{number}.down.weight"] = down[number]
    if "gate.e_score_correction_bias" in theirs:
        copied["router.selection_bias"] = theirs.pop("gate.e_score_correction_bias")
    for name in list(theirs):
        renamed = name.replace("shared_experts.", "shared.").replace("shared_expert.", "shared.")
        copied[renamed.replace("shared_expert_gate", "shared_gate").replace("_proj", "")] = theirs.pop(name)
    ours.load_state_dict(copied)


@pytest.mark.parametrize("name", CASES)
def test_the_block_of_transformers(name, monkeypatch):
    kind, block, keys = CASES[name]
    theirs = kind(**keys)
    theirs._experts_implementation = "eager"
    reading = read_config({**keys, "model_type": theirs.model_type})
    assert not reading.unsupported
    peer = block(theirs).double()
    for tensor in peer.state_dict().values():
        torch.nn.init.normal_(tensor, std=0.7)
    ours = MixtureOfExperts(reading.config, reading.config.experts).double()
    copy_weights(ours, peer)
    x = torch.randn(2, 9, 12, dtype=torch.float64)
    with float64_throughout(monkeypatch), torch.no_grad():
        expected = peer(x.clone())
    torch.testing.assert_close(ours(x).detach(), expected, rtol=0, atol=1e-12)


def test_two_of_three_experts_written_out(small):
    moe = MixtureOfExperts(small, Experts(3, 2, hidden=7, shared=1)).double()
    x = torch.randn(1, 1, 12, dtype=torch.float64)
    logits = (moe.router.linear.weight @ x[0, 0]).tolist()
    worst = logits.index(min(logits))
    kept = [i for i in range(3) if i != worst]
    parts = torch.tensor([logits[i] for i in kept], dtype=torch.float64).exp()
    expected = moe.shared(x) + sum(p / parts.sum() * moe.experts[i](x) for p, i in zip(parts, kept, strict=True))
    torch.testing.assert_close(moe(x), expected)


def test_all_experts_alike_are_one_dense_part(small):
    moe = MixtureOfExperts(small, Experts(5, 3, hidden=small.hidden)).double()
    for expert in moe.experts:
        expert.load_state_dict(moe.experts[0].state_dict())
    x = torch.randn(2, 4, 12, dtype=torch.float64)
    torch.testing.assert_close(moe(x), moe.experts[0](x))


def test_the_bias_selects_and_does_not_weight():
    router = Router(12, Experts(4, 1, hidden=7, selection_bias=True, scores="sigmoid", normalised=False)).double()
    x = torch.randn(20, 12, dtype=torch.float64)
    before = router(x)
    router.selection_bias[2] = 5.0
    after = router(x)
    assert set(after.chosen.flatten().tolist()) == {2}
    torch.testing.assert_close(after.weights[:, 0], before.scores[:, 2])
    assert not router.selection_bias.requires_grad
    assert "selection_bias" not in dict(router.named_parameters())


def test_a_token_stays_within_its_best_groups():
    experts = Experts(12, 4, hidden=7, groups=4, groups_per_token=2, group_best=2, scores="sigmoid")
    router = Router(12, experts)
    routing = router(torch.randn(50, 12))
    for scores, chosen in zip(routing.scores.tolist(), routing.chosen.tolist(), strict=True):
        ranks = [sum(sorted(scores[3 * g : 3 * g + 3])[1:]) for g in range(4)]
        best = sorted(range(4), key=lambda g: -ranks[g])[:2]
        allowed = [i for i in range(12) if i // 3 in best]
        assert sorted(chosen) == sorted(sorted(allowed, key=lambda i: -scores[i])[:4])


def test_gradients_reach_only_what_was_visited(small):
    moe = MixtureOfExperts(small, Experts(6, 2, hidden=7))
    x = torch.randn(1, 1, 12)
    chosen = set(moe.router(x).chosen.flatten().tolist())
    moe(x).sum().backward()
    touched = {i for i, expert in enumerate(moe.experts) if expert.up.weight.grad is not None}
    assert touched == chosen
    assert moe.router.linear.weight.grad.abs().sum() > 0


@pytest.mark.parametrize(
    "experts",
    [
        Experts(7, 3, hidden=11, shared=2, shared_gate=True, router_bias=True, bias=True),
        Experts(4, 1, hidden=9, dense_layers=(0, 2), selection_bias=True, scores="sigmoid"),
    ],
)
def test_a_decoder_with_experts_has_the_weights_that_the_budget_counts(small, experts):
    config = small.replace(experts=experts)
    model = Decoder(config)
    assert parameter_count(model) == parameters(config).total
    idle = sum(
        parameter_count(moe.experts[0]) * (experts.count - experts.per_token)
        for moe in model.modules()
        if isinstance(moe, MixtureOfExperts)
    )
    assert parameter_count(model) - idle == parameters(config).active
    prompt = torch.tensor([[3, 1, 4, 1, 5]])
    assert generate(model, prompt, 7).equal(generate(model, prompt, 7, cached=False))


def test_deepseek_v3_whole():
    config = families.get("DeepSeek-V3")
    with torch.device("meta"):
        model = Decoder(config)
    assert parameter_count(model) == parameters(config).total


def test_routings_of_a_pass_are_recorded_layer_by_layer(small):
    model = Decoder(small.replace(experts=Experts(4, 2, hidden=8, dense_layers=(1,))))
    with recorded_routings(model) as routings:
        model(torch.tensor([[1, 2, 3]]))
    model(torch.tensor([[1, 2, 3]]))
    assert [tuple(routing.chosen.shape) for routing in routings] == [(1, 3, 2)] * 2
    assert routings[0].load().sum() == 6


def test_experts_write_to_the_stream_as_small_as_a_dense_part():
    config = Config(width=60, layers=8, heads=2, kv_heads=1, hidden=50, vocab=20, experts=Experts(3, 1, hidden=70))
    torch.manual_seed(3)
    moe = Decoder(config).blocks[0].feed_forward
    assert abs(moe.experts[1].down.weight.std().item() - 0.02 / 16**0.5) < 3e-4
    assert abs(moe.experts[1].up.weight.std().item() - 0.02) < 1e-3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scores": "linear"}, "experts.scores must be one of 'softmax', 'sigmoid', got 'linear'"),
        ({"routed_scale": 0}, "experts.routed_scale must be a finite number above 0, got 0"),
        ({"groups": 5}, "experts.groups must divide experts.count 12, got 5"),
        ({"groups": 4, "groups_per_token": 5}, "experts.groups_per_token must be at most experts.groups 4, got 5"),
        ({"groups": 4, "group_best": 4}, "experts.group_best must be at most the 3 experts of a group, got 4"),
        ({"groups": 4}, "experts.per_token must be at most the 3 experts of experts.groups_per_token groups, got 4"),
    ],
)
def test_a_routing_that_cannot_be_is_refused(changes, message):
    with pytest.raises(ValueError) as caught:
        Experts(12, 4, hidden=8, **changes)
    assert str(caught.value) == message


def test_weights_that_are_not_normalised_are_the_scores():
    routing = Router(12, Experts(6, 2, hidden=8, normalised=False))(torch.randn(7, 12))
    best = [sorted(scores, reverse=True)[:2] for scores in routing.scores.tolist()]
    assert routing.weights.tolist() == best
