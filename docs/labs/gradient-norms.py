# %% [markdown]
# # Lab: measure gradients layer by layer
#
# Where the norms of a block stand changes how large the gradient of each layer is before the first step. You measure
# that here on stacks of [12](claim:layers) layers with random weights, for every matrix and not for one hand-picked
# number. The measurement is a function of fifteen lines, and like any function it can be wrong, so it gets checks and
# is broken first.
#
# !!! question "Predict first"
#     1. A post-norm stack at its start: in which layer is the gradient of the feed-forward part largest?
#     2. A pre-norm stack: does the gradient grow or shrink from the first layer to the last, and by about how much?
#     3. Someone forgets to clear the gradients between two measurements. Which check would tell?
#
# ## The measurement

# %%
import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F

from decoder.config import Config
from decoder.model import Decoder
from decoder.mutation import edited, failures

layers, vocab, tokens, seeds = 12, 61, 16, 5


def stack(placement, seed=0, depth=layers):
    torch.manual_seed(seed)
    sizes = dict(vocab=vocab, context=tokens, width=32, heads=4, kv_heads=4, hidden=96)  # noqa: C408
    return Decoder(Config(layers=depth, norm_placement=placement, tied=False, **sizes)).double()


def batch(seed=0):
    generator = torch.Generator().manual_seed(1000 + seed)
    ids = torch.randint(vocab, (4, tokens + 1), generator=generator)
    return ids[:, :-1], ids[:, 1:]  # (B, T) each


def loss(model, ids, targets):
    return F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())


def gradient_norms(model, ids, targets):
    """The norm of the loss gradient by every parameter, by name."""
    model.zero_grad()
    loss(model, ids, targets).backward()
    return {
        name: weight.grad.norm().item() for name, weight in model.named_parameters()
    }


# %% [markdown]
# ## Four checks
#
# - **every_tensor**: each parameter has an entry.
# - **finite_difference**: along a gradient of norm $g$ a step of length $\varepsilon$ changes the loss by
#   $\varepsilon g$. This uses the loss alone, so it shares nothing with autograd.
# - **total**: the squares add up to the squared norm of the whole gradient.
# - **repeatable**: measuring twice gives the same.

# %%
def every_tensor(measure):
    model = stack("pre", depth=2)
    missing = dict(model.named_parameters()).keys() - measure(model, *batch()).keys()
    assert not missing, f"not measured: {', '.join(sorted(missing))}"


def finite_difference(measure):
    model, step = stack("pre", depth=2), 1e-4
    weight = dict(model.named_parameters())["blocks.1.feed_forward.up.weight"]
    found = measure(model, *batch())["blocks.1.feed_forward.up.weight"]
    direction = torch.autograd.grad(loss(model, *batch()), weight)[0]
    direction /= direction.norm()
    with torch.no_grad():
        weight += step * direction
        above = loss(model, *batch())
        weight -= 2 * step * direction
        below = loss(model, *batch())
    expected = ((above - below) / (2 * step)).item()
    assert abs(found / expected - 1) < 1e-4, f"{found:.2e}, a small step says {expected:.2e}"


def total(measure):
    model = stack("pre", depth=2)
    found = sum(norm**2 for norm in measure(model, *batch()).values()) ** 0.5
    every = torch.autograd.grad(loss(model, *batch()), list(model.parameters()))
    expected = torch.cat([part.flatten() for part in every]).norm().item()
    assert abs(found / expected - 1) < 1e-9, f"together {found:.3f}, not {expected:.3f}"


def repeatable(measure):
    model = stack("pre", depth=2)
    first, second = measure(model, *batch()), measure(model, *batch())
    times = max(second[name] / first[name] for name in first)
    assert times == 1, f"the second measurement is {times:.1f} times the first"


SUBJECT = gradient_norms
CHECKS = {
    check.__name__: check for check in (every_tensor, finite_difference, total, repeatable)
}
print(failures(CHECKS, SUBJECT))

# %% [markdown]
# ## Break it

# %%
CLIP = "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"
EDITS = {
    "gradients not cleared": ("model.zero_grad()", "pass", {"repeatable"}),
    "matrices only": (
        "model.named_parameters()",
        "model.named_parameters() if weight.ndim > 1",
        {"every_tensor", "total"},
    ),
    "measured after clipping": (
        "backward()",
        f"backward()\n    {CLIP}",
        {"finite_difference", "total"},
    ),
    "root mean square, not norm": (
        "weight.grad.norm()",
        "weight.grad.square().mean().sqrt()",
        {"finite_difference", "total"},
    ),
    "sum over the tokens": (
        "loss(model, ids, targets)",
        "(targets.numel() * loss(model, ids, targets))",
        {"finite_difference", "total"},
    ),
}
MUTATIONS = {
    name: (edited(SUBJECT, *edit), breaks) for name, (*edit, breaks) in EDITS.items()
}
for name, (broken, _) in MUTATIONS.items():
    print(name)
    for check, message in failures(CHECKS, broken).items():
        print(f"    {check}\n        {message}")

# %% [markdown]
# The first is the one that happens. A measurement with gradients left over is right the first time and doubles from
# then on, and a plot of it still looks like a plot.
#
# ## Measure
#
# Pre-norm, post-norm, [5](claim:seeds) seeds, and the norm of all gradients of each layer's feed-forward part.

# %%
def by_layer(placement, seed):
    norms = gradient_norms(stack(placement, seed), *batch(seed))
    return torch.tensor([
        sum(
            norms[f"blocks.{layer}.feed_forward.{part}.weight"] ** 2
            for part in ("gate", "up", "down")
        ) ** 0.5
        for layer in range(layers)
    ])


measured = {
    placement: torch.stack([by_layer(placement, seed) for seed in range(seeds)])
    for placement in ("pre", "post")
}  # (seeds, L) each
for placement, norms in measured.items():
    first, last = norms[:, 0].mean(), norms[:, -1].mean()
    print(f"{placement:<4} first {first:.3f}, last {last:.3f}, ratio {last / first:.2f}")

# %%
