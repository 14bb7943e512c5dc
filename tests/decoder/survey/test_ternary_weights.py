"""Ternary layers against transformers' BitNet functions, and what training through the rounding can do."""

import pytest
import torch
import torch.nn.functional as F
from transformers.integrations.bitnet import ActQuant, WeightQuant

from decoder.model import Decoder
from decoder.survey.ternary_weights import (
    TernaryLinear,
    eight_bits,
    make_ternary,
    pack,
    straight_through,
    ternary,
    unpack,
)


def uncompiled(function, x):
    """The forward of the peer's autograd function, without the compiler that it is wrapped in."""
    return function.forward.__wrapped__(None, x)


def test_the_layer_of_transformers():
    layer = TernaryLinear(13, 7)
    x = torch.randn(4, 13)
    expected = F.linear(uncompiled(ActQuant, x), uncompiled(WeightQuant, layer.weight.detach()))
    torch.testing.assert_close(layer(x).detach(), expected)


def test_three_values_and_the_mean_size():
    values, scale = ternary(torch.tensor([[0.2, -0.1, 1.1], [-0.6, 0.0, 0.4]]))
    assert values.tolist() == [[0, 0, 1], [-1, 0, 1]]
    assert scale.item() == pytest.approx(2.4 / 6)


def test_inputs_lose_at_most_half_a_level():
    x = torch.randn(5, 9)
    levels, step = eight_bits(x)
    assert (levels == levels.round()).all()
    assert ((levels * step - x).abs() <= step / 2 + 1e-7).all()


def test_all_zeros_stay_zero():
    assert (TernaryLinear(4, 3)(torch.zeros(2, 4)) == 0).all()
    assert ternary(torch.zeros(3, 3))[0].eq(0).all()


def test_the_gradient_is_that_of_the_rounded_layer_handed_to_full_weights():
    layer, x = TernaryLinear(6, 5), torch.randn(3, 6)
    layer(x).square().sum().backward()
    values, scale = ternary(layer.weight.detach())
    levels, step = eight_bits(x)
    rounded = (values * scale).requires_grad_()
    F.linear(levels * step, rounded).square().sum().backward()
    torch.testing.assert_close(layer.weight.grad, rounded.grad)


def test_rounding_alone_would_have_no_gradient():
    x = torch.tensor([0.3], requires_grad=True)
    straight_through(x, x.round()).backward()
    assert x.grad.item() == 1


def test_small_steps_add_up_to_a_flip():
    layer = TernaryLinear(8, 8)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
    before = ternary(layer.weight.detach())[0]
    x, target = torch.randn(64, 8), torch.randn(64, 8)
    losses = []
    for _ in range(100):
        optimizer.zero_grad()
        loss = F.mse_loss(layer(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert not ternary(layer.weight.detach())[0].equal(before)
    assert losses[-1] < losses[0]


def test_a_decoder_becomes_ternary_but_for_its_ends(small):
    model = make_ternary(Decoder(small.replace(attention_bias="")))
    kinds = {name: type(module) for name, module in model.named_modules()}
    assert kinds["blocks.0.feed_forward.down"] is TernaryLinear
    assert kinds["blocks.2.attention.k"] is TernaryLinear
    assert kinds["head"] is torch.nn.Linear
    assert model.head.weight is model.embedding.weight
    assert model(torch.tensor([[1, 2, 3]])).isfinite().all()


def test_a_bias_is_refused(small):
    with pytest.raises(ValueError, match=r"^blocks\.0\.attention\.q must have no bias to become ternary$"):
        make_ternary(Decoder(small.replace(attention_bias="q")))


@pytest.mark.parametrize("count", [1, 5, 23])
def test_five_values_a_byte(count):
    values = torch.randint(-1, 2, (count,))
    packed = pack(values)
    assert packed.nbytes == -(-count // 5)
    assert unpack(packed, count).equal(values)
