import pytest
import torch
from torch import nn

from decoder.config import Config, RopeScaling
from decoder.generate import choose, generate, keep_top_k


class Scripted(nn.Module):
    """Stands in for a decoder: each call takes the next column of ``script`` as its choice."""

    def __init__(self, script: list[list[int]]) -> None:
        super().__init__()
        self.config = Config(vocab=7, width=4, heads=1, kv_heads=1, layers=1, context=16)
        self.script, self.calls = script, 0

    def forward(self, ids, cache=None, attention_mask=None, last_only=False):
        column = torch.tensor([row[self.calls] for row in self.script])
        self.calls += 1
        return nn.functional.one_hot(column, 7).double()[:, None]


@pytest.mark.parametrize("cached", [True, False])
def test_rows_end_one_by_one_and_are_padded(cached):
    model = Scripted([[1, 5, 3, 3, 3], [1, 1, 1, 5, 3]])
    found = generate(model, torch.tensor([[5, 2], [2, 5]]), 9, eos=5, cached=cached)
    assert found.tolist() == [[5, 2, 1, 5, 5, 5], [2, 5, 1, 1, 1, 5]]
    assert model.calls == 4  # not one more than the last row needed


def test_the_end_token_may_come_first():
    assert generate(Scripted([[5, 1]]), torch.tensor([[2]]), 9, eos=5).tolist() == [[2, 5]]


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize(("prompt", "asked", "length"), [(14, 10, 24), (22, 10, 24), (24, 3, 24), (5, 3, 8), (5, 0, 5)])
def test_context_and_new_tokens_bound_on_their_own(small, build, cached, prompt, asked, length):
    model = build(small)
    ids = torch.randint(31, (2, prompt))
    found = generate(model, ids, asked, cached=cached)
    assert found.shape == (2, length) and torch.equal(found[:, :prompt], ids)


@pytest.mark.parametrize("changes", [{}, {"window": 5, "windowed_layers": (0, 2)}, {"positions": "alibi"}])
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_the_cache_changes_no_token(small, build, changes, temperature):
    model = build(small.replace(**changes))
    ids = torch.randint(31, (3, 6))
    mask = torch.tensor([[0, 0, 1, 1, 1, 1], [1] * 6, [0, 0, 0, 0, 0, 1]])
    arguments = {"temperature": temperature, "attention_mask": mask, "top_k": 9}
    seeded = lambda: torch.Generator().manual_seed(3)
    with_cache = generate(model, ids, 15, generator=seeded(), **arguments)
    assert torch.equal(generate(model, ids, 15, cached=False, generator=seeded(), **arguments), with_cache)
    if temperature == 0:
        assert torch.equal(generate(model, ids[:1, 2:], 15), with_cache[:1, 2:])


LONGROPE = RopeScaling("longrope", 2.0, 9, short_factors=(1.0, 1.3), long_factors=(1.5, 4.0))


@pytest.mark.parametrize(
    ("scaling", "padding", "reads"),
    [
        (None, None, [6, 1, 1, 1, 1, 1, 1]),
        (LONGROPE, None, [6, 1, 1, 1, 10, 1, 1]),  # the tenth token takes the other factors
        (LONGROPE, (2, 1), [6, 1, 1, 1, 1, 11, 1]),  # the longest row decides, without its padding
        (RopeScaling("yarn", 2.0, 9), None, [6, 1, 1, 1, 1, 1, 1]),
    ],
)
def test_cached_keys_are_read_again_only_where_frequencies_switch(small, build, scaling, padding, reads):
    model, seen = build(small.replace(rope_scaling=scaling)), []
    model.register_forward_hook(lambda _, given, scores: seen.append((given[0].shape[1], scores.shape[1])))
    ids = torch.randint(31, (2, 6))
    mask = None if padding is None else (torch.arange(6) >= torch.tensor(padding)[:, None]).long()
    found = generate(model, ids, 7, attention_mask=mask)
    assert seen == [(new, 1) for new in reads]  # and scores of the last token alone
    assert torch.equal(generate(model, ids, 7, attention_mask=mask, cached=False), found)


def test_greedy_takes_the_largest_score_of_the_full_pass(small, build):
    model, ids = build(small), torch.randint(31, (1, 4))
    found = generate(model, ids, 8)
    assert torch.equal(model(found[:, :-1])[:, 3:].argmax(-1), found[:, 4:])


def test_ties_at_the_cut_are_kept():
    # the fault of vllm-project/vllm#15478: two rules in one program
    kept = keep_top_k(torch.tensor([[1.0, 2, 2, 2, 3]]), 3)
    assert torch.isfinite(kept).tolist() == [[False, True, True, True, True]]
    scores = torch.zeros(1, 17)
    scores[:, :4] = 1
    draws = {int(choose(scores, 1.0, 2)) for _ in range(200)}
    assert draws == {0, 1, 2, 3}


def test_temperature_scales_the_scores():
    scores = torch.tensor([[0.0, 1.0]]).double().expand(20_000, 2)
    share = float(choose(scores, 0.5, generator=torch.Generator().manual_seed(0)).double().mean())
    assert share == pytest.approx(1 / (1 + torch.e**-2), abs=0.01)
    assert choose(torch.tensor([[0.0, 1.0]]), 0.0).tolist() == [1]
    assert choose(torch.tensor([[0.0, 1.0]] * 99)).tolist() == [1] * 99  # by default no draw
    for greedy in ((), (0.0,)):
        assert len({int(choose(torch.zeros(1, 17), *greedy)) for _ in range(20)}) == 1  # nor among those that tie
    assert choose(torch.tensor([[0.0, 90.0]]), 1e-300).tolist() == [1]


def test_a_seed_gives_the_same_tokens(small, build):
    model, ids = build(small, std=0.1), torch.randint(31, (2, 4))
    draw = lambda seed: generate(model, ids, 12, temperature=1.0, generator=torch.Generator().manual_seed(seed))
    assert torch.equal(draw(1), draw(1)) and not torch.equal(draw(1), draw(2))


@pytest.mark.parametrize("training", [True, False])
def test_the_mode_is_restored_also_after_an_error(training):
    good, bad = Scripted([[1]]).train(training), Scripted([[]]).train(training)
    generate(good, torch.tensor([[2]]), 1)
    with pytest.raises(IndexError):
        generate(bad, torch.tensor([[2]]), 1)
    assert (good.training, bad.training) == (training, training)


def test_each_part_gets_its_own_mode_back(small, build):
    model = build(small).train()
    model.blocks[1].eval()
    generate(model, torch.tensor([[1]]), 2)
    assert (model.training, model.blocks[0].training, model.blocks[1].training) == (True, True, False)


def test_it_runs_in_evaluation_mode_without_gradients(small, build):
    model, seen = build(small).train(), []
    model.register_forward_hook(lambda module, _, scores: seen.append((module.training, scores.requires_grad)))
    generate(model, torch.tensor([[1]]), 2)
    assert seen == [(False, False)] * 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"new_tokens": -1}, "new_tokens must be a whole number from 0, got -1"),
        ({"new_tokens": 1.0}, "new_tokens must be a whole number from 0, got 1.0"),
        ({"new_tokens": True}, "new_tokens must be a whole number from 0, got True"),
        ({"temperature": -0.1}, "temperature must be a finite number from 0, got -0.1"),
        ({"temperature": float("nan")}, "temperature must be a finite number from 0, got nan"),
        ({"temperature": True}, "temperature must be a finite number from 0, got True"),
        ({"eos": True}, "eos must be a whole number from 0 to 30, got True"),
        ({"eos": 31}, "eos must be a whole number from 0 to 30, got 31"),
        ({"top_k": 0}, "top_k must be a whole number from 1 to 31, got 0"),
        ({"top_k": 32, "temperature": 1.0}, "top_k must be a whole number from 1 to 31, got 32"),
        ({"top_k": 32, "new_tokens": 0}, "top_k must be a whole number from 1 to 31, got 32"),
        ({"ids": torch.zeros(1, 25).long()}, "ids must fit the context of 24 tokens, got a prompt of 25"),
        ({"ids": torch.zeros(25).long()}, "ids must have rank 2, (B, T), got shape (25,)"),
        ({"ids": torch.tensor([[31]]), "new_tokens": 0}, "ids must be from 0 to 30, got 31"),
        ({"attention_mask": torch.ones(1, 2)}, "attention_mask must have the shape of ids (1, 3), got (1, 2)"),
    ],
)
def test_refusals_come_before_any_work(small, build, changes, message):
    model = build(small)
    model.forward = lambda *_, **__: pytest.fail("nothing may be computed")
    arguments = {"ids": torch.tensor([[1, 2, 3]]), "new_tokens": 4, **changes}
    with pytest.raises(ValueError) as refusal:
        generate(model, **arguments)
    assert str(refusal.value) == message
