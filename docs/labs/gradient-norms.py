# ---
# claims:
#   constant:
#     "0.02": the standard deviation that the decoder draws its weights with
# ---

# %% [markdown]
# # Lab: measure gradients layer by layer
#
# Where the norms of a block stand changes how large the gradient of each layer is before the first step. You measure
# that here on stacks of [12](claim:layers) layers with random weights. The measurement is a short function, and like
# any function it can be wrong, so it is checked, and broken, before it is believed.
#
# !!! question "Predict first"
#     1. A pre-norm stack at its start: does the gradient of the feed-forward part grow or shrink from the first layer
#        to the last? And in a post-norm stack?
#     2. Would the answers be the same with another random start, or with a gated part?
#     3. Someone forgets to clear the gradients between two measurements. Which check would tell?
#
# ## The measurement

# %%
import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from decoder.config import Config
from decoder.model import INIT_STD, Decoder
from decoder.mutation import edited, failures

layers, vocab, tokens, seeds = 12, 61, 16, 5
PLAIN = {
    "gated": False,
    "activation": "relu",
    "norm": "layer",
    "hidden": 128,
}
GATED = {
    "gated": True,
    "activation": "silu",
    "norm": "rms",
    "hidden": 85,
}
SETTINGS = {  # the parts, and whether matrices start as Glorot and Bengio proposed
    "plain, Xavier": (PLAIN, True),
    f"plain, std {INIT_STD}": (PLAIN, False),
    "gated, Xavier": (GATED, True),
}


def stack(placement, setting="plain, Xavier", seed=0, depth=layers):
    parts, xavier = SETTINGS[setting]
    torch.manual_seed(seed)
    sizes = {
        "vocab": vocab,
        "context": tokens,
        "width": 32,
        "heads": 4,
        "kv_heads": 4,
    }
    config = Config(
        layers=depth,
        norm_placement=placement,
        tied=False,
        **sizes,
        **parts,
    )
    model = Decoder(config).double()
    for module in model.modules() if xavier else ():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight)
    return model


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
        name: weight.grad.norm().item()
        for name, weight in model.named_parameters()
    }


# %% [markdown]
# ## Four checks
#
# - **every_tensor**: each parameter has an entry.
# - **finite_difference**: along a gradient of norm $g$ a step of length $\varepsilon$ changes the loss by
#   $\varepsilon g$. Autograd gives the direction of the step; the number compared comes from the loss alone.
# - **total**: the squares add up to the squared norm of the whole gradient.
# - **repeatable**: measuring twice gives the same.


# %%
def every_tensor(measure):
    model = stack("pre", depth=2)
    missing = (
        dict(model.named_parameters()).keys()
        - measure(model, *batch()).keys()
    )
    assert not missing, f"not measured: {', '.join(sorted(missing))}"


def finite_difference(measure):
    model, step = stack("pre", depth=2), 1e-4
    weight = dict(model.named_parameters())[
        "blocks.1.feed_forward.up.weight"
    ]
    found = measure(model, *batch())["blocks.1.feed_forward.up.weight"]
    direction = torch.autograd.grad(loss(model, *batch()), weight)[0]
    direction /= direction.norm()
    with torch.no_grad():
        weight += step * direction
        above = loss(model, *batch())
        weight -= 2 * step * direction
        below = loss(model, *batch())
    expected = ((above - below) / (2 * step)).item()
    assert abs(found / expected - 1) < 1e-4, (
        f"{found:.2e}, a small step says {expected:.2e}"
    )


def total(measure):
    model = stack("pre", depth=2)
    found = (
        sum(norm**2 for norm in measure(model, *batch()).values())
        ** 0.5
    )
    every = torch.autograd.grad(
        loss(model, *batch()), list(model.parameters())
    )
    expected = (
        torch.cat([part.flatten() for part in every]).norm().item()
    )
    assert abs(found / expected - 1) < 1e-9, (
        f"together {found:.3f}, not {expected:.3f}"
    )


def repeatable(measure):
    model = stack("pre", depth=2)
    first, second = measure(model, *batch()), measure(model, *batch())
    times = max(second[name] / first[name] for name in first)
    assert times == 1, (
        f"the second measurement is {times:.1f} times the first"
    )


SUBJECT = gradient_norms
CHECKS = {
    check.__name__: check
    for check in (every_tensor, finite_difference, total, repeatable)
}
print(failures(CHECKS, SUBJECT) or "nothing fails")

# %% [markdown]
# ## Break it

# %%
CLIP = "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"
EDITS = {
    "gradients not cleared": (
        "model.zero_grad()",
        "pass",
        {"repeatable"},
    ),
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
    name: (edited(SUBJECT, *edit), breaks)
    for name, (*edit, breaks) in EDITS.items()
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
# Pre-norm and post-norm, [5](claim:seeds) seeds, three settings: the plain part with LayerNorm at a Xavier start, the
# same at the start with a standard deviation of [0.02](claim:INIT_STD) that this book's decoder has, and the gated
# part with RMSNorm at a Xavier start. The number is the norm of the gradient of each layer's `up` matrix.


# %%
def by_layer(placement, setting):
    rows = []
    for seed in range(seeds):
        norms = gradient_norms(
            stack(placement, setting, seed), *batch(seed)
        )
        rows.append(
            [
                norms[f"blocks.{i}.feed_forward.up.weight"]
                for i in range(layers)
            ]
        )
    return torch.tensor(rows)  # (seeds, L)


measured = {
    (setting, placement): by_layer(placement, setting)
    for setting in SETTINGS
    for placement in ("pre", "post")
}
slope, spread = {}, {}
for name, norms in measured.items():
    first, last = norms[:, 0].mean().item(), norms[:, -1].mean().item()
    slope[name] = last / first
    by_seed = norms[:, -1] / norms[:, 0]
    spread[name] = by_seed.min().item(), by_seed.max().item()
    setting, placement = name
    print(
        f"{setting:<16}{placement:<5} first {first:.4f}  last {last:.4f}\n"
        f"    ratio {slope[name]:.2f}, by seed {spread[name][0]:.2f} to {spread[name][1]:.2f}"
    )

# %% alt="Three panels of gradient norm against layer. Plain, Xavier: pre-norm falls, post-norm rises a little within a wide band. Plain, small start: both level, post-norm far below. Gated, Xavier: both fall." caption="Each panel has the same two placements. Compare the direction of the lines from panel to panel; bands span the seeds."
_, panels = plt.subplots(1, 3, figsize=(7.5, 3), layout="constrained")
for panel, setting in zip(panels, SETTINGS, strict=True):
    for placement, mark in (("pre", "o"), ("post", "s")):
        norms = measured[setting, placement]
        low, high = norms.min(0).values, norms.max(0).values
        panel.fill_between(
            range(1, layers + 1), low, high, alpha=0.25, linewidth=0
        )
        panel.plot(
            range(1, layers + 1),
            norms.mean(0),
            marker=mark,
            label=placement,
        )
    panel.set(title=setting, xlabel="layer", yscale="log")
panels[0].set_ylabel("gradient norm")
panels[0].legend()

# %% [markdown]
# With the plain part and the Xavier start the directions are those of the literature: from the first layer to the last
# the mean of the pre-norm gradients changes by a factor of [≈ 0.4](<claim:slope["plain, Xavier", "pre"]>), that of the
# post-norm ones by [≈ 1.5](<claim:slope["plain, Xavier", "post"]>). Pre-norm falls in every seed, by [<
# 0.5](<claim:spread["plain, Xavier", "pre"][1]>); for post-norm the seeds lie between [≈
# 0.9](<claim:spread["plain, Xavier", "post"][0]>), a fall, and [≈
# 3.1](<claim:spread["plain, Xavier", "post"][1]>). [The chapter on norms](../decisions/normalization.md) has such a
# measurement beside the published one, whose rise is far steeper, and what it was used to argue.
#
# At the smaller start both are nearly level, [≈ 0.9](<claim:slope["plain, std 0.02", "pre"]>) and [≈
# 1.0](<claim:slope["plain, std 0.02", "post"]>), and the post-norm one is far smaller. With the gated part and
# RMSNorm the post-norm gradient shrinks towards the output too, in every seed, by [≈
# 0.4](<claim:slope["gated, Xavier", "post"]>) in the mean. So the sentence "post-norm gradients grow towards the output" names a placement, and
# leaves out the part, the start, and the spread over seeds.
#
# !!! warning "What this does not show"
#     Anything from the first step on. Random tokens are not text, a large gradient is not yet an unstable one, and no
#     ratio is right or wrong by itself. To judge a placement, watch the gradient norm of every trainable tensor in
#     matched runs, together with the loss on held-out text: [ablations](../decoder/ablations.md) does that.
