"""Mamba-2 in its forms against each other, against sums written out, and against transformers' mixer."""

import pytest
import torch
from transformers import Mamba2Config
from transformers.models.mamba2.modeling_mamba2 import Mamba2Mixer

from decoder.survey.state_space import Mamba2, chunked, decay_mask, masked_attention, recurrent


@pytest.fixture
def inputs():
    torch.manual_seed(1)
    shape = (2, 11, 3)  # B, T, H
    x = torch.randn(*shape, 5, dtype=torch.float64)
    b, c = torch.randn(2, *shape, 7, dtype=torch.float64)
    return x, b, c, -torch.rand(shape, dtype=torch.float64) * 3


def test_one_output_written_out(inputs):
    x, b, c, log_decay = inputs
    y, _ = recurrent(*inputs)
    expected = torch.zeros(5, dtype=torch.float64)
    for s in range(5):
        left = 1.0
        for t in range(s + 1, 5):
            left *= log_decay[1, t, 2].exp().item()
        expected += left * (c[1, 4, 2] * b[1, s, 2]).sum() * x[1, s, 2]
    torch.testing.assert_close(y[1, 4, 2], expected)


def test_masked_attention_is_the_recurrence(inputs):
    torch.testing.assert_close(masked_attention(*inputs), recurrent(*inputs)[0], rtol=0, atol=1e-13)


@pytest.mark.parametrize("chunk", [1, 3, 4, 11, 20])
def test_chunks_of_any_size_are_the_recurrence(inputs, chunk):
    for ours, theirs in zip(chunked(*inputs, chunk), recurrent(*inputs), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-13)


def test_a_state_carries_a_sequence_on(inputs):
    whole, end = recurrent(*inputs)
    first, state = recurrent(*(part[:, :4] for part in inputs))
    second, last = recurrent(*(part[:, 4:] for part in inputs), state)
    torch.testing.assert_close(torch.cat((first, second), 1), whole)
    torch.testing.assert_close(last, end)


def test_without_decay_the_mask_is_the_causal_one():
    assert decay_mask(torch.zeros(1, 4, 2)).equal(torch.ones(4, 4).tril().expand(1, 2, 4, 4))


def test_the_mixer_of_transformers(monkeypatch):
    config = Mamba2Config(
        hidden_size=12, num_heads=6, head_dim=4, expand=2, state_size=9, n_groups=1, conv_kernel=3, chunk_size=4,
        num_hidden_layers=1, use_bias=False,
    )  # fmt: skip
    theirs = Mamba2Mixer(config, layer_idx=0).double().eval()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    ours = Mamba2(12, heads=6, head_width=4, state=9, convolution=3, chunk=5).double()
    names = {
        "in_proj.weight": "in_proj.weight", "conv.weight": "conv1d.weight", "conv.bias": "conv1d.bias",
        "step_bias": "dt_bias", "log_rate": "A_log", "skip": "D", "norm.weight": "norm.weight",
        "out_proj.weight": "out_proj.weight",
    }  # fmt: skip
    state = theirs.state_dict()
    ours.load_state_dict({name: state.pop(other) for name, other in names.items()})
    assert not state
    ours.norm.eps = theirs.norm.variance_epsilon
    x = torch.randn(2, 11, 12, dtype=torch.float64)
    monkeypatch.setattr(torch.Tensor, "float", lambda tensor: tensor.double())
    monkeypatch.setattr(torch, "float32", torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(ours(x), theirs(x), rtol=0, atol=1e-12)


def test_weights_and_state_as_the_docstring_counts_them():
    d, heads, p, n, w = 12, 5, 4, 9, 3
    mixer = Mamba2(d, heads, p, n, convolution=w)
    counted = d * (2 * heads * p + 2 * n + heads) + heads * p * d
    counted += (heads * p + 2 * n) * (w + 1) + 3 * heads + heads * p
    assert sum(weight.numel() for weight in mixer.parameters()) == counted
    _, state = recurrent(*(torch.zeros(1, 2, heads, size) for size in (p, n, n)), torch.zeros(1, 2, heads))
    assert mixer.state_numbers == state.numel() + (w - 1) * mixer.conv.in_channels
