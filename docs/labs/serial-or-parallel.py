# %% [markdown]
# # Lab: serial or parallel, by counterexample
#
# "A parallel block computes the same thing on another schedule." One input that proves otherwise is enough, and it
# can be found on paper. In this lab the two branches are small functions that you can evaluate in your head; the
# block around them is the real one.
#
# !!! question "Predict first"
#     Leave the norms out. The stream holds two numbers, and
#
#     $$
#     x = (2, 0), \qquad A(z) = (z_1, z_0), \qquad M(z) = (z_0 z_1, 0)
#     $$
#
#     with $z_0$ the first number. Attention $A$ swaps the two, the feed-forward part $M$ multiplies them.
#
#     1. What does a serial block return, which hands $x + A(x)$ to the feed-forward part?
#     2. What does a parallel one return, where both read $x$?
#     3. For which $A$ and $M$ do the two agree?
#
# ## The block

# %%
import torch
from torch import nn

from decoder.mutation import failures, variant


class Block(nn.Module):
    """A serial block with a norm before each branch, around any two branches."""

    def __init__(self, attention, feed_forward, norm=nn.Identity):
        super().__init__()
        self.attention, self.feed_forward = attention, feed_forward
        self.attention_norm, self.feed_forward_norm = norm(), norm()

    def forward(self, x):
        h = x + self.attention(self.attention_norm(x))
        return h + self.feed_forward(self.feed_forward_norm(h))


Parallel = variant(
    Block,
    "forward",
    "self.feed_forward_norm(h)",
    "self.feed_forward_norm(x)",
)

# %% [markdown]
# One edit makes it parallel: the second branch reads `x`, no longer `h`.

# %%
x = torch.tensor([2, 0])


def swap(z):
    return z.flip(-1)


def product(z):
    return torch.stack(
        [z[..., 0] * z[..., 1], torch.zeros_like(z[..., 0])], -1
    )


serial, parallel = (
    tuple(kind(swap, product)(x).tolist()) for kind in (Block, Parallel)
)
print(serial, parallel)

# %% [markdown]
# Serial: attention makes $h = (2, 2)$ of $x$, the product of the two is $2\cdot 2 = 4$, and the block returns
# [(6, 2)](claim:serial). Parallel: the product of $2$ and $0$ is nothing, and the block returns
# [(2, 2)](claim:parallel). No reordering of the work turns one into the other.
#
# The same for a stream of a single number, [1](claim:one.item()), with $A(z) = 2z$ and $M(z) = 3z$:

# %%
one = torch.tensor(1)
in_series, in_parallel = (
    kind(lambda z: 2 * z, lambda z: 3 * z)(one).item()
    for kind in (Block, Parallel)
)
crossing = in_series - in_parallel
print(in_series, in_parallel, crossing)

# %% [markdown]
# [12](claim:in_series) against [6](claim:in_parallel). For linear branches the difference, [6](claim:crossing), is
# $M(A(x))$: what the second branch makes of the first one's work. That term is what a parallel block gives up.
#
# They agree where $M(x + A(x)) = M(x)$: where attention writes nothing, or where the feed-forward part does not look
# at what attention wrote.

# %%


def write_second(z):  # attention writes to the second number only
    return torch.stack([torch.zeros_like(z[..., 0]), z[..., 0]], -1)


def read_first(z):  # and the feed-forward part looks at the first only
    return torch.stack(
        [z[..., 0] ** 2, torch.zeros_like(z[..., 0])], -1
    )


agree = torch.equal(
    Block(write_second, read_first)(x),
    Parallel(write_second, read_first)(x),
)
print(agree)

# %% [markdown]
# Here they do: [yes](claim:agree).
#
# ## Five checks
#
# The checks turn these observations into questions to any block. Two more concern the norms: a norm that returns
# nothing must silence both branches and leave the stream alone, and every norm that a block owns must be in use.


# %%
def counterexample(kind):
    found = tuple(kind(swap, product)(x).tolist())
    assert found == (6, 2), f"{found}, not (6, 2)"


def scalar(kind):
    found = kind(lambda z: 2 * z, lambda z: 3 * z)(one).item()
    assert found == 12, f"{found}, not 12"


def silent_branches(kind):
    found = tuple(kind(torch.zeros_like, torch.zeros_like)(x).tolist())
    assert found == (2, 0), (
        f"branches that add nothing turn (2, 0) into {found}"
    )


class Nothing(nn.Module):
    def forward(self, z):
        return torch.zeros_like(z)


def free_stream(kind):
    found = tuple(kind(swap, product, Nothing)(x).tolist())
    assert found == (2, 0), (
        f"norms that return nothing turn (2, 0) into {found}"
    )


def every_norm(kind):
    torch.manual_seed(0)
    block = kind(
        nn.Linear(4, 4), nn.Linear(4, 4), lambda: nn.RMSNorm(4)
    )
    block(torch.randn(3, 4)).square().sum().backward()
    unused = [
        name
        for name, weight in block.named_parameters()
        if weight.grad is None
    ]
    assert not unused, f"no gradient: {', '.join(unused)}"


SUBJECT = Block
CHECKS = {
    check.__name__: check
    for check in (
        counterexample,
        scalar,
        silent_branches,
        free_stream,
        every_norm,
    )
}
print(failures(CHECKS, SUBJECT) or "nothing fails")

# %% [markdown]
# ## Break it

# %%
EDITS = {
    "parallel": (
        "self.feed_forward_norm(h)",
        "self.feed_forward_norm(x)",
        {"counterexample", "scalar"},
    ),
    "one shared norm": (
        "self.feed_forward_norm(h)",
        "self.attention_norm(h)",
        {"every_norm"},
    ),
    "first residual dropped": (
        "h = x + ",
        "h = ",
        {"counterexample", "scalar", "silent_branches", "free_stream"},
    ),
    "norm after the sum": (
        "h = x + self.attention(self.attention_norm(x))",
        "h = self.attention_norm(x + self.attention(x))",
        {"free_stream"},
    ),
}
MUTATIONS = {
    name: (variant(SUBJECT, "forward", *edit), breaks)
    for name, (*edit, breaks) in EDITS.items()
}
for name, (broken, _) in MUTATIONS.items():
    print(name)
    for check, message in failures(CHECKS, broken).items():
        print(f"    {check}\n        {message}")

# %% [markdown]
# Each edit has a signature of its own. The parallel block passes everything that concerns the residual stream and the
# norms: it is a sound block, and another function. The shared norm passes all values here, because norms without
# weights are alike; what gives it away is the norm that nothing reads, whose gradient is not zero but missing.
#
# !!! warning "What this does not show"
#     Which of the two is better, or faster. For that see
#     [serial or parallel](../decisions/serial-or-parallel.md), with the settings of the comparisons that were made.
