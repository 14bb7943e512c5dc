import pytest
import torch
import torch.nn.functional as F

from decoder.config import Config
from decoder.norms import LayerNorm, RMSNorm, layer_norm, make_norm, rms_norm


def test_three_four():
    x = torch.tensor([3.0, 4.0], dtype=torch.float64)
    torch.testing.assert_close(
        RMSNorm(2, eps=0.0).double()(x), torch.tensor([0.848528, 1.131371]).double(), atol=1e-6, rtol=0
    )
    torch.testing.assert_close(LayerNorm(2, eps=0.0).double()(x), torch.tensor([-1.0, 1.0]).double())


def test_equal_to_torch():
    x = torch.randn(5, 7, dtype=torch.float64)
    weight, bias = torch.randn(7).double(), torch.randn(7).double()
    rms, layer = RMSNorm(7, eps=1e-3).double(), LayerNorm(7, eps=1e-3, bias=True).double()
    for norm in (rms, layer):
        norm.weight.data.copy_(weight)
    layer.bias.data.copy_(bias)
    torch.testing.assert_close(rms(x), F.rms_norm(x, (7,), weight, 1e-3), atol=1e-14, rtol=1e-14)
    torch.testing.assert_close(layer(x), F.layer_norm(x, (7,), weight, bias, 1e-3), atol=1e-14, rtol=1e-14)


def test_layer_norm_is_rms_norm_of_the_centred_input():
    x = torch.randn(4, 9, dtype=torch.float64)
    torch.testing.assert_close(layer_norm(x, 1e-6), rms_norm(x - x.mean(-1, keepdim=True), 1e-6))


def test_half_precision_reduces_in_32_bits():
    # the fault of pytorch/pytorch#133085: squares beyond 65,504
    found = RMSNorm(2, eps=1e-5).half()(torch.tensor([300.0, 400.0]).half())
    assert found.dtype == torch.float16
    torch.testing.assert_close(found.float(), torch.tensor([0.848528, 1.131371]), atol=1e-3, rtol=0)


def test_eps_is_not_scaled_with_the_input():
    # the fault of apple/coremltools#2821
    x = torch.tensor([10.0, 0, 0, 0], dtype=torch.float64)
    assert float(x[0] / rms_norm(x, 0.01)[0]) == pytest.approx(5.001, abs=1e-6)
    assert float(rms_norm(x, 0.01)[0]) == pytest.approx(1.9996, abs=1e-6)


def test_one_plus_weight():
    # the fault of linkedin/Liger-Kernel#74: the stored weight taken for the scale
    norm = RMSNorm(2, eps=0.0, scale="one_plus_weight").double()
    assert norm.weight.tolist() == [0, 0]
    norm.weight.data.copy_(torch.tensor([0, 0.5]))
    found = norm(torch.tensor([3.0, 4.0]).double())
    torch.testing.assert_close(found, torch.tensor([0.848528, 1.697056]).double(), atol=1e-6, rtol=0)


def test_the_result_is_cast_back_before_it_is_scaled():
    norm = RMSNorm(3).bfloat16()
    norm.weight.data.copy_(torch.tensor([1.7, 0.3, 2.9]))
    x = torch.tensor([1.1, -2.3, 0.7]).bfloat16()
    cast_first = rms_norm(x.float(), 1e-6).bfloat16() * norm.weight
    cast_last = (rms_norm(x.float(), 1e-6) * norm.weight.float()).bfloat16()
    assert torch.equal(norm(x), cast_first) and not torch.equal(cast_first, cast_last)


def test_float64_is_kept():
    assert RMSNorm(3).double()(torch.randn(3).double()).dtype == torch.float64


def test_one_scale_a_head():
    norm = RMSNorm(4, heads=3)
    assert norm.weight.shape == (3, 4)
    norm.weight.data[1] = 2
    x = torch.randn(2, 5, 3, 4)
    torch.testing.assert_close(norm(x), rms_norm(x, 1e-6) * torch.tensor([1, 2, 1])[:, None])


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({}, ["weight"]),
        ({"norm_scale": "none"}, []),
        ({"norm": "layer"}, ["weight"]),
        ({"norm": "layer", "norm_bias": True}, ["weight", "bias"]),
        ({"norm": "layer", "norm_scale": "none"}, []),
    ],
)
def test_make_norm_has_the_parameters_that_are_asked_for(changes, names):
    norm = make_norm(Config(**changes), 5)
    assert [name for name, _ in norm.named_parameters()] == names
    x = torch.randn(2, 5)
    reference = F.layer_norm(x, (5,), eps=1e-6) if changes.get("norm") == "layer" else F.rms_norm(x, (5,), eps=1e-6)
    torch.testing.assert_close(norm(x), reference)


def test_jacobian():
    x, weight, eps, d = torch.randn(6).double(), torch.randn(6).double(), 1e-3, 6
    norm = RMSNorm(d, eps).double()
    norm.weight.data.copy_(weight)
    r = (x.square().mean() + eps).sqrt()
    expected = torch.diag(weight) / r - torch.outer(weight * x, x) / (d * r**3)
    torch.testing.assert_close(torch.autograd.functional.jacobian(norm, x), expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize(("norm", "peer", "eps"), [(RMSNorm, F.rms_norm, 1e-6), (LayerNorm, F.layer_norm, 1e-5)])
def test_norms_have_a_weight_and_a_small_epsilon_unless_they_are_told_otherwise(norm, peer, eps):
    x = 1e-3 * torch.randn(5, 7).double()
    module = norm(7).double()
    torch.testing.assert_close(module(x), peer(x, (7,), eps=eps))
    assert [name for name, _ in module.named_parameters()] == ["weight"]
