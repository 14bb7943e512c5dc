# %% [markdown]
# # Lab: attention with a free head width
#
# Most implementations derive the width of a head: the model's width over the number of heads. Nothing in attention
# asks for that. In this lab you write an attention whose heads are as wide as you say, pin it down with four checks,
# and break it on purpose. Each break must trip the checks that it names and no other.
#
# The model is [10](claim:width) wide and has [3](claim:heads) heads, each [4](claim:head_width) wide. Ten is not
# divisible by three, and the heads together are [12](<claim:heads * head_width>) wide, wider than the stream that
# they read.
#
# !!! question "Predict first"
#     1. How many weights do the four projections hold?
#     2. Which shape do the scores have for [2](claim:rows) rows of [5](claim:tokens) tokens?
#     3. Somebody replaces the stored head width by the width of the input over the heads. Where does the program
#        stop?
#
# ## The part

# %%
import torch
from torch import nn

from decoder.mutation import failures, variant

width, heads, head_width = 10, 3, 4


class FlexibleAttention(nn.Module):
    """Causal multi-head attention: (B, T, d) -> (B, T, d), 4 d H h weights."""

    def __init__(self, width, heads, head_width):
        super().__init__()
        self.heads, self.head_width = heads, head_width
        inner = heads * head_width
        self.q = nn.Linear(width, inner, bias=False)
        self.k = nn.Linear(width, inner, bias=False)
        self.v = nn.Linear(width, inner, bias=False)
        self.o = nn.Linear(inner, width, bias=False)

    def split(self, y, x):  # (B, T, H h) -> (B, H, T, h)
        h = self.head_width
        return y.view(x.size(0), x.size(1), self.heads, h).transpose(
            1, 2
        )

    def scores(self, x):  # (B, T, d) -> (B, H, T, T)
        q, k = self.split(self.q(x), x), self.split(self.k(x), x)
        future = torch.ones(
            x.size(1), x.size(1), dtype=torch.bool
        ).triu(1)
        scores = q @ k.transpose(-1, -2) / self.head_width**0.5
        return scores.masked_fill(future, float("-inf"))

    def forward(self, x):  # (B, T, d) -> (B, T, d)
        y = self.scores(x).softmax(-1) @ self.split(self.v(x), x)
        return self.o(y.transpose(1, 2).flatten(2))


# %% [markdown]
# ## Four checks
#
# The last one, the reference, shares no code with the part: it goes query by query and head by head, and cuts the
# projections by hand. Its scale is a number worked out beforehand: heads of width [4](claim:head_width) divide their
# scores by [2](<claim:head_width**0.5>).

# %%
rows, tokens = 2, 5


def an_input():
    generator = torch.Generator().manual_seed(1)
    return torch.randn(
        rows, tokens, width, dtype=torch.float64, generator=generator
    )


def made(kind):
    torch.manual_seed(0)
    return kind(width, heads, head_width).double()


def weights(kind):
    count = sum(weight.numel() for weight in made(kind).parameters())
    assert count == 480, f"{count} weights, not 480"


def shapes(kind):
    part, x = made(kind), an_input()
    found = tuple(part.scores(x).shape), tuple(part(x).shape)
    assert found == ((2, 3, 5, 5), (2, 5, 10)), (
        f"scores and output have shapes {found}"
    )


def causality(kind):
    part, x = made(kind), an_input()
    changed = x.clone()
    changed[:, -1] += 1
    moved = (part(changed) - part(x))[:, :-1].abs().max().item()
    assert moved == 0, (
        f"outputs before the changed token moved by {moved:.2f}"
    )


def reference(kind):
    part, x = made(kind), an_input()
    expected = torch.zeros(rows, tokens, width, dtype=torch.float64)
    for b in range(rows):
        for t in range(tokens):
            found = []
            for i in range(3):
                cut = slice(4 * i, 4 * i + 4)
                q = part.q.weight[cut] @ x[b, t]
                k = x[b, : t + 1] @ part.k.weight[cut].T
                v = x[b, : t + 1] @ part.v.weight[cut].T
                found.append(torch.softmax(k @ q / 2, 0) @ v)
            expected[b, t] = part.o.weight @ torch.cat(found)
    gap = (part(x) - expected).abs().max().item()
    assert gap < 1e-12, f"the loop gives something else, by {gap:.2f}"


SUBJECT = FlexibleAttention
CHECKS = {
    check.__name__: check
    for check in (weights, shapes, causality, reference)
}
print(failures(CHECKS, SUBJECT) or "nothing fails")
count = sum(weight.numel() for weight in made(SUBJECT).parameters())
derived = (
    4 * width * width
)  # if the heads together were as wide as the stream

# %% [markdown]
# `failures` runs all checks and collects what they raise: nothing. The part holds [480](claim:count) weights, $4\cdot
# 10\cdot 12 = 480$; with heads that together are as wide as the stream it would hold [400](claim:derived). The scores
# know nothing of the head width: [(2, 3, 5, 5)](<claim:tuple(made(SUBJECT).scores(an_input()).shape)>).
#
# ## Break it
#
# `variant` copies the class with one edit in the source of one method. Before you run the cell, write down for each
# edit which checks will fail.

# %%
EDITS = {
    "bias in one projection": (
        "__init__",
        "inner, width, bias=False",
        "inner, width",
        {"weights", "reference"},
    ),
    "head width from the input": (
        "split",
        "h = self.head_width",
        "h = x.size(-1) // self.heads",
        {"shapes", "causality", "reference"},
    ),
    "mask off": (
        "scores",
        "triu(1)",
        "triu(x.size(1))",
        {"causality", "reference"},
    ),
    "mask one token late": (
        "scores",
        "triu(1)",
        "triu(2)",
        {"causality", "reference"},
    ),
    "scale by the width of the model": (
        "scores",
        "self.head_width**0.5",
        "x.size(-1)**0.5",
        {"reference"},
    ),
    "heads and tokens mixed up": (
        "forward",
        "y.transpose(1, 2).flatten(2)",
        "y.reshape(x.size(0), x.size(1), -1)",
        {"causality", "reference"},
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

# %% [markdown]
# Three of these are worth a second look.
#
# - **Head width from the input** stops at the reshape, as it must. Integer division makes heads of
#   [3](<claim:width // heads>), the [3](claim:heads) of them need [9](<claim:heads * (width // heads)>) features, and
#   the projections deliver [12](<claim:heads * head_width>). A check that divides the width by the heads was never a
#   law of attention; it guards this line.
# - **Scale by the width of the model** has the right count, the right shapes, and is causal. Only a reference sees
#   it.
# - **Heads and tokens mixed up** has the right shapes too. What gives it away first is that information flows
#   backwards.
#
# !!! warning "What this does not show"
#     That wider heads are any good. The checks decide whether this is the function that was meant. They say nothing
#     about quality or speed; [the shape of a model](../decisions/dimensions.md) says what is known of those.
