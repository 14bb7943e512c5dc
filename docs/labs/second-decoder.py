# %% [markdown]
# # Lab: edits to a second decoder
#
# The quickest way to understand somebody's decoder is to change it and to say beforehand what will happen. The
# decoder of this lab is new to you: it is built the way nanoGPT is (learned positions, one matrix for queries, keys
# and values, LayerNorm without a shift, a plain GELU part), in our own words. You make four edits that its readers
# often try, and see for each what it breaks. [Read someone else's decoder](../practice/code-reading.md) goes with it.
#
# !!! question "Predict first"
#     For each edit: does the number of parameters change, does the output, and does anything fail?
#
#     1. Both branches of a block read the first norm.
#     2. The head gets a clone of the embedding, in the constructor.
#     3. The feed-forward part is exchanged for a gated one of the same size.
#     4. The line is deleted that refuses a width which the heads do not divide.
#
# ## The decoder

# %%
import torch
import torch.nn.functional as F
from torch import nn

from decoder.mutation import failures, variant

sizes = {"vocab": 5, "context": 4, "layers": 1, "width": 12, "heads": 3}


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        if width % heads:
            raise ValueError(
                f"width must be divisible by heads, got {width} and {heads}"
            )
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):  # (B, T, d) -> (B, T, d)
        B, T, d = x.shape
        q, k, v = (
            part.view(B, T, self.heads, d // self.heads).transpose(1, 2)
            for part in self.qkv(x).split(d, dim=2)
        )
        y = F.scaled_dot_product_attention(  # (B, H, T, h)
            query=q, key=k, value=v, is_causal=True
        )
        return self.out(y.transpose(1, 2).reshape(B, T, d))


class Plain(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        inner = F.gelu(self.up(x))  # (B, T, m)
        return self.down(inner)


class Block(nn.Module):
    attention_part, feed_forward_part = Attention, Plain

    def __init__(self, width, heads):
        super().__init__()
        self.norm_1, self.attention = (
            Norm(width),
            self.attention_part(width, heads),
        )
        self.norm_2, self.feed_forward = (
            Norm(width),
            self.feed_forward_part(width),
        )

    def forward(self, x):
        x = x + self.attention(self.norm_1(x))
        return x + self.feed_forward(self.norm_2(x))


class Small(nn.Module):
    """ids (B, T) -> logits (B, T, V)."""

    block = Block

    def __init__(self, vocab, context, layers, width, heads):
        super().__init__()
        self.tokens = nn.Embedding(vocab, width)
        self.places = nn.Embedding(context, width)
        self.blocks = nn.Sequential(
            *[self.block(width, heads) for _ in range(layers)]
        )
        self.norm = Norm(width)
        self.head = nn.Linear(width, vocab, bias=False)
        self.tokens.weight = self.head.weight
        self.apply(self.draw)

    @staticmethod
    def draw(module):
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        return self.head(self.norm(self.blocks(x)))


# %% [markdown]
# ## Six checks
#
# The order of the branches is checked against a block put together by hand from its parts.

# %%
ids = torch.tensor([[1, 4, 2, 0]])  # (B, T)


def made(kind, **changes):
    torch.manual_seed(0)
    model = kind(**sizes | changes).double()
    for weight in {
        id(weight): weight for weight in model.parameters()
    }.values():
        nn.init.normal_(weight, std=0.5)
    return model


def size(module):
    return sum(weight.numel() for weight in module.parameters())


def count(kind):
    found = size(made(kind))
    assert found == 1872, f"{found:,} parameters, not 1,872"


def identity(kind):
    model = made(kind)
    assert model.tokens.weight is model.head.weight, (
        "head and embedding are two objects"
    )


def prefix(kind):
    model = made(kind)
    gap = (model(ids)[:, :2] - model(ids[:, :2])).abs().max().item()
    assert gap < 1e-12, f"the logits of a prefix moved by {gap:.2f}"


def gradients(kind):
    model = made(kind)
    model(ids).square().sum().backward()
    unused = [
        name
        for name, weight in model.named_parameters()
        if weight.grad is None
    ]
    assert not unused, f"no gradient: {', '.join(unused)}"


def serial(kind):
    block = made(kind).blocks[0]
    x = torch.randn(
        1, 4, block.norm_1.weight.numel(), dtype=torch.float64
    )
    middle = x + block.attention(block.norm_1(x))
    expected = middle + block.feed_forward(block.norm_2(middle))
    gap = (block(x) - expected).abs().max().item()
    assert gap < 1e-12, (
        f"the serial formula gives something else, by {gap:.2f}"
    )


def refusal(kind):
    try:
        made(kind, width=10)(ids)
    except ValueError:
        return
    raise AssertionError("a width of 10 with 3 heads was taken")


SUBJECT = Small
CHECKS = {
    check.__name__: check
    for check in (count, identity, prefix, gradients, serial, refusal)
}
print(failures(CHECKS, SUBJECT) or "nothing fails")
total, in_plain = (
    size(made(Small)),
    size(made(Small).blocks[0].feed_forward),
)

# %% [markdown]
# The decoder has [1,872](claim:total) parameters, of which the feed-forward part holds
# $2\cdot 12\cdot 48 = 1{,}152$, [1,152](claim:in_plain) when counted.
#
# ## The edits
#
# Each is one change of one part, put into the decoder that is otherwise as it was.


# %%
class Gated(nn.Module):
    def __init__(self, width):
        super().__init__()
        hidden = 8 * width // 3
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        inner = F.silu(self.gate(x)) * self.up(x)  # (B, T, m)
        return self.down(inner)


def with_block(**changes):
    return type(
        "Small", (Small,), {"block": type("Block", (Block,), changes)}
    )


parallel = variant(
    Block,
    "forward",
    "x = x + self.attention(self.norm_1(x))\n    return x + self.feed_forward(self.norm_2(x))",
    "n = self.norm_1(x)\n    return x + self.attention(n) + self.feed_forward(n)",
)
TIE = "self.tokens.weight = self.head.weight"
CLONE = "self.tokens.weight = nn.Parameter(self.head.weight.detach().clone())"
untied = variant(Small, "__init__", TIE, CLONE)
unguarded = variant(
    Attention, "__init__", "if width % heads:", "if False:"
)
unmasked = variant(
    Attention, "forward", "is_causal=True", "is_causal=False"
)
MUTATIONS = {
    "both branches read one norm": (
        with_block(forward=parallel.forward),
        {"gradients", "serial"},
    ),
    "untied by a clone": (untied, {"count", "identity"}),
    "gated feed-forward part": (
        with_block(feed_forward_part=Gated),
        set(),
    ),
    "guard deleted": (
        with_block(attention_part=unguarded),
        {"refusal"},
    ),
    "mask off": (with_block(attention_part=unmasked), {"prefix"}),
}
for name, (broken, _) in MUTATIONS.items():
    print(name)
    found = failures(CHECKS, broken)
    for check, message in found.items():
        print(f"    {check}\n        {message}")
    if not found:
        print("    nothing fails")
broken_parallel, in_gated = (
    MUTATIONS["both branches read one norm"][0],
    size(Gated(12)),
)
moved = (
    (made(broken_parallel)(ids) - made(Small)(ids)).abs().max().item()
)
in_untied = size(made(untied))

# %% [markdown]
# **Both branches read one norm.** The second norm is still registered and nobody reads it; its gradient is not zero
# but missing, and an optimizer passes over it in silence. The logits moved by [> 1](claim:moved), with the same
# weights: it is another function.
#
# **Untied.** The count rises by [60](<claim:in_untied - total>), $5\cdot 12 = 60$, and identity is gone.
#
# **Gated.** Nothing fails, and nothing should. The gated part holds $3\cdot 12\cdot 32 = 1{,}152$ weights as well,
# [1,152](claim:in_gated) when counted, and attention is as causal as it was. That says that the part was
# put in well, not that it is worth anything in training.
#
# **Guard deleted.** [Ten](<claim:width>) features over [3](<claim:sizes["heads"]>) heads make heads of
# [3](<claim:width // sizes["heads"]>), which use [9](<claim:width // sizes["heads"] * sizes["heads"]>) features, and
# the view of [40](<claim:width * ids.numel()>) numbers fails. The guard speaks for three other lines: the width of
# the combined matrix, the split, the view. To have heads of width [4](claim:wider) all of them must change, and the
# way back as well, the last reshape and the output matrix; that is [the lab on attention](flexible-attention.md).
#
# ## A clone that does not stay one
#
# The clone of the second edit has equal values, you may think, and differs only as an object. But look at what the
# constructor does after it:

# %%
torch.manual_seed(0)
width, wider = 10, 4
clone = untied(**sizes)
equal = torch.equal(clone.tokens.weight, clone.head.weight)

late = Small(**sizes)
late.tokens.weight = nn.Parameter(late.head.weight.detach().clone())
equal_late = torch.equal(late.tokens.weight, late.head.weight)
print(
    f"cloned in the constructor: equal {equal}; cloned after it: equal {equal_late}"
)

# %% [markdown]
# Equal, [no](claim:equal): the initialization below the line of tying draws each of the two tables anew. They were
# equal for a moment. To study equal values in separate objects, clone when construction has ended, and before the
# optimizer takes its list: equal, [yes](claim:equal_late).
#
# !!! warning "What this does not show"
#     What any of these edits does to a training run. Six small checks find an unsound integration of the kinds tried
#     here; that nothing fails is no proof of a sound one.
