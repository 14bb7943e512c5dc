"""Balance losses against transformers and loops, the bias by what it repairs, capacity by hand."""

import pytest
import torch
from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func

from decoder.config import Experts
from decoder.survey.expert_balance import (
    balance_loss,
    capacity,
    sequence_balance_loss,
    update_selection_bias,
    within_capacity,
)
from decoder.survey.mixture_of_experts import MixtureOfExperts, Router, Routing


def routing_of(chosen, experts: int) -> Routing:
    chosen = torch.tensor(chosen)
    return Routing(torch.full((*chosen.shape[:-1], experts), 1 / experts), chosen, torch.ones(chosen.shape))


def test_the_loss_of_transformers_counts_choices_per_token():
    router = Router(12, Experts(7, 3, hidden=5)).double()
    x = torch.randn(2, 9, 12, dtype=torch.float64)
    logits = router.linear(x).flatten(0, 1)
    theirs = load_balancing_loss_func((logits,), 7, 3)
    torch.testing.assert_close(balance_loss(router(x)), theirs / 3, check_dtype=False)


def test_uniform_is_one_and_collapse_is_the_number_of_experts():
    assert balance_loss(routing_of([[0], [1], [2], [3]], 4)).item() == 1
    collapsed = Routing(torch.tensor([[0.0, 1.0, 0.0]]).expand(5, 3), torch.ones(5, 1, dtype=torch.long), None)
    assert balance_loss(collapsed).item() == 3


def test_the_sequence_loss_written_out():
    """Equations 17 to 20 of the DeepSeek-V3 report, one token and one expert at a time."""
    router = Router(12, Experts(5, 2, hidden=5, scores="sigmoid", selection_bias=True)).double()
    router.selection_bias[:] = torch.tensor([3.0, 0, 0, 0, 3.0])  # must not matter
    x = torch.randn(3, 4, 12, dtype=torch.float64)
    scores = torch.sigmoid(x @ router.linear.weight.T).tolist()
    total = 0.0
    for sequence in scores:
        for i in range(5):
            chosen = sum(i in sorted(range(5), key=lambda j: -token[j])[:2] for token in sequence)
            f = 5 / (2 * 4) * chosen
            p = sum(token[i] / sum(token) for token in sequence) / 4
            total += f * p / 3
    assert sequence_balance_loss(router(x)).item() == pytest.approx(total, abs=1e-12)


def test_a_step_down_the_loss_evens_the_load():
    router = Router(12, Experts(6, 1, hidden=5))
    x = torch.randn(400, 12) + torch.linspace(-1, 1, 12)
    before = balance_loss(router(x)).item()
    optimizer = torch.optim.SGD(router.parameters(), lr=0.5)
    for _ in range(50):
        optimizer.zero_grad()
        balance_loss(router(x)).backward()
        optimizer.step()
    assert balance_loss(router(x)).item() < before - 0.05


def test_the_bias_moves_by_its_speed_and_against_the_load():
    router = Router(12, Experts(3, 1, hidden=5, selection_bias=True))
    update_selection_bias(router, torch.tensor([9, 2, 4]), speed=0.25)
    assert router.selection_bias.tolist() == [-0.25, 0.25, 0.25]
    update_selection_bias(router, torch.tensor([5, 5, 5]), speed=0.25)
    assert router.selection_bias.tolist() == [-0.25, 0.25, 0.25]


def test_a_router_without_the_bias_is_refused():
    with pytest.raises(ValueError, match=r"^experts\.selection_bias must be True for a router whose bias is updated"):
        update_selection_bias(Router(12, Experts(3, 1, hidden=5)), torch.ones(3), 0.1)


def test_the_bias_repairs_a_collapsed_router():
    router = Router(12, Experts(8, 2, hidden=5, scores="sigmoid", selection_bias=True))
    x = torch.randn(500, 12) + 3 * router.linear.weight[0].detach()
    with torch.no_grad():
        router.linear.weight[0] *= 10  # one expert that every token prefers
    before = router(x).load()
    assert before.max() > 450
    for _ in range(400):
        update_selection_bias(router, router(x).load(), speed=0.005)
    assert router(x).load().max() < 1.2 * 500 * 2 / 8


def test_capacity_is_an_even_share_and_some():
    assert capacity(tokens=100, experts=8, per_token=2, factor=1.25) == 32
    assert capacity(tokens=100, experts=8, per_token=2, factor=1.0) == 25


def test_first_choices_come_before_second_ones():
    routing = within_capacity(routing_of([[0, 1], [1, 0], [0, 2], [0, 1]], 3), 2)
    assert routing.chosen.tolist() == [[0, 1], [1, -1], [0, 2], [-1, -1]]
    assert routing.load().tolist() == [2, 2, 1]


def test_shapes_and_room_for_all_change_nothing():
    routing = routing_of([[[0, 1], [1, 0]], [[2, 1], [0, 1]]], 3)
    assert within_capacity(routing, 4).chosen.equal(routing.chosen)
    assert within_capacity(routing, 1).chosen.tolist() == [[[0, -1], [1, -1]], [[2, -1], [-1, -1]]]


def test_a_token_without_an_expert_gets_nothing(small):
    moe = MixtureOfExperts(small, Experts(3, 1, hidden=7))
    x = torch.randn(1, 5, 12)
    routing = within_capacity(moe.router(x), 1)
    y = moe.mix(x, routing)
    dropped = routing.chosen[..., 0] < 0
    assert dropped.any()
    assert (y[dropped] == 0).all()
    assert (y[~dropped] != 0).any(-1).all()
