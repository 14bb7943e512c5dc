import pytest
import torch

from decoder.attention import View
from decoder.block import Block

ORDERS = {
    "pre": lambda x, f, n, a: x + f(n["in"](x)),
    "post": lambda x, f, n, a: n["post"](a * x + f(x)),
    "both": lambda x, f, n, a: x + n["out"](f(n["in"](x))),
    "output": lambda x, f, n, a: x + n["out"](f(x)),
}


@pytest.mark.parametrize("placement", ORDERS)
def test_where_the_norms_stand(small, build, placement):
    scale = 2.0 if placement == "post" else 1.0
    block = build(small.replace(norm_placement=placement, residual_scale=scale)).blocks[0]
    x, view = torch.randn(2, 5, 12).double(), View()
    expected = x
    for part, f in (("attention", lambda y: block.attention(y, view)), ("feed_forward", block.feed_forward)):
        names = {"in": f"{part}_norm", "out": f"{part}_out_norm", "post": f"{part}_post_norm"}
        norms = {key: getattr(block, name) for key, name in names.items()}
        expected = ORDERS[placement](expected, f, norms, scale)
    torch.testing.assert_close(block(x, view), expected)
    norms = [name for name, _ in block.named_parameters() if "norm" in name]
    assert len(norms) == {"pre": 2, "post": 2, "both": 4, "output": 2}[placement]


@pytest.mark.parametrize("norms", [1, 2])
def test_parallel(small, build, norms):
    block = build(small.replace(block="parallel", parallel_norms=norms)).blocks[0]
    x, view = torch.randn(2, 5, 12).double(), View()
    read = block.attention_norm(x)
    other = read if norms == 1 else block.feed_forward_norm(x)
    torch.testing.assert_close(block(x, view), x + block.attention(read, view) + block.feed_forward(other))
    assert len([name for name, _ in block.named_parameters() if "norm" in name]) == norms


def test_post_norm_output_is_normalized_and_pre_norm_keeps_the_stream(small):
    x = 100 * torch.randn(2, 5, 12)
    post, pre = Block(small.replace(norm_placement="post")), Block(small)
    torch.testing.assert_close(post(x, View()).square().mean(-1), torch.ones(2, 5))
    assert (pre(x, View()) - x).abs().max().item() < 1


def test_jacobian_of_pre_norm_keeps_the_identity(small, build):
    """J = (I + J_ffn J_norm)(I + J_attention J_norm) for one token, with the branches' Jacobians by autograd."""
    block, view = build(small).blocks[0], View()
    x = torch.randn(12).double()
    jacobian = torch.autograd.functional.jacobian
    first = lambda y: block.attention(block.attention_norm(y)[None, None], view)[0, 0]
    second = lambda y: block.feed_forward(block.feed_forward_norm(y))
    eye = torch.eye(12).double()
    expected = (eye + jacobian(second, x + first(x))) @ (eye + jacobian(first, x))
    torch.testing.assert_close(jacobian(lambda y: block(y[None, None], view)[0, 0], x), expected)


def test_a_block_is_the_first_unless_it_is_told_otherwise(small):
    assert not Block(small.replace(no_rope_layers=(0,))).attention.rotary
    assert Block(small.replace(no_rope_layers=(0,)), 1).attention.rotary
