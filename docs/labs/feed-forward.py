# ---
# claims:
#   constant:
#     "three": a gated part has three matrices, whatever their sizes
#     "6": counted over the ways in which this lab breaks the part
#     "0": the loaded matrices differ in nothing but their names
# ---

# %% [markdown]
# # Lab: a gated feed-forward part
#
# A gate adds a third matrix and a product. Both are easy to get almost right: the part then has the right shapes,
# often the right count, and computes something else. In this lab you count the weights, write down the formula so
# that it shares nothing with the part, and see which mistakes need it.
#
# !!! question "Predict first"
#     The width is [768](claim:width). A plain part with a hidden width of [4](<claim:plain_hidden // width>) times
#     that is replaced by a gated one.
#
#     1. Which hidden width has the gated part, if it is to hold as many weights?
#     2. By how much does it grow if it keeps the hidden width instead?
#     3. Someone applies the activation to the wrong one of the two branches. Would the count tell?
#
# ## The part

# %%
import math

import torch
import torch.nn.functional as F
from torch import nn

from decoder.mutation import failures, variant


class SwiGLU(nn.Module):
    """down(silu(gate(x)) * up(x)): (B, T, d) -> (B, T, d), 3 d m weights."""

    def __init__(self, width, hidden):
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        inner = F.silu(self.gate(x)) * self.up(x)  # (B, T, m)
        return self.down(inner)


def size(part):
    return sum(weight.numel() for weight in part.parameters())


# %% [markdown]
# ## Counting

# %%
width, plain_hidden = 768, 3072
plain = 2 * width * plain_hidden
matched_hidden = 2 * plain_hidden // 3
with torch.device("meta"):  # shapes, no memory
    matched, kept = (
        size(SwiGLU(width, matched_hidden)),
        size(SwiGLU(width, plain_hidden)),
    )
print(
    f"plain {plain:,}, gated {matched:,} at {matched_hidden:,}, {kept:,} at {plain_hidden:,}"
)

# %% [markdown]
# The plain part holds $2\cdot 768\cdot 3072 = 4{,}718{,}592$ weights. A gated one holds as many,
# [4,718,592](claim:matched), at a hidden width of [2,048](claim:matched_hidden): two thirds of the plain width,
# because it has [three](<claim:kept // (width * plain_hidden)>) matrices where the plain part has
# [two](<claim:plain // (width * plain_hidden)>). At the plain part's hidden width it holds [7,077,888](claim:kept),
# [50%](<claim:(kept - plain) / plain>) more, and a comparison of the two would compare sizes.
#
# ## Three checks
#
# The sizes are small and all different. The reference computes one number at a time and takes the exponential from
# Python's own `math`.

# %%
rows, tokens, small_width, small_hidden = 2, 3, 5, 7


def made(kind):
    torch.manual_seed(0)
    return kind(small_width, small_hidden).double()


def an_input():
    generator = torch.Generator().manual_seed(1)
    shape = rows, tokens, small_width
    return torch.randn(shape, dtype=torch.float64, generator=generator)


def count(kind):
    found = size(made(kind))
    assert found == 105, f"{found} weights, not 105"


def tokenwise(kind):
    part, x = made(kind), an_input()
    alone = torch.stack(
        [part(x[:, t : t + 1])[:, 0] for t in range(tokens)], dim=1
    )
    gap = (part(x) - alone).abs().max().item()
    assert gap < 1e-12, (
        f"a token by itself gives something else, by {gap:.3f}"
    )


def reference(kind):
    part, x = made(kind), an_input()
    gate, up, down = (
        getattr(part, name).weight.tolist()
        for name in ("gate", "up", "down")
    )
    found = part(x)
    for b in range(rows):
        for t in range(tokens):
            token = x[b, t].tolist()
            hidden = []
            for j in range(small_hidden):
                g = sum(
                    w * value
                    for w, value in zip(gate[j], token, strict=True)
                )
                u = sum(
                    w * value
                    for w, value in zip(up[j], token, strict=True)
                )
                hidden.append(g / (1 + math.exp(-g)) * u)
            for i in range(small_width):
                expected = sum(
                    w * value
                    for w, value in zip(down[i], hidden, strict=True)
                )
                gap = abs(found[b, t, i].item() - expected)
                assert gap < 1e-12, (
                    f"coordinate {i} of token {t} is off by {gap:.1e}"
                )


SUBJECT = SwiGLU
CHECKS = {
    check.__name__: check for check in (count, tokenwise, reference)
}
print(failures(CHECKS, SUBJECT) or "nothing fails")

# %% [markdown]
# $3\cdot 5\cdot 7 = 105$ weights, and all three hold.
#
# ## Break it
#
# Predict for each edit which of the checks will fail.

# %%
EDITS = {
    "bias in the last projection": (
        "__init__",
        "nn.Linear(hidden, width, bias=False)",
        "nn.Linear(hidden, width)",
        {"count", "reference"},
    ),
    "gate added, not multiplied": (
        "forward",
        ") * self",
        ") + self",
        {"reference"},
    ),
    "activation on the other branch": (
        "forward",
        "F.silu(self.gate(x)) * self.up(x)",
        "self.gate(x) * F.silu(self.up(x))",
        {"reference"},
    ),
    "GELU in place of SiLU": (
        "forward",
        "F.silu",
        "F.gelu",
        {"reference"},
    ),
    "no activation": (
        "forward",
        "F.silu(self.gate(x))",
        "self.gate(x)",
        {"reference"},
    ),
    "mean over the tokens taken off": (
        "forward",
        "self.up(x)",
        "self.up(x - x.mean(1, keepdim=True))",
        {"tokenwise", "reference"},
    ),
}
MUTATIONS = {
    name: (variant(SUBJECT, *edit), breaks)
    for name, (*edit, breaks) in EDITS.items()
}
for name, (broken, _) in MUTATIONS.items():
    print(name)
    for check, message in failures(CHECKS, broken).items():
        print(f"    {check}\n        {message}")
right_count = [
    name
    for name, (broken, _) in MUTATIONS.items()
    if "count" not in failures(CHECKS, broken)
]

# %% [markdown]
# Of [6](claim:len(MUTATIONS)) broken parts, [5](claim:len(right_count)) have the right count. "The number of
# parameters agrees" is where a check of a gated part begins.
#
# The activation on the other branch is a special case. At random weights the two branches are drawn alike, so
# training could not tell the two parts apart; each is the other with `gate` and `up` renamed. The difference matters
# when weights are loaded from a file that another implementation wrote:

# %%
part = made(SwiGLU)
other = made(MUTATIONS["activation on the other branch"][0])
x = an_input()
as_loaded = (other(x) - part(x)).abs().max().item()
other.gate, other.up = other.up, other.gate
renamed = (other(x) - part(x)).abs().max().item()
print(f"same weights {as_loaded:.3f}, matrices renamed {renamed}")

# %% [markdown]
# With the same weights under the same names the outputs differ by [> 0.01](claim:as_loaded), with the names exchanged
# by [0](claim:renamed).
#
# !!! warning "What this does not show"
#     That a gate helps. Equal counts make a comparison fair in one respect; what was found in such comparisons, and
#     in which setting, is in [the chapter on feed-forward parts](../decisions/feed-forward.md).
