"""Masks against transformers' mask functions, its Longformer, written-out sets of keys, and gradients."""

import pytest
import torch
from transformers import LongformerConfig
from transformers.masking_utils import chunked_causal_mask_function, sliding_window_causal_mask_function
from transformers.models.longformer.modeling_longformer import LongformerSelfAttention

from decoder.attention import View, attend
from decoder.block import Block
from decoder.config import Config
from decoder.model import Decoder
from decoder.survey import sparse_masks as masks

TOKENS = 23


def by_pairs(sees) -> torch.Tensor:
    places, row = torch.arange(TOKENS), torch.tensor(0)
    return torch.tensor([[bool(sees(row, row, i, j)) for j in places] for i in places])


@pytest.mark.parametrize("window", [1, 5, 40])
def test_sliding_is_that_of_transformers(window):
    assert torch.equal(masks.sliding(TOKENS, window), by_pairs(sliding_window_causal_mask_function(window)))


@pytest.mark.parametrize("chunk", [1, 5, 40])
def test_chunked_is_that_of_transformers(chunk):
    peer = chunked_causal_mask_function(chunk, torch.zeros(1, dtype=torch.int64))
    assert torch.equal(masks.chunked(TOKENS, chunk), by_pairs(peer))


def test_dilated_takes_every_third_key():
    mask = masks.dilated(TOKENS, window=4, step=3)
    assert mask[20].nonzero()[:, 0].tolist() == [11, 14, 17, 20]
    assert mask[4].nonzero()[:, 0].tolist() == [1, 4]
    assert torch.equal(masks.dilated(TOKENS, 6, 1), masks.sliding(TOKENS, 6))


def test_global_tokens_are_seen_by_all_that_come_after():
    mask = masks.global_and_local(TOKENS, window=3, global_tokens=[0, 9])
    assert mask[20].nonzero()[:, 0].tolist() == [0, 9, 18, 19, 20]
    assert mask[9].nonzero()[:, 0].tolist() == list(range(10))


def test_global_and_local_without_causality_is_longformer():
    """Longformer has projections of their own for global tokens; here both sets get the same weights."""
    width, heads, side, tokens = 12, 3, 4, 24
    config = LongformerConfig(
        hidden_size=width, num_attention_heads=heads, attention_window=[2 * side], num_hidden_layers=1,
        attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    peer = LongformerSelfAttention(config, 0).double().eval()
    for name in ("query", "key", "value"):
        getattr(peer, f"{name}_global").load_state_dict(getattr(peer, name).state_dict())
    x = torch.randn(1, tokens, width, dtype=torch.float64)
    chosen = torch.zeros(1, tokens, dtype=torch.bool)
    chosen[0, [0, 13]] = True
    theirs = peer(x, torch.where(chosen, 10_000.0, 0.0).double(), is_index_masked=~chosen & chosen,
                  is_index_global_attn=chosen, is_global_attn=True)[0]  # fmt: skip
    q, k, v = (getattr(peer, name)(x).unflatten(-1, (heads, -1)).transpose(1, 2) for name in ("query", "key", "value"))
    mask = masks.global_and_local(tokens, side + 1, [0, 13], causal=False)
    ours = attend(q, k, v, mask, scale=(width / heads) ** -0.5).transpose(1, 2).flatten(2)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)


@pytest.mark.parametrize("causal", [True, False])
def test_big_bird_sees_window_global_and_random_blocks(causal):
    mask = masks.big_bird(40, block=4, window=2, global_blocks=1, random_blocks=3, causal=causal)
    by_block = mask.unflatten(0, (10, 4)).unflatten(2, (10, 4)).any(3).any(1)
    for row in range(1, 10):
        seen = set(by_block[row].nonzero()[:, 0].tolist())
        window = {row - 1, row} if causal else {row - 1, row, row + 1} & set(range(10))
        assert {0, *window} <= seen
        others = row + 1 if causal else 10
        assert len(seen) == min(len({0, *window}) + 3, others)
    assert by_block[0].all() == (not causal)
    assert torch.equal(mask & masks.full(40), mask) == causal
    again = masks.big_bird(40, 4, 2, 1, 3, seed=1, causal=causal)
    assert not torch.equal(mask, again)


def test_big_bird_cuts_the_last_block():
    assert masks.big_bird(10, 4, 1, 0, 0).nonzero().tolist() == masks.chunked(10, 4).nonzero().tolist()


def sources(config: Config, layer_masks: list[torch.Tensor]) -> torch.Tensor:
    """Which inputs have a gradient in which outputs of a stack of blocks with random weights: (T, T)."""
    blocks = [Block(config, layer).double() for layer in range(len(layer_masks))]
    for block in blocks:
        for parameter in block.parameters():
            torch.nn.init.normal_(parameter, std=0.4)
    x = torch.randn(1, TOKENS, config.width, dtype=torch.float64)

    def stack(x: torch.Tensor) -> torch.Tensor:
        for block, mask in zip(blocks, layer_masks, strict=True):
            x = block(x, View(mask=mask[None, None]))
        return x[0].sum(-1)

    return torch.autograd.functional.jacobian(stack, x)[:, 0].abs().sum(-1) > 0


@pytest.mark.parametrize("kind", ["sliding", "chunked", "dilated", "global", "big bird", "3:1"])
def test_reach_is_where_gradients_arrive(small, kind):
    stacks = {
        "sliding": [masks.sliding(TOKENS, 4)] * 3,
        "chunked": [masks.chunked(TOKENS, 5)] * 3,
        "dilated": [masks.dilated(TOKENS, 2, 3), masks.dilated(TOKENS, 3, 2)],
        "global": [masks.global_and_local(TOKENS, 2, [3])] * 2,
        "big bird": [masks.big_bird(TOKENS, 2, 1, 1, 1, seed) for seed in range(2)],
        "3:1": [masks.sliding(TOKENS, 3)] * 3 + [masks.full(TOKENS)],
    }
    assert torch.equal(masks.reach(stacks[kind]), sources(small, stacks[kind]))


@pytest.mark.parametrize(("window", "layers"), [(3, 1), (3, 4), (5, 3)])
def test_reach_of_windows_in_a_decoder(small, build, window, layers):
    """The decoder's own windows, not these masks: a logit has a gradient at layers * (window - 1) tokens back."""
    config = small.replace(window=window, windowed_layers=None, layers=layers)
    model: Decoder = build(config)
    embedded = []
    model.embedding.register_forward_hook(lambda _m, _i, out: embedded.append(out.requires_grad_()) or out)
    logits = model(torch.randint(0, config.vocab, (1, TOKENS)))
    (gradient,) = torch.autograd.grad(logits[0, -1].square().sum(), embedded[0])
    furthest = TOKENS - 1 - int(gradient[0].abs().sum(-1).nonzero().min())
    assert furthest == layers * (window - 1)
    assert masks.reach([masks.sliding(TOKENS, window)] * layers)[-1].sum() == furthest + 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: masks.sliding(5, 0), r"^window must be a whole number from 1, got 0$"),
        (lambda: masks.chunked(5, True), r"^chunk must be a whole number from 1, got True$"),
        (lambda: masks.dilated(5, 2, 0), r"^step must be a whole number from 1, got 0$"),
        (lambda: masks.global_and_local(5, -1, []), r"^window must be a whole number from 1, got -1$"),
        (lambda: masks.big_bird(5, 0, 1, 1, 1), r"^block must be a whole number from 1, got 0$"),
    ],
)
def test_sizes_that_show_nothing_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
