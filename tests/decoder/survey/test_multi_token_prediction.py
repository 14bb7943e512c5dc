"""Both designs against what each may see, against the plain decoder, and counted."""

import pytest
import torch
import torch.nn.functional as F

from decoder.budget import parameters
from decoder.model import Decoder, parameter_count
from decoder.survey.multi_token_prediction import (
    ParallelHeads,
    SequentialModules,
    multi_token_loss,
    target_losses,
)

KINDS = [ParallelHeads, SequentialModules]
IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])


def made(kind, config, targets=3):
    model = kind(config, targets).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_target_is_the_plain_decoder(small, kind):
    model = made(kind, small)
    plain = Decoder(small).double()
    plain.load_state_dict({name: value for name, value in model.state_dict().items() if "further" not in name})
    torch.testing.assert_close(model.futures(IDS)[0], plain(IDS))
    torch.testing.assert_close(model(IDS), plain(IDS))


@pytest.mark.parametrize(("kind", "further"), [(ParallelHeads, 0), (SequentialModules, 1)])
def test_what_each_target_sees(small, kind, further):
    """At place i the k-th target of the sequential design depends on tokens up to i + k, of the other up to i."""
    model = made(kind, small)
    changed = IDS.clone()
    changed[0, 5] = 7
    for depth, (before, after) in enumerate(zip(model.futures(IDS), model.futures(changed), strict=True)):
        moved = (before != after).any(-1)[0].nonzero()[:, 0]
        assert moved[0] == 5 - further * depth


def test_a_sequential_depth_has_one_place_less(small):
    assert [scores.shape[1] for scores in made(SequentialModules, small).futures(IDS)] == [8, 7, 6]
    assert [scores.shape[1] for scores in made(ParallelHeads, small).futures(IDS)] == [8, 8, 8]


@pytest.mark.parametrize("kind", KINDS)
def test_losses_written_out(small, kind):
    model = made(kind, small)
    scores = model.futures(IDS)
    losses = target_losses(scores, IDS)
    for ahead, (logits, loss) in enumerate(zip(scores, losses, strict=True), start=1):
        picked = [F.log_softmax(logits[0, i], -1)[IDS[0, i + ahead]] for i in range(8 - ahead)]
        torch.testing.assert_close(loss, -torch.stack(picked).mean())
    torch.testing.assert_close(multi_token_loss(scores, IDS, 2.0), sum(losses))
    torch.testing.assert_close(multi_token_loss(scores, IDS, 0.5), losses[0] + 0.25 * (losses[1] + losses[2]))


def test_what_each_design_adds(small):
    plain = parameters(small).total
    block = plain - parameters(small.replace(layers=small.layers - 1)).total
    assert parameter_count(ParallelHeads(small, 3)) == plain + 2 * block
    d = small.width
    assert parameter_count(SequentialModules(small, 3)) == plain + 2 * (block + 2 * d * d + 3 * d)


@pytest.mark.parametrize("kind", KINDS)
def test_every_part_gets_a_gradient(small, kind):
    model = made(kind, small)
    multi_token_loss(model.futures(IDS), IDS, 1.0).backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize(
    ("changes", "targets", "message"),
    [
        ({}, 1, "targets must be a whole number from 2, got 1"),
        ({"window": 3}, 2, "window must be None for multi-token prediction, got 3"),
        ({"positions": "alibi"}, 2, "positions must not be 'alibi' for multi-token prediction"),
    ],
)
def test_what_is_not_built_is_refused(small, changes, targets, message):
    with pytest.raises(ValueError) as caught:
        SequentialModules(small.replace(**changes), targets)
    assert str(caught.value) == message
