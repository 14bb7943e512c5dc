"""Gated recurrences against transformers' own and against what they must recall."""

import pytest
import torch
import torch.nn.functional as F
from transformers import RecurrentGemmaConfig
from transformers.models.qwen3_next.modeling_qwen3_next import (
    torch_chunk_gated_delta_rule,
    torch_recurrent_gated_delta_rule,
)
from transformers.models.recurrent_gemma.modeling_recurrent_gemma import RecurrentGemmaRglru

from decoder.survey.gated_recurrence import RGLRU, gated_delta_rule, gated_linear_attention
from decoder.survey.state_space import masked_attention


@pytest.fixture
def inputs():
    torch.manual_seed(2)
    shape = (2, 9, 3)
    q, k = (F.normalize(torch.randn(*shape, 6, dtype=torch.float64), dim=-1) for _ in range(2))
    v = torch.randn(*shape, 5, dtype=torch.float64)
    log_decay, beta = -torch.rand(shape, dtype=torch.float64), torch.rand(shape, dtype=torch.float64)
    return q, k, v, log_decay, beta


def in_float64(patch) -> None:
    patch.setattr(torch, "float32", torch.float64)
    patch.setattr(torch.Tensor, "float", lambda tensor: tensor.double())


@pytest.mark.parametrize("peer", [torch_recurrent_gated_delta_rule, torch_chunk_gated_delta_rule])
def test_the_delta_rule_of_transformers(inputs, peer, monkeypatch):
    q, k, v, log_decay, beta = inputs
    with monkeypatch.context() as patch:
        in_float64(patch)
        expected, _ = peer(q, k, v, g=log_decay, beta=beta)
    ours = gated_delta_rule(q * 6**-0.5, k, v, log_decay, beta)  # the peer divides its queries
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-12)


def test_without_erasing_it_is_masked_attention(inputs):
    q, k, v, log_decay, _ = inputs
    expected = masked_attention(v, k, q, log_decay)
    torch.testing.assert_close(gated_linear_attention(q, k, v, log_decay), expected, rtol=0, atol=1e-13)


def test_a_key_written_twice_recalls_the_second_value(inputs):
    _, k, v, _, _ = inputs
    k = k[:, :1].expand(-1, 2, -1, -1)
    v, ones, zeros = v[:, :2], torch.ones(2, 2, 3).double(), torch.zeros(2, 2, 3).double()
    torch.testing.assert_close(gated_delta_rule(k, k, v, zeros, ones)[:, 1], v[:, 1])
    torch.testing.assert_close(gated_linear_attention(k, k, v, zeros)[:, 1], v[:, 0] + v[:, 1])


def test_the_unit_of_transformers(monkeypatch):
    theirs = RecurrentGemmaRglru(RecurrentGemmaConfig(lru_width=12, hidden_size=12, num_attention_heads=3)).double()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter)
    ours = RGLRU(12, blocks=3).double()
    ours.load_state_dict(
        {
            "rate": -theirs.recurrent_param,  # softplus of it is -log sigmoid of ours
            "recurrence_gate.weight": theirs.recurrent_gate_weight,
            "recurrence_gate.bias": theirs.recurrent_gate_bias,
            "input_gate.weight": theirs.input_gate_weight,
            "input_gate.bias": theirs.input_gate_bias,
        }
    )
    x = torch.randn(2, 7, 12, dtype=torch.float64)
    places = torch.arange(1, 8).expand(2, -1)  # at place 0 the peer leaves the square root out
    monkeypatch.setattr(RecurrentGemmaRglru._rnn_scan, "__defaults__", (torch.float64,))
    with torch.no_grad():
        torch.testing.assert_close(ours(x), theirs(x, places), rtol=0, atol=1e-12)


def test_inputs_of_one_size_keep_the_state_at_that_size():
    """sqrt(1 - a^2) keeps the variance of white noise, where the input gate is open."""
    unit = RGLRU(4)
    torch.nn.init.zeros_(unit.recurrence_gate["weight"])
    torch.nn.init.zeros_(unit.input_gate["weight"])
    torch.nn.init.constant_(unit.input_gate["bias"], 30.0)
    torch.nn.init.constant_(unit.rate, 3.0)
    h = unit(torch.randn(300, 60, 4))
    assert abs(h[:, -1].std().item() - 1) < 0.05


def test_a_state_carries_the_sequence_on():
    unit, x = RGLRU(6, blocks=2), torch.randn(1, 8, 6)
    whole = unit(x)
    torch.testing.assert_close(unit(x[:, 5:], whole[:, 4]), whole[:, 5:])
    assert unit.state_numbers == whole[0, -1].numel()


def test_blocks_that_do_not_divide_are_refused():
    with pytest.raises(ValueError, match=r"^blocks must divide width 12, got 5$"):
        RGLRU(12, 5)
