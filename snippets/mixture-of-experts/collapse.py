import torch
import torch.nn.functional as F

from decoder.config import Config, Experts
from decoder.survey.expert_balance import balance_loss, update_selection_bias
from decoder.survey.mixture_of_experts import MixtureOfExperts

kinds, width, batch, steps = 4, 8, 128, 100
toy = Config(width=width, heads=2, kv_heads=1, hidden=6, layers=1, vocab=8)


def largest_share(remedy, seed):
    """The share of the busiest expert, step by step."""
    torch.manual_seed(seed)
    biased = remedy == "selection bias"
    chosen = {
        "scores": "sigmoid",
        "normalised": False,
        "selection_bias": biased,
    }
    moe = MixtureOfExperts(toy, Experts(kinds, 1, hidden=6, **chosen))
    moe = moe.double()  # in float32 rounding would decide close choices
    optimizer = torch.optim.AdamW(moe.parameters(), lr=0.02, weight_decay=0)
    # the same task for every seed and remedy
    task = torch.Generator().manual_seed(100)
    centres = torch.randn(kinds, width, generator=task).double()
    maps = torch.randn(kinds, width, width, generator=task).double()
    maps = maps / width**0.5
    shares = []
    for _ in range(steps):
        kind = torch.randint(kinds, (batch,), generator=task)
        seen = centres[kind] + 0.3 * torch.randn(
            batch, width, generator=task
        )
        wanted = torch.einsum("bi,bij->bj", seen, maps[kind])
        x = seen + 1  # all inputs lean to one side, and so do first choices
        routing = moe.router(x)
        loss = F.mse_loss(moe.mix(x, routing), wanted)
        if remedy == "balance loss":
            loss = loss + 0.1 * balance_loss(routing)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        load = routing.load()
        if biased:
            update_selection_bias(moe.router, load, speed=0.02)
        shares.append(load.max().item() / batch)
    return shares


remedies = ("nothing", "balance loss", "selection bias")
seeds = (0, 1, 2)
curves = {r: [largest_share(r, seed) for seed in seeds] for r in remedies}
last = {r: [sum(c[-20:]) / 20 for c in curves[r]] for r in remedies}
