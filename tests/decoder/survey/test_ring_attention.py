"""The ring against torch's attention, and its traffic against a hand count."""

import pytest
import torch
import torch.nn.functional as F

from decoder.survey.ring_attention import OnlineSoftmax, ring_attention


def tensors(tokens: int = 12, grad: bool = False) -> list[torch.Tensor]:
    shapes = ((2, 6, tokens, 5), (2, 3, tokens, 5), (2, 3, tokens, 5))
    return [torch.randn(*shape, dtype=torch.float64).requires_grad_(grad) for shape in shapes]


@pytest.mark.parametrize("devices", [1, 2, 3, 12])
def test_equals_full_attention_and_its_gradients(devices):
    inputs = tensors(grad=True)
    ring = ring_attention(*inputs, devices).output
    whole = F.scaled_dot_product_attention(*inputs, is_causal=True, enable_gqa=True)
    torch.testing.assert_close(ring, whole, rtol=1e-12, atol=1e-12)
    pull = torch.randn_like(whole)
    for one, other in zip(
        torch.autograd.grad(ring, inputs, pull), torch.autograd.grad(whole, inputs, pull), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-11)


def test_scores_that_overflow_an_exponential():
    q, k, v = tensors()
    ring = ring_attention(1e3 * q, 1e3 * k, v, 4).output
    whole = F.scaled_dot_product_attention(1e3 * q, 1e3 * k, v, is_causal=True, enable_gqa=True)
    assert (1e3 * q[0, 0] @ (1e3 * k[0, 0]).T).max() > 1e5
    torch.testing.assert_close(ring, whole, rtol=1e-10, atol=1e-10)


def test_each_device_sends_every_other_stretch_once():
    q, k, v = tensors(tokens=12)
    ring = ring_attention(q, k, v, 4)
    stretch_of_keys_and_values = 2 * 2 * 3 * 3 * 5  # key and value, batch, kv_heads, tokens, width
    assert ring.sent == (3 * stretch_of_keys_and_values,) * 4
    assert sum(ring.sent) == 3 * (k.numel() + v.numel())
    assert ring_attention(q, k, v, 1).sent == (0,)


def test_causality_leaves_early_devices_idle():
    ring = ring_attention(*tensors(tokens=12), 4)
    assert ring.blocks == (1, 2, 3, 4)
    assert ring.largest_block == 2 * 6 * 3 * 3


@pytest.mark.parametrize("sizes", [(7,), (1, 6), (3, 3, 1)])
def test_a_softmax_in_parts_is_the_softmax(sizes):
    scores, v = torch.randn(1, 2, 4, 7, dtype=torch.float64), torch.randn(1, 2, 7, 3, dtype=torch.float64)
    state = OnlineSoftmax.before(torch.zeros(1, 2, 4, 3, dtype=torch.float64))
    for some, values in zip(scores.split(sizes, -1), v.split(sizes, 2), strict=True):
        state = state.add(some, values)
    torch.testing.assert_close(state.result(), scores.softmax(-1) @ v, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("devices", [0, 5, True, 2.0])
def test_tokens_that_do_not_divide_are_refused(devices):
    with pytest.raises(ValueError, match=rf"^devices must be a whole number that divides the 12 tokens, got {devices}"):
        ring_attention(*tensors(), devices)
