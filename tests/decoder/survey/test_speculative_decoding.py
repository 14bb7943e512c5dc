"""Speculative decoding keeps the target's distribution: by enumeration, and by counting draws."""

import itertools

import pytest
import torch

from decoder.model import Decoder
from decoder.survey.speculative_decoding import accept, agreement, predictor, speculate, tokens_per_pass


def table(seed: int, vocab: int = 4, sharp: float = 1.5):
    """A predictor whose next token depends on the last two."""
    generator = torch.Generator().manual_seed(seed)
    rows = (sharp * torch.randn(vocab, vocab, vocab, generator=generator, dtype=torch.float64)).softmax(-1)

    def predict(ids):
        before = torch.cat((ids[:1], ids[:-1]))
        return rows[before, ids]

    return predict


def law(target, start, length: int) -> dict[tuple[int, ...], float]:
    """The probability of every continuation, by the chain rule."""
    chances = {}
    for tokens in itertools.product(range(4), repeat=length):
        ids, chance = start, 1.0
        for token in tokens:
            chance *= target(ids)[-1, token].item()
            ids = torch.cat((ids, torch.tensor([token])))
        chances[tokens] = chance
    return chances


@pytest.mark.parametrize("drafted", [1, 2, 4])
def test_continuations_follow_the_target(drafted):
    """Pearson's chi-square over the 64 continuations of three tokens; 63 degrees of freedom, 0.001 quantile 103.4."""
    target, draft, start = table(1), table(2), torch.tensor([0, 2])
    expected = law(target, start, 3)
    generator = torch.Generator().manual_seed(10 + drafted)
    draws = 4000
    counts = dict.fromkeys(expected, 0)
    for _ in range(draws):
        made = speculate(target, draft, start, 3, drafted, generator)
        counts[tuple(made.ids[2:5].tolist())] += 1
    statistic = sum((counts[c] - draws * p) ** 2 / (draws * p) for c, p in expected.items())
    assert statistic < 103.4
    wrong = law(draft, start, 3)  # the same test can tell the two models apart
    assert sum((counts[c] - draws * p) ** 2 / (draws * p) for c, p in wrong.items()) > 1000


def test_one_token_exactly():
    """Kept with min(p, q), or replaced: summed over drafts, the law of the first token is p."""
    p, q = torch.rand(2, 6, dtype=torch.float64)
    p, q = p / p.sum(), q / q.sum()
    kept = torch.minimum(p, q)
    rest = (p - q).clamp(min=0)
    torch.testing.assert_close(kept + (1 - kept.sum()) * rest / rest.sum(), p)
    torch.testing.assert_close(agreement(p, q), 1 - (p - q).abs().sum() / 2)  # one minus total variation


def test_a_token_that_the_target_excludes_is_never_kept():
    p, q = torch.tensor([[0.0, 1.0], [0.5, 0.5]]), torch.tensor([[1.0, 0.0]])
    assert accept(p, q, torch.tensor([0])).tolist() == [1]


def test_a_perfect_draft_is_kept_whole():
    target = table(3)
    made = speculate(target, target, torch.tensor([1, 1]), 50, 4, torch.Generator().manual_seed(0))
    assert (made.acceptance, made.passes, len(made.ids)) == (1.0, 10, 52)


def test_acceptance_and_tokens_of_a_pass_are_as_predicted():
    """With distributions that ignore the past every token is kept with one chance."""
    p, q = torch.tensor([0.5, 0.3, 0.2]).double(), torch.tensor([0.2, 0.3, 0.5]).double()
    made = speculate(
        lambda ids: p.expand(len(ids), -1), lambda ids: q.expand(len(ids), -1), torch.tensor([0]), 6000, 3,
        torch.Generator().manual_seed(5),
    )  # fmt: skip
    assert made.acceptance == pytest.approx(agreement(p, q).item(), abs=0.02)
    assert (len(made.ids) - 1) / made.passes == pytest.approx(tokens_per_pass(0.7, 3), abs=0.05)


def test_the_sum_is_the_closed_form():
    assert tokens_per_pass(0.8, 4) == pytest.approx((1 - 0.8**5) / (1 - 0.8))
    assert tokens_per_pass(1.0, 4) == 5
    assert tokens_per_pass(0.0, 4) == 1


def test_decoders_as_predictors(small):
    target, draft = Decoder(small).eval(), Decoder(small.replace(layers=1)).eval()
    made = speculate(predictor(target), predictor(draft, 0.5), torch.tensor([3, 1]), 6, 2)
    assert 8 <= len(made.ids) <= 10
    rows = predictor(target, 2.0)(made.ids)
    torch.testing.assert_close(rows, (target(made.ids[None])[0].double() / 2).softmax(-1))


def test_nothing_drafted_is_refused():
    with pytest.raises(ValueError, match=r"^drafted_tokens must be a whole number from 1, got 0$"):
        speculate(table(1), table(1), torch.tensor([0]), 3, 0)
