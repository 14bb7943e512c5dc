# ---
# claims:
#   constant:
#     "twice": the table stands twice in one list, whatever its size
# ---

# %% [markdown]
# # Lab: one table, one object
#
# Tying the head to the embedding is one assignment. It is also easy to undo without noticing: by a copy, by a later
# replacement, by the way the optimizer is given its list. In this lab the model is a table and a head of
# [5](claim:V) tokens and width [3](claim:width), small enough to see every number.
#
# !!! question "Predict first"
#     1. How many parameters does the model register tied, and how many with a copy of the table in the head?
#     2. The gradient of a tied table has two sources. Which rows does each one reach?
#     3. The table is handed to SGD twice, in one list. What happens to the step?
#
# ## The model
#
# `tie` shares the table, `optimizer` makes the optimizer. Both are methods, so that we can break them one at a time.

# %%
import warnings

import torch
import torch.nn.functional as F
from torch import nn

from decoder.mutation import failures, variant

V, width, rate = 5, 3, 0.1
ids, targets = torch.tensor([1, 2]), torch.tensor([3, 0])  # (T,)


class Ends(nn.Module):
    """The two ends of a decoder, with nothing but a tanh in between."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(V, width, dtype=torch.float64)
        self.head = nn.Linear(width, V, bias=False, dtype=torch.float64)
        self.tie()

    def tie(self):
        self.head.weight = self.embedding.weight

    def forward(self, ids):  # (T,) -> (T, V)
        return self.head(torch.tanh(self.embedding(ids)))

    def optimizer(self):
        made = torch.optim.SGD(self.parameters(), lr=rate)
        return made


def loss(model):
    return F.cross_entropy(model(ids), targets, reduction="sum")


def registered(model):
    return sum(weight.numel() for weight in model.parameters())


tied = Ends()
copied = variant(
    Ends,
    "tie",
    "self.embedding.weight",
    "nn.Parameter(self.embedding.weight.detach().clone())",
)()
equal = torch.equal(copied.head.weight, copied.embedding.weight)
same = copied.head.weight is copied.embedding.weight
print(registered(tied), registered(copied), equal, same)

# %% [markdown]
# Tied, [15](<claim:registered(tied)>) parameters are registered: `parameters()` lists an object once, however many
# modules hold it. With a copy there are [30](<claim:registered(copied)>). The copy has equal values
# ([yes](claim:equal)) and is another object ([no](claim:same)), so a check that compares values would be content.
#
# ## Two routes
#
# A look-up sends a gradient to the rows that were read. The comparison with the head sends one to every row, since
# every token has a probability that should have been lower or higher. The copy keeps the two apart:

# %%
loss(tied).backward()
loss(copied).backward()
from_input, from_head = (
    copied.embedding.weight.grad,
    copied.head.weight.grad,
)
gap = (
    (tied.embedding.weight.grad - from_input - from_head)
    .abs()
    .max()
    .item()
)


def rows(gradient):
    return gradient.abs().sum(1).nonzero().flatten().tolist()


print(rows(from_input), rows(from_head), gap)

# %% [markdown]
# By the look-up, rows [[1, 2]](claim:rows(from_input)); by the head, rows [[0, 1, 2, 3, 4]](claim:rows(from_head)).
# In the tied table the two add up, within [< 1e-15](claim:gap).
#
# ## Five checks


# %%
def count(kind):
    found = registered(kind())
    assert found == 15, f"{found} parameters, not 15"


def identity(kind):
    model = kind()
    assert model.head.weight is model.embedding.weight, (
        "head and embedding are two objects"
    )


def two_routes(kind):
    model = kind()
    table_in, table_out = (
        model.embedding.weight.detach().clone().requires_grad_()
        for _ in range(2)
    )
    F.cross_entropy(
        torch.tanh(table_in[ids]) @ table_out.T,
        targets,
        reduction="sum",
    ).backward()
    loss(model).backward()
    gap = (
        (model.embedding.weight.grad - table_in.grad - table_out.grad)
        .abs()
        .max()
        .item()
    )
    assert gap < 1e-12, (
        f"the gradient is not the sum of its two routes, by {gap:.2f}"
    )


def optimizer_content(kind):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kind().optimizer()
    assert not caught, str(caught[0].message).partition(";")[0]


def one_step(kind):
    model = kind()
    with warnings.catch_warnings(action="ignore"):
        optimizer = model.optimizer()
    before = model.head.weight.detach().clone()
    loss(model).backward()
    optimizer.step()
    step = rate * model.head.weight.grad
    taken = before - model.head.weight.detach()
    times = (taken.abs().max() / step.abs().max()).item()
    assert torch.allclose(taken, step), (
        f"the head took {times:.2f} times the step"
    )


SUBJECT = Ends
CHECKS = {
    check.__name__: check
    for check in (
        count,
        identity,
        two_routes,
        optimizer_content,
        one_step,
    )
}
print(failures(CHECKS, SUBJECT) or "nothing fails")

# %% [markdown]
# ## Break it
#
# The last three are traps of the optimizer. Predict for each of them whether PyTorch says something.

# %%
BOTH = "[*self.embedding.parameters(), *self.head.parameters()]"
GROUPS = '[{"params": end.parameters()} for end in (self.embedding, self.head)]'
COPY = "nn.Parameter(self.embedding.weight.detach().clone())"
EDITS = {
    "not tied": (
        "tie",
        "self.head.weight = self.embedding.weight",
        "pass",
        {"count", "identity", "two_routes"},
    ),
    "tied by a copy": (
        "tie",
        "self.embedding.weight",
        COPY,
        {"count", "identity", "two_routes"},
    ),
    "look-up without a gradient": (
        "forward",
        "self.embedding(ids)",
        "self.embedding(ids).detach()",
        {"two_routes"},
    ),
    "replaced after the optimizer was made": (
        "optimizer",
        "return made",
        f"self.head.weight = {COPY}\n    return made",
        {"one_step"},
    ),
    "listed twice in one group": (
        "optimizer",
        "self.parameters()",
        BOTH,
        {"optimizer_content", "one_step"},
    ),
    "listed in two groups": (
        "optimizer",
        "self.parameters()",
        GROUPS,
        {"optimizer_content", "one_step"},
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
twice = MUTATIONS["listed twice in one group"][0]()
with warnings.catch_warnings(action="ignore"):
    optimizer = twice.optimizer()
before = twice.head.weight.detach().clone()
loss(twice).backward()
optimizer.step()
times = round(
    ((before - twice.head.weight) / (rate * twice.head.weight.grad))
    .mean()
    .item(),
    6,
)
print(f"listed twice in one group: {times} times the step")

# %% [markdown]
# A copy fails on sight, if you ask for the count or for identity. The traps of the optimizer pass both:
#
# - **Replaced after the optimizer was made**: the optimizer goes on with the first table, which only the embedding still
#   holds; the head's new one is on no list. Nothing is raised and the loss is finite; the head just stays where it was.
# - **Listed twice in one group**: a warning, which a training log will bury, and the table takes the step
#   [twice](claim:times). With another optimizer it would go wrong in another way.
# - **Listed in two groups**: an error. That is the kindest of the three.
#
# So: tie in the constructor, then make the optimizer of `model.parameters()`, and let a test step it once.
#
# !!! warning "What this does not show"
#     That tying is the better choice. What it saves and what it constrains is in
#     [its chapter](../decisions/tied-embeddings.md). The messages are those of the PyTorch that built this page.
