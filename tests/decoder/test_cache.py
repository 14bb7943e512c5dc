import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from decoder.cache import KVCache, LayerCache
from decoder.config import Config, RopeScaling
from decoder.model import Decoder

ONE_BY_ONE = [1] * 20
CHUNKS = [[20], ONE_BY_ONE, [2] * 10, [7, 1, 1, 6, 5], [1, 19]]
NAMES = ["prefill", "one by one", "two by two", "mixed", "1 + 19"]
DESIGNS = {
    "default": {},
    "multi-query": {"kv_heads": 1},
    "window": {"window": 5},
    "window in places": {"window": 5, "windowed_layers": (0, 2)},
    "window, own base": {"window": 5, "windowed_layers": (1,), "rope_base_windowed": 100.0},
    "no rotation in places": {"no_rope_layers": (1,), "window": 4, "windowed_layers": (0, 2)},
    "alibi": {"positions": "alibi"},
    "alibi, window": {"positions": "alibi", "window": 4},
    "learned": {"positions": "learned"},
    "sinusoidal": {"positions": "sinusoidal"},
    "none": {"positions": "none"},
    "sinks and cap": {"sinks": True, "attention_softcap": 5.0, "window": 3},
    "qk norm": {"qk_norm": "full", "rope_pairing": "half", "rotary_width": 2},
    "yarn": {"rope_scaling": RopeScaling("yarn", 4.0, 8)},
    "parallel": {"block": "parallel"},
}


def read_in_chunks(model, ids, chunks, attention_mask=None):
    cache, scores, start = KVCache(model.config, 22), [], 0
    for size in chunks:
        here = slice(start, start + size)
        mask = None if attention_mask is None else attention_mask[:, here]
        scores.append(model(ids[:, here], cache, mask))
        start += size
    return torch.cat(scores, 1), cache


@pytest.mark.parametrize("chunks", CHUNKS, ids=NAMES)
@pytest.mark.parametrize("design", DESIGNS)
def test_reading_in_chunks_equals_the_full_pass(small, build, design, chunks):
    model = build(small.replace(**DESIGNS[design]))
    ids = torch.randint(31, (2, 20))
    torch.testing.assert_close(read_in_chunks(model, ids, chunks)[0], model(ids), atol=1e-12, rtol=0)


@pytest.mark.parametrize("chunks", CHUNKS, ids=NAMES)
@pytest.mark.parametrize("design", DESIGNS)
def test_a_padded_row_scores_as_it_does_alone(small, build, design, chunks):
    model = build(small.replace(**DESIGNS[design]))
    ids = torch.randint(31, (2, 20))
    mask = torch.ones_like(ids)
    mask[0, :4] = 0
    scores, cache = read_in_chunks(model, ids, chunks, mask)
    torch.testing.assert_close(scores[:1, 4:], model(ids[:1, 4:]), atol=1e-12, rtol=0)
    torch.testing.assert_close(scores[1:], model(ids[1:]), atol=1e-12, rtol=0)
    assert cache.padding.flatten().tolist() == [4, 0]
    assert torch.isfinite(scores).all()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_any_design_reads_the_same_in_any_chunks(data):
    """The choices together: a row of a padded batch, read in chunks, scores as it does alone in one pass."""
    draw = lambda *choices: data.draw(st.sampled_from(choices))
    config = Config(
        vocab=31, width=12, layers=3, heads=6, kv_heads=draw(1, 2, 3, 6), head_width=4, hidden=20, context=24,
        norm=draw("rms", "layer"), norm_scale=draw("weight", "one_plus_weight", "none"),
        norm_placement=draw("pre", "post", "both", "output"), final_norm=draw(True, False),
        embedding_norm=draw(True, False), residual_scale=draw(1.0, 1.5),
        qk_norm=draw("none", "head", "full", "per_head_weights"),
        positions=draw("rotary", "learned", "sinusoidal", "alibi", "none"), rope_pairing=draw("adjacent", "half"),
        rope_base_windowed=draw(None, 50.0), rotary_width=draw(2, 4), no_rope_layers=draw((), (1,)),
        rope_scaling=draw(None, RopeScaling("llama3", 4.0, 16), RopeScaling("yarn", 4.0, 16)),
        attention_bias=draw("", "qkv", "qkvo"), attention_scale=draw(None, 0.3), attention_softcap=draw(None, 4.0),
        window=4, windowed_layers=draw((), (0, 2), (0, 1, 2)), sinks=draw(True, False),
        activation=draw("silu", "gelu_tanh", "relu2"), gated=draw(True, False), hidden_bias=draw(True, False),
        tied=draw(True, False), embedding_width=draw(None, 5),
        logit_scale=draw(1.0, 0.5), logit_softcap=draw(None, 9.0),
    )  # fmt: skip
    if config.norm_placement == "pre":
        config = config.replace(block=draw("serial", "parallel"), parallel_norms=draw(1, 2))
    torch.manual_seed(0)
    model, padding = Decoder(config).double(), draw(0, 3, 7)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    ids = torch.randint(31, (2, 20))
    mask = torch.ones_like(ids)
    mask[0, :padding] = 0
    with torch.no_grad():
        scores, _ = read_in_chunks(model, ids, draw(*CHUNKS), mask)
        torch.testing.assert_close(scores[:1, padding:], model(ids[:1, padding:]), atol=1e-12, rtol=1e-12)
        torch.testing.assert_close(scores[1:], model(ids[1:]), atol=1e-12, rtol=1e-12)


def test_positions_go_on_from_the_cached_tokens(small, build):
    # the fault of Blaizzy/mlx-vlm#1983: each decoded token at position 0
    model, seen = build(small), []
    model._embed = lambda ids, positions, embed=model._embed: seen.append(positions.tolist()) or embed(ids, positions)
    read_in_chunks(model, torch.randint(31, (1, 8)), [5, 1, 1, 1])
    assert seen == [[[0, 1, 2, 3, 4]], [[5]], [[6]], [[7]]]


def test_positions_count_the_real_tokens_of_each_row(small, build):
    # the fault of unslothai/unsloth#3699: one counter for all rows
    model, seen = build(small), []
    model._embed = lambda ids, positions, embed=model._embed: seen.append(positions.tolist()) or embed(ids, positions)
    mask = torch.tensor([[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]])
    read_in_chunks(model, torch.randint(31, (2, 6)), [5, 1], mask)
    assert seen == [[[-2, -1, 0, 1, 2], [0, 1, 2, 3, 4]], [[3], [5]]]


def test_an_offset_set_back_to_zero_changes_the_scores(small, build):
    model, ids = build(small), torch.randint(31, (1, 9))
    full = model(ids)[:, -1]
    cache = KVCache(small)
    model(ids[:, :8], cache)
    model._view = lambda positions, *rest, view=model._view: view(torch.zeros_like(positions), *rest)
    assert (model(ids[:, 8:], cache)[:, -1] - full).abs().max().item() > 1e-3


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_bytes_are_those_of_compact_keys_and_values(small, dtype):
    model, cache = Decoder(small).to(dtype), KVCache(small, 11)
    assert (cache.nbytes, cache.reserved_nbytes, cache.length) == (0, 0, 0)
    model(torch.randint(31, (2, 7)), cache)
    per_token = 2 * 3 * 3 * 4 * dtype.itemsize  # K and V, layers, key/value heads, head width
    assert cache.layers[0].keys.shape == (2, 3, 11, 4)
    assert (cache.nbytes, cache.reserved_nbytes, cache.length) == (2 * 7 * per_token, 2 * 11 * per_token, 7)


def test_a_windowed_layer_holds_its_window(small):
    config = small.replace(window=5, windowed_layers=(0, 2))
    model, cache = Decoder(config), KVCache(config)
    model(torch.randint(31, (1, 3)), cache)
    assert [layer.held for layer in cache.layers] == [3, 3, 3]
    model(torch.randint(31, (1, 9)), cache)
    assert [layer.held for layer in cache.layers] == [5, 12, 5]
    assert [layer.keys.shape[2] for layer in cache.layers] == [5, 24, 5]


def test_what_fits_the_ring_is_not_copied():
    """Prefill up to the capacity, and any single step, return the ring itself: no more keys than it holds."""
    ring = LayerCache(5)
    for size in (2, 3, 1, 1):
        keys, values = ring.update(torch.zeros(1, 1, size, 2), torch.ones(1, 1, size, 3))
        assert keys.shape[2] == ring.held
        assert (keys.data_ptr(), values.data_ptr()) == (ring.keys.data_ptr(), ring.values.data_ptr())
    keys, _ = ring.update(torch.zeros(1, 1, 2, 2), torch.ones(1, 1, 2, 3))
    assert keys.shape[2] == 7 and keys.data_ptr() != ring.keys.data_ptr()


def test_one_layer_is_enough(small, build):
    model, cache = build(small.replace(layers=1)), KVCache(small.replace(layers=1))
    model(torch.randint(31, (2, 3)), cache)
    assert cache.length == 3
    with pytest.raises(ValueError, match=r"^ids must have the 2 rows of the cache, got 1$"):
        model(torch.randint(31, (1, 1)), cache)


def test_the_ring_says_which_tokens_it_returns():
    """Keys that carry their own number come back in the order that `indices` announces."""
    for chunks in ([2, 1, 1, 1, 1, 1, 4, 1, 9, 1, 1], [5, 5, 1], [1] * 12, [12, 1]):
        ring, start = LayerCache(5), 0
        for size in chunks:
            announced = ring.indices(size)
            numbers = torch.arange(start, start + size).view(1, 1, size, 1)
            keys, values = ring.update(numbers, -numbers)
            start += size
            assert keys.flatten().tolist() == announced.tolist() == (-values.flatten()).tolist()
            assert set(range(max(0, start - 4 - size), start)) <= set(announced.tolist()) or size == 1
            assert set(range(max(0, start - 5), start)) <= set(announced.tolist())


def test_refusals(small, build):
    model = build(small)
    with pytest.raises(ValueError, match=r"^capacity must be a whole number from 1 to 24, got 25$"):
        KVCache(small, 25)
    cache = KVCache(small, 6)
    model(torch.randint(31, (2, 5)), cache)
    with pytest.raises(ValueError, match=r"^ids must fit the cache of 6 tokens, got 7 with the cached ones$"):
        model(torch.randint(31, (2, 2)), cache)
    with pytest.raises(ValueError, match=r"^ids must have the 2 rows of the cache, got 3$"):
        model(torch.randint(31, (3, 1)), cache)
    with pytest.raises(ValueError, match=r"^cache must have been made for the config of this model"):
        build(small.replace(rope_base=9.0))(torch.randint(31, (2, 1)), cache)
    late = torch.tensor([[0], [1]])
    with pytest.raises(ValueError, match=r"^attention_mask must be left padding: a row has padding after its cached"):
        model(torch.randint(31, (2, 1)), cache, late)
    assert cache.length == 5
