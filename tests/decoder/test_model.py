import math

import pytest
import torch
import torch.nn.functional as F

from decoder.cache import KVCache
from decoder.config import Config
from decoder.model import Decoder, parameter_count


def test_the_default_design_counts_100_092_672():
    with torch.device("meta"):
        model = Decoder(Config())
    assert parameter_count(model) == 100_092_672
    assert len(list(model.parameters())) == 110
    assert parameter_count(model.blocks[0]) == 6_292_992
    with torch.device("meta"):
        assert parameter_count(Decoder(Config(tied=False))) == 124_668_672


def test_tied_is_one_parameter_and_stays_so():
    model = Decoder(Config(vocab=31, width=12, heads=3, kv_heads=1, layers=1)).double()
    assert model.head.weight is model.embedding.weight
    assert "head.weight" not in dict(model.named_parameters())
    assert model.state_dict()["head.weight"].data_ptr() == model.state_dict()["embedding.weight"].data_ptr()


def test_tied_scores_are_products_with_the_rows_of_the_embedding():
    # the fault of sgl-project/sglang#1508: a head left at its start
    model = Decoder(Config(vocab=3, width=2, heads=1, kv_heads=1, layers=1, hidden=3, final_norm=False)).double()
    model.embedding.weight.data.copy_(torch.tensor([[1, 0], [0, 1], [1, 1]]))
    assert model._logits(torch.tensor([[[1.0, 2.0]]]).double()).flatten().tolist() == [1, 2, 3]


def test_loading_a_state_without_a_head_keeps_the_tie(small):
    source, target = Decoder(small), Decoder(small)
    state = {name: tensor for name, tensor in source.state_dict().items() if name != "head.weight"}
    missing, unexpected = target.load_state_dict(state, strict=False)
    assert (missing, unexpected) == (["head.weight"], [])
    ids = torch.randint(31, (1, 5))
    assert torch.equal(target(ids), source(ids))


def test_initial_standard_deviations():
    model = Decoder(Config(vocab=3_000, layers=12, width=192, heads=3, kv_heads=1, hidden=300))
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            assert torch.equal(parameter, torch.ones_like(parameter))
            continue
        residual = name.endswith(("attention.o.weight", "feed_forward.down.weight"))
        std = 0.02 / math.sqrt(24) if residual else 0.02
        assert float(parameter.detach().std()) == pytest.approx(std, rel=0.03), name


def test_biases_and_sinks_start_at_zero(small):
    model = Decoder(small.replace(attention_bias="qkvo", hidden_bias=True, head_bias=True, sinks=True))
    vectors = [p for name, p in model.named_parameters() if name.endswith(("bias", "sinks"))]
    assert len(vectors) == 3 * (4 + 3 + 1) + 1 and not any(p.any() for p in vectors)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (torch.zeros(4, dtype=torch.int64), "ids must have rank 2, (B, T), got shape (4,)"),
        (torch.zeros(1, 4), "ids must be int64, got torch.float32"),
        (torch.zeros(1, 4, dtype=torch.int32), "ids must be int64, got torch.int32"),
        (torch.zeros(2, 0, dtype=torch.int64), "ids must hold at least one token, got shape (2, 0)"),
        (torch.zeros(0, 2, dtype=torch.int64), "ids must hold at least one token, got shape (0, 2)"),
        (torch.zeros(1, 25, dtype=torch.int64), "ids must fit the context of 24 tokens, got 25 with the cached ones"),
        (torch.tensor([[3, -1]]), "ids must be from 0 to 30, got -1"),
        (torch.tensor([[3, 31]]), "ids must be from 0 to 30, got 31"),
        (torch.tensor([[0, 31]]), "ids must be from 0 to 30, got 31"),
    ],
)
def test_what_cannot_be_read_is_refused(small, ids, message):
    with pytest.raises(ValueError) as refusal:
        Decoder(small)(ids)
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        ([[1, 1]], "attention_mask must have the shape of ids (1, 3), got (1, 2)"),
        ([[1, 2, 1]], "attention_mask must hold 0 and 1 only"),
        ([[1, 0, 1]], "attention_mask must be left padding: zeros first, then ones, in every row"),
        ([[1, 1, 0]], "attention_mask must be left padding: zeros first, then ones, in every row"),
        ([[0, 1, 0]], "attention_mask must be left padding: zeros first, then ones, in every row"),
    ],
)
def test_masks_that_are_not_left_padding_are_refused(small, mask, message):
    with pytest.raises(ValueError) as refusal:
        Decoder(small)(torch.zeros(1, 3, dtype=torch.int64), attention_mask=torch.tensor(mask))
    assert str(refusal.value) == message


def test_an_end_token_is_no_padding(small, build):
    """The mask is never guessed from the ids: a pad id that is also the end id hides nothing.

    The fault of microsoft/onnxruntime-genai#1694.
    """
    model, ids = build(small), torch.tensor([[5, 2, 7, 2]])
    assert torch.equal(model(ids), model(ids, attention_mask=torch.ones(1, 4)))
    assert not torch.allclose(model(ids)[0, -1], model(torch.tensor([[5, 3, 7, 2]]))[0, -1])


def test_a_mask_is_made_only_where_causality_does_not_say_it(small, build):
    """Prefill, a single step, and a window that hides nothing yet take the kernel's own mask."""
    for changes in ({}, {"window": 6}):
        model, masks = build(small.replace(**changes)), []
        view = model._view
        model._view = lambda *given, view=view, masks=masks: masks.append(made := view(*given)) or made
        cache = KVCache(model.config)
        model(torch.randint(31, (1, 6)))
        for size in (6, 1, 2):
            model(torch.randint(31, (1, size)), cache)
        made = [view.mask is not None for view in masks]
        assert made == [False, False, False, True]


def test_sinusoids_are_added_and_rotations_begin_at_position_0(small, build):
    model, ids = build(small.replace(positions="sinusoidal")), torch.tensor([[4, 4, 4]])
    added = model._embed(ids, torch.arange(3)[None]) - model.embedding(ids)
    assert added[0, 0].tolist() == pytest.approx([0, 1] * 6, abs=1e-12)
    assert added[0, 1, :2].tolist() == pytest.approx([math.sin(1), math.cos(1)])
    model = build(small)
    cos, sin = model._views(torch.arange(2)[None], None, [None] * 3, torch.float64)[0].rotation
    assert cos[0, 0, :, 0].tolist() == pytest.approx([1, math.cos(1)])
    assert sin[0, 0, :, 0].tolist() == pytest.approx([0, math.sin(1)])


def test_a_narrower_embedding_has_two_matrices_without_biases(small):
    names = [name for name, _ in Decoder(small.replace(embedding_width=5)).named_parameters() if "embedding_" in name]
    assert names == ["embedding_in.weight", "embedding_out.weight"]


@pytest.mark.parametrize("scale", [2.0, 0.5])
def test_scales_of_any_size_apply(small, build, scale):
    plain, x, ids = build(small), torch.randn(1, 2, 12).double(), torch.tensor([[4, 9]])
    scaled = build(small.replace(embedding_scale=scale, logit_scale=scale))
    torch.testing.assert_close(
        scaled._embed(ids, torch.arange(2)[None]), scale * plain._embed(ids, torch.arange(2)[None])
    )
    torch.testing.assert_close(scaled._logits(x), scale * plain._logits(x))


def test_scores_of_one_token_only(small, build):
    model, ids = build(small), torch.randint(31, (2, 6))
    torch.testing.assert_close(model(ids, last_only=True), model(ids)[:, -1:])


def test_without_positions_a_full_context_is_seen_as_a_set_by_its_last_token(small, build):
    """No positions: the last token's first-layer attention ignores the order of those before it; rotary does not."""
    for positions, same in (("none", True), ("rotary", False), ("alibi", False), ("learned", False)):
        model = build(small.replace(layers=1, positions=positions))
        a, b = torch.tensor([[4, 9, 2, 7]]), torch.tensor([[9, 2, 4, 7]])
        assert torch.allclose(model(a)[0, -1], model(b)[0, -1]) == same


def test_embedding_scale_logit_scale_cap_and_head_bias(small, build):
    config = small.replace(head_bias=True, logit_scale=0.25, logit_softcap=3.0)
    model, x = build(config), torch.randn(1, 2, 12).double()
    plain = F.linear(model.final_norm(x), model.embedding.weight, model.head.bias) * 0.25
    torch.testing.assert_close(model._logits(x), 3 * torch.tanh(plain / 3))
    scaled = build(small.replace(embedding_scale=7.0))
    ids = torch.randint(31, (1, 3))
    torch.testing.assert_close(scaled._embed(ids, torch.arange(3)[None]), 7 * scaled.embedding.weight[ids])


def test_a_narrow_embedding_is_projected_in_and_out(small, build):
    model = build(small.replace(embedding_width=5))
    assert model.embedding.weight.shape == (31, 5) and model.head.weight is model.embedding.weight
    assert model.embedding_in.weight.shape == (12, 5) and model.embedding_out.weight.shape == (5, 12)
    x = torch.randn(1, 2, 12).double()
    expected = model.final_norm(x) @ model.embedding_out.weight.T @ model.embedding.weight.T
    torch.testing.assert_close(model._logits(x), expected)


def test_learned_positions_and_an_embedding_norm(small, build):
    model = build(small.replace(positions="learned", position_rows=26, embedding_norm=True))
    assert model.position_embedding.weight.shape == (26, 12)
    ids = torch.randint(31, (1, 3))
    summed = model.embedding.weight[ids] + model.position_embedding.weight[:3]
    expected = F.rms_norm(summed, (12,), model.embedding_norm.weight, small.norm_eps)
    torch.testing.assert_close(model._embed(ids, torch.arange(3)[None]), expected)


def test_no_final_norm(small, build):
    assert "final_norm.weight" not in build(small.replace(final_norm=False)).state_dict()


def test_every_parameter_has_a_gradient_under_many_choices(small, build):
    designs = [
        {},
        {"norm_placement": "both", "qk_norm": "head", "tied": False, "head_bias": True},
        {"norm": "layer", "norm_bias": True, "attention_bias": "qkvo", "hidden_bias": True, "positions": "learned"},
        {"block": "parallel", "parallel_norms": 2, "sinks": True, "attention_softcap": 20.0},
        {"embedding_width": 5, "norm_placement": "post", "residual_scale": 1.5, "embedding_norm": True},
    ]
    for design in designs:
        model = build(small.replace(**design))
        ids = torch.arange(24)[None]
        model(ids)[0, :-1].log_softmax(-1).gather(-1, ids[0, 1:, None]).sum().backward()
        for name, parameter in model.named_parameters():
            # a bias of the keys adds the same to all scores of a query: the softmax ignores it
            shifts_only = name.endswith("attention.k.bias") and model.config.positions != "rotary"
            assert shifts_only or parameter.grad.any(), name


def test_half_precision_runs_and_stays_in_its_dtype(small):
    for dtype in (torch.bfloat16, torch.float16):
        assert Decoder(small).to(dtype)(torch.randint(31, (1, 5))).dtype == dtype
