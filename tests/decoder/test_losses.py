import pytest
import torch
import torch.nn.functional as F

from decoder.losses import IGNORED, language_model_loss, next_token_labels, perplexity


def test_cross_entropy_is_torchs():
    logits, labels = torch.randn(2, 5, 11).double(), torch.randint(11, (2, 5))
    labels[0, 1] = labels[1, 4] = IGNORED
    loss = language_model_loss(logits, labels)
    torch.testing.assert_close(loss.total, F.cross_entropy(logits.flatten(0, 1), labels.flatten()))
    assert (loss.tokens, float(loss.penalty)) == (8, 0)
    with pytest.raises(AttributeError):
        loss.tokens = 9


def test_uniform_scores_cost_log_v():
    loss = language_model_loss(torch.zeros(1, 3, 11), torch.zeros(1, 3).long())
    assert float(loss.cross_entropy) == pytest.approx(torch.log(torch.tensor(11.0)))
    assert float(perplexity(loss.cross_entropy)) == pytest.approx(11, rel=1e-6)


def test_a_common_shift_moves_the_z_loss_and_not_the_cross_entropy():
    logits, labels = torch.randn(1, 4, 11).double(), torch.randint(11, (1, 4))
    log_z = logits.logsumexp(-1)
    for shift in (0.0, 5.0):
        loss = language_model_loss(logits + shift, labels, z_weight=1e-4)
        torch.testing.assert_close(loss.penalty, 1e-4 * (log_z + shift).square().mean())
        torch.testing.assert_close(loss.cross_entropy, language_model_loss(logits, labels).cross_entropy)
    pinned = language_model_loss(logits - log_z[..., None], labels, z_weight=1e-4)
    assert float(pinned.penalty) == pytest.approx(0, abs=1e-20)


def test_gradient_of_the_z_loss_is_two_alpha_log_z_times_the_probabilities():
    logits = torch.randn(1, 1, 7, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([[3]])
    (gradient,) = torch.autograd.grad(language_model_loss(logits, labels, z_weight=0.1).penalty, logits)
    torch.testing.assert_close(gradient, 0.2 * logits.logsumexp(-1, keepdim=True) * logits.softmax(-1))


def test_gradient_descent_pins_log_z_near_zero():
    labels = torch.arange(7)[None]
    for z_weight, expected in ((0.5, 0.0), (0.0, 4.0)):
        scores = torch.full((7,), 4.0).sub(torch.log(torch.tensor(7.0))).requires_grad_()  # log Z = 4
        optimizer = torch.optim.SGD([scores], lr=1.0)
        for _ in range(100):
            optimizer.zero_grad()
            loss = language_model_loss(scores.expand(1, 7, 7), labels, z_weight)
            loss.total.backward()
            optimizer.step()
        assert loss.log_z.item() == pytest.approx(expected, abs=1e-4)


def test_max_z_loss():
    logits = torch.tensor([[[1.0, -3.0], [2.0, 0.0]]]).double()
    loss = language_model_loss(logits, torch.zeros(1, 2).long(), max_z_weight=2e-4)
    assert float(loss.penalty) == pytest.approx(2e-4 * (1 + 4) / 2)


def test_labels_are_the_ids_shifted_left():
    ids = torch.tensor([[4, 5, 6, 7]])
    assert next_token_labels(ids).tolist() == [[5, 6, 7, IGNORED]]
    assert next_token_labels(ids, torch.tensor([[0, 0, 1, 1]])).tolist() == [[IGNORED, 6, 7, IGNORED]]


def test_half_types_are_summed_in_32_bits():
    logits = torch.full((1, 1, 30_000), 5.0).half()
    assert float(language_model_loss(logits, torch.tensor([[0]])).cross_entropy) == pytest.approx(10.30895, abs=1e-4)


@pytest.mark.parametrize(
    ("logits", "labels", "message"),
    [
        ((2, 3, 5), [[1, 2]], "labels must be (B, T) for logits (B, T, V), got (1, 2) and (2, 3, 5)"),
        ((1, 2, 5), [[IGNORED, IGNORED]], "labels must hold at least one token to score, got only -100"),
        ((1, 2, 5), [[1, 5]], "labels must be from 0 to 4, or -100"),
        ((1, 2, 5), [[1, -1]], "labels must be from 0 to 4, or -100"),
    ],
)
def test_refusals(logits, labels, message):
    with pytest.raises(ValueError) as refusal:
        language_model_loss(torch.zeros(logits), torch.tensor(labels))
    assert str(refusal.value) == message
