"""A memory of weights against torch's optimizer, the delta rule, and finite differences."""

import torch
import torch.nn.functional as F

from decoder.survey.gated_recurrence import gated_delta_rule
from decoder.survey.test_time_memory import MemoryState, TestTimeMemory, memorize, recall


def gates(forget: float, keep: float, step: float, batch: int = 1):
    return [torch.full((batch,), value, dtype=torch.float64) for value in (forget, keep, step)]


def empty(*shapes, batch: int = 1) -> MemoryState:
    weights = tuple(torch.randn(batch, *shape, dtype=torch.float64) for shape in shapes)
    return MemoryState(weights, tuple(torch.zeros_like(weight) for weight in weights))


def test_steps_are_those_of_sgd_with_momentum():
    state = empty((7, 5), (3, 7))
    network = torch.nn.Sequential(
        torch.nn.Linear(5, 7, bias=False), torch.nn.SiLU(), torch.nn.Linear(7, 3, bias=False)
    ).double()
    network[0].weight.data, network[2].weight.data = (weight[0].clone() for weight in state.weights)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.02, momentum=0.6)
    for _ in range(6):
        k, v = torch.randn(1, 5, dtype=torch.float64), torch.randn(1, 3, dtype=torch.float64)
        optimizer.zero_grad()
        (network(k) - v).square().sum().backward()
        optimizer.step()
        state = memorize(state, k, v, *gates(0.0, 0.6, 0.02))
    torch.testing.assert_close(state.weights[0][0].detach(), network[0].weight.detach())
    torch.testing.assert_close(state.weights[1][0].detach(), network[2].weight.detach())


def test_one_linear_layer_without_momentum_is_the_delta_rule():
    torch.manual_seed(4)
    k = F.normalize(torch.randn(2, 6, 1, 5, dtype=torch.float64), dim=-1)
    q, v = torch.randn(2, 6, 1, 5, dtype=torch.float64), torch.randn(2, 6, 1, 3, dtype=torch.float64)
    theta = 0.3
    beta = torch.full((2, 6, 1), 2 * theta, dtype=torch.float64)
    expected = gated_delta_rule(q, k, v, torch.zeros_like(beta), beta)
    state = MemoryState((torch.zeros(2, 3, 5, dtype=torch.float64),), (torch.zeros(2, 3, 5, dtype=torch.float64),))
    for t in range(6):
        state = memorize(state, k[:, t, 0], v[:, t, 0], *gates(0.0, 0.0, theta, batch=2))
        torch.testing.assert_close(recall(state.weights, q[:, t, 0]), expected[:, t, 0])


def test_forgetting_shrinks_what_is_kept():
    state = empty((3, 5))
    after = memorize(state, torch.zeros(1, 5).double(), torch.zeros(1, 3).double(), *gates(0.25, 0.5, 0.1))
    torch.testing.assert_close(after.weights[0], 0.75 * state.weights[0])


def test_sequences_do_not_share_a_memory():
    state = empty((3, 5), batch=2)
    k, v = torch.randn(2, 5, dtype=torch.float64), torch.randn(2, 3, dtype=torch.float64)
    both = memorize(state, k, v, *gates(0.1, 0.2, 0.3, batch=2)).weights[0]
    alone = MemoryState(tuple(w[1:] for w in state.weights), tuple(s[1:] for s in state.momentum))
    torch.testing.assert_close(both[1:], memorize(alone, k[1:], v[1:], *gates(0.1, 0.2, 0.3)).weights[0])


def test_a_pair_read_again_and_again_is_recalled():
    state = empty((16, 5), (3, 16))
    k, v = torch.randn(1, 5, dtype=torch.float64), torch.randn(1, 3, dtype=torch.float64)
    errors = []
    for _ in range(30):
        state = memorize(state, k, v, *gates(0.0, 0.2, 0.01))
        errors.append((recall(state.weights, k) - v).norm().item())
    assert errors[-1] < 0.05 * errors[0]


def test_what_stands_before_the_memory_is_trained_through_its_steps():
    layer = TestTimeMemory(4, memory_hidden=6).double()
    x = torch.randn(1, 3, 4, dtype=torch.float64)
    layer(x).square().sum().backward()
    weight, moved = layer.k.weight, 1e-6
    with torch.no_grad():
        sums = []
        for sign in (1, -1):
            weight[1, 2] += sign * moved
            sums.append(layer(x).square().sum().item())
            weight[1, 2] -= sign * moved
    assert abs((sums[0] - sums[1]) / (2 * moved) - weight.grad[1, 2].item()) < 1e-6
    assert layer.start[0].grad.abs().sum() > 0


def test_nothing_later_is_seen():
    layer = TestTimeMemory(4)
    x = torch.randn(2, 5, 4)
    changed = x.clone()
    changed[:, 3:] += 1
    torch.testing.assert_close(layer(changed)[:, :3], layer(x)[:, :3])


def test_the_state_is_two_numbers_a_weight():
    assert TestTimeMemory(4, memory_hidden=6).state_numbers == 2 * (6 * 4 + 4 * 6)
    assert TestTimeMemory(4).state_numbers == 2 * 16
