import pytest
import torch
import torch.nn.functional as F
from transformers.activations import ACT2FN

from decoder.config import Experts
from decoder.feedforward import ACTIVATIONS, FeedForward, make_feed_forward
from decoder.survey.mixture_of_experts import MixtureOfExperts

PEERS = {"gelu": "gelu", "gelu_tanh": "gelu_pytorch_tanh", "relu": "relu", "relu2": "relu2", "silu": "silu"}


@pytest.mark.parametrize("name", PEERS)
def test_activations_are_those_of_transformers(name):
    x = torch.linspace(-6, 6, 101, dtype=torch.float64)
    torch.testing.assert_close(ACTIVATIONS[name](x), ACT2FN[PEERS[name]](x), atol=1e-12, rtol=1e-12)


def test_values_by_hand():
    minus_one = torch.tensor(-1.0, dtype=torch.float64)
    expected = {"gelu": -0.158655, "gelu_tanh": -0.158808, "relu": 0, "relu2": 0, "silu": -0.268941, "identity": -1}
    for name, value in expected.items():
        assert float(ACTIVATIONS[name](minus_one)) == pytest.approx(value, abs=1e-6), name


@pytest.mark.parametrize("activation", ["silu", "gelu", "relu", "identity"])
@pytest.mark.parametrize("bias", [False, True])
def test_gated(small, activation, bias):
    ffn = FeedForward(small.replace(activation=activation, hidden_bias=bias)).double()
    x = torch.randn(2, 3, 12).double()
    gate, up = F.linear(x, ffn.gate.weight, ffn.gate.bias), F.linear(x, ffn.up.weight, ffn.up.bias)
    f = {
        "silu": lambda g: g / (1 + (-g).exp()),
        "gelu": F.gelu,
        "relu": lambda g: g.clamp(min=0),
        "identity": lambda g: g,
    }
    expected = F.linear(f[activation](gate) * up, ffn.down.weight, ffn.down.bias)
    torch.testing.assert_close(ffn(x), expected)
    assert sum(p.numel() for p in ffn.parameters()) == 3 * 12 * 20 + bias * (20 + 20 + 12)


def test_plain(small):
    ffn = FeedForward(small.replace(activation="relu2", gated=False, hidden_bias=True)).double()
    x = torch.randn(2, 3, 12).double()
    hidden = torch.relu(F.linear(x, ffn.up.weight, ffn.up.bias)) ** 2
    torch.testing.assert_close(ffn(x), F.linear(hidden, ffn.down.weight, ffn.down.bias))
    assert sum(p.numel() for p in ffn.parameters()) == 2 * 12 * 20 + 20 + 12


def test_experts_stand_everywhere_but_on_dense_layers(small):
    config = small.replace(experts=Experts(count=4, per_token=2, hidden=8, dense_layers=(0,)))
    assert isinstance(make_feed_forward(config, 0), FeedForward)
    assert isinstance(make_feed_forward(config, 1), MixtureOfExperts)
