import pytest
import torch
from torch import nn

from decoder.config import Config
from decoder.generate import generate
from decoder.model import Decoder
from decoder.training import decay_groups, make_optimizer, training_step


def test_matrices_decay_and_vectors_do_not():
    with torch.device("meta"):
        decayed, rest = decay_groups(Decoder(Config()), 0.1)
    count = lambda group: sum(p.numel() for p in group["params"])
    assert (count(decayed), count(rest)) == (100_073_472, 19_200)
    assert (decayed["weight_decay"], rest["weight_decay"]) == (0.1, 0.0)
    assert len({id(p) for p in decayed["params"]}) == len(decayed["params"])


def test_a_small_decoder_learns_a_sentence_by_heart(small):
    model = Decoder(small)
    optimizer = make_optimizer(model, learning_rate=1e-2)
    ids = torch.tensor([[3, 17, 5, 9, 9, 28, 1, 30, 12, 4]])
    steps = [training_step(model, optimizer, ids, z_weight=1e-4) for _ in range(60)]
    assert steps[0].cross_entropy == pytest.approx(3.434, abs=0.1)  # log 31: nothing is known at first
    assert steps[-1].cross_entropy < 0.05
    assert torch.equal(generate(model, ids[:, :1], 9), ids)


def test_the_same_seed_gives_the_same_steps(small):
    def run(seed):
        torch.manual_seed(seed)
        model = Decoder(small)
        optimizer = make_optimizer(model)
        return [training_step(model, optimizer, torch.randint(31, (2, 8))) for _ in range(3)]

    assert run(1) == run(1) != run(2)


def test_the_gradient_is_clipped_to_its_norm(small, build):
    model, ids = build(small).float(), torch.randint(31, (2, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    before = [p.detach().clone() for p in model.parameters()]
    step = training_step(model, optimizer, ids, clip=0.01)
    moved = torch.cat([(p - old).flatten() for p, old in zip(model.parameters(), before, strict=True)])
    assert step.gradient_norm > 0.01
    assert float(moved.detach().norm()) == pytest.approx(0.01, rel=1e-3)


def test_the_loss_is_that_before_the_step_and_masked_tokens_do_not_count(small, build):
    model, ids = build(small), torch.randint(31, (1, 8))
    mask = torch.tensor([[0, 0, 0, 0, 1, 1, 1, 1]])
    scores = model(ids).detach()[0, 3:7]
    expected = nn.functional.cross_entropy(scores, ids[0, 4:])
    assert training_step(model, make_optimizer(model), ids, mask).loss == pytest.approx(float(expected))


def test_a_loss_that_is_not_finite_stops_before_the_step(small):
    model = Decoder(small)
    optimizer = make_optimizer(model)
    model.final_norm.weight.data[0] = torch.nan
    before = model.blocks[0].attention.q.weight.detach().clone()
    with pytest.raises(ValueError, match=r"^loss must be finite for a training step, got nan$"):
        training_step(model, optimizer, torch.randint(31, (1, 8)))
    assert torch.equal(model.blocks[0].attention.q.weight, before)


def test_a_parameter_replaced_after_construction_is_not_trained(small):
    model = Decoder(small)
    optimizer = make_optimizer(model)
    model.blocks[0].attention.q.weight = nn.Parameter(model.blocks[0].attention.q.weight.detach().clone())
    before = model.blocks[0].attention.q.weight.detach().clone()
    training_step(model, optimizer, torch.randint(31, (1, 8)))
    assert torch.equal(model.blocks[0].attention.q.weight, before)


def test_a_tensor_listed_twice_is_noticed_by_torch():
    embedding, head = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
    head.weight = embedding.weight
    with pytest.warns(UserWarning, match="duplicate parameters"):
        torch.optim.SGD([*embedding.parameters(), *head.parameters()], lr=0.1)
    with pytest.raises(ValueError, match="more than one parameter group"):
        torch.optim.SGD([{"params": embedding.parameters()}, {"params": head.parameters()}], lr=0.1)
