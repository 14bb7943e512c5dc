# ---
# claims:
#   constant:
#     "nine": counted over the ways in which this lab breaks the decoder
#     "one": counted over the checks of the decoder that a fault fails
#     "18": counted over the checks of the decoder
#     "100,092,672": the parameters of the design whose sizes the sentence lists
# ---

# %% [markdown]
# # Lab: five questions to a decoder
#
# A decoder that trains can still be wrong. In this lab you put five questions to a whole one, each small enough to be
# answered in a moment on random weights, and then break the decoder in [nine](claim:len(EDITS)) ways. The point is to
# learn what each question can see, and what none of them sees.
#
# !!! question "Predict first"
#     For each of the five, think of a fault in the decoder that it would report, and of one that it would let pass:
#
#     1. Do earlier logits stay the same when the last token changes?
#     2. Has every parameter a finite gradient after one backward pass?
#     3. Is the number of parameters what a formula says?
#     4. Are the input table and the head one object?
#     5. Does generation return as many tokens as were asked for?
#
# ## The decoder under test
#
# `edited_decoder()` builds the book's decoder anew from the text of its modules; with an edit, it builds it from the
# edited text. The model is tiny and in double precision. In the first question "the same" means every bit, since a
# masked key enters the sums of attention as an exact zero.

# %%
import torch
import torch.nn.functional as F

from decoder.mutation import edited_decoder, failures

vocab, width, layers, heads, kv_heads, hidden = 17, 16, 2, 4, 2, 40


def tiny(decoder):
    torch.manual_seed(0)
    return decoder.Decoder(
        decoder.Config(
            vocab=vocab,
            width=width,
            layers=layers,
            heads=heads,
            kv_heads=kv_heads,
            hidden=hidden,
            context=16,
        )
    ).double()


def ids(tokens=9):
    generator = torch.Generator().manual_seed(1)
    return torch.randint(
        vocab, (2, tokens), generator=generator
    )  # (B, T)


# %% [markdown]
# ## The five questions
#
# Each takes the decoder to be asked, and raises `AssertionError` where it finds something else than it should.


# %%
def causality(decoder):
    model, some = tiny(decoder), ids()
    other = some.clone()
    other[:, -1] = (other[:, -1] + 1) % vocab
    moved = (model(other) - model(some))[:, :-1].abs().max().item()
    assert moved == 0, f"earlier logits moved by {moved:.1e}"


def gradients(decoder):
    model, some = tiny(decoder), ids()
    F.cross_entropy(
        model(some[:, :-1]).flatten(0, 1), some[:, 1:].flatten()
    ).backward()
    without = [
        name
        for name, weight in model.named_parameters()
        if weight.grad is None or not weight.grad.isfinite().all()
    ]
    assert not without, f"no finite gradient: {', '.join(without)}"


def formula(V, d, L, H, K, m):
    h = d // H
    return (
        V * d
        + L * (2 * d * H * h + 2 * d * K * h + 3 * d * m + 2 * d)
        + d
    )


def count(decoder):
    found = sum(weight.numel() for weight in tiny(decoder).parameters())
    expected = formula(vocab, width, layers, heads, kv_heads, hidden)
    assert found == expected, f"{found:,} parameters, not {expected:,}"


def tying(decoder):
    model = tiny(decoder)
    assert model.head.weight is model.embedding.weight, (
        "head and embedding are two objects"
    )


def generation(decoder):
    found = tuple(
        decoder.generate(tiny(decoder), ids()[:1, :2], 3).shape
    )
    assert found == (1, 5), (
        f"2 tokens and 3 new ones make {found}, not (1, 5)"
    )


SUBJECT = edited_decoder()
CHECKS = {
    check.__name__: check
    for check in (causality, gradients, count, tying, generation)
}
print(failures(CHECKS, SUBJECT) or "nothing fails")
with torch.device("meta"):
    design = SUBJECT.Decoder(SUBJECT.Config())
in_design = sum(weight.numel() for weight in design.parameters())
in_tiny = sum(weight.numel() for weight in tiny(SUBJECT).parameters())

# %% [markdown]
# All five hold. The tiny decoder has [5,728](claim:in_tiny) parameters, and the formula says
# [5,728](<claim:formula(vocab, width, layers, heads, kv_heads, hidden)>). The same formula gives the book's design,
# [100,092,672](<claim:formula(32_000, 768, 12, 12, 4, 2_048)>), and so does a model of that size on the meta device,
# which has shapes and no memory: [100,092,672](claim:in_design).
#
# ## Break it, and see who notices
#
# Each edit is one change in the text of one module.

# %%
CLONE = "self.head.weight = nn.Parameter(self.embedding.weight.detach().clone())"
EDITS = {
    "mask off": (
        "attention",
        "is_causal=causal",
        "is_causal=False",
        {"causality"},
    ),
    "final norm left out": (
        "model",
        "self.embedding_out(self.final_norm(x))",
        "self.embedding_out(x)",
        {"gradients"},
    ),
    "second norm unused": (
        "block",
        "self.feed_forward(self.feed_forward_norm(x))",
        "self.feed_forward(self.attention_norm(x))",
        {"gradients"},
    ),
    "bias in one projection": (
        "attention",
        'bias="o" in bias)',
        "bias=True)",
        {"count"},
    ),
    "not tied": (
        "model",
        "if config.tied:",
        "if not config.tied:",
        {"count", "tying"},
    ),
    "tied by a clone": (
        "model",
        "self.head.weight = self.embedding.weight",
        CLONE,
        {"count", "tying"},
    ),
    "one token short": (
        "generate",
        "limit = min(ids.shape[1] + new_tokens, config.context)",
        "limit = min(ids.shape[1] + new_tokens - 1, config.context)",
        {"generation"},
    ),
    "gate added, not multiplied": (
        "feedforward",
        "self.activation(self.gate(x)) * self.up(x)",
        "self.activation(self.gate(x)) + self.up(x)",
        set(),
    ),
    "key/value heads tiled": (
        "attention",
        "x.repeat_interleave(times, dim=1)",
        "x.repeat(1, times, 1, 1)",
        set(),
    ),
}
MUTATIONS = {
    name: (edited_decoder(*edit), breaks)
    for name, (*edit, breaks) in EDITS.items()
}
for name, (broken, _) in MUTATIONS.items():
    print(name)
    found = failures(CHECKS, broken)
    for check, message in found.items():
        print(f"    {check}\n        {message}")
    if not found:
        print("    nobody notices")
unseen = [
    name
    for name, (broken, _) in MUTATIONS.items()
    if not failures(CHECKS, broken)
]

# %% [markdown]
# [Seven](<claim:len(MUTATIONS) - len(unseen)>) are found, each by the questions whose subject it is, and
# [two](<claim:len(unseen)>) by none. A gate that is added has the same matrices, the same gradients, the same
# shapes. Tiled heads are still heads. What is left to see them is a comparison with a formula that does not share the
# code: a *reference*. The decoder's own self-check asks more questions, references among them:

# %%
whole = SUBJECT.CHECKS
caught = {
    name: sorted(MUTATIONS[name][0].failures()) for name in unseen
}
for name, found in caught.items():
    print(f"{name}: {', '.join(found)}")

# %% [markdown]
# Of its [18](claim:len(whole)) checks [one](<claim:len(caught[unseen[0]])>) sees the added gate, and
# [one](<claim:len(caught[unseen[1]])>) the tiled heads. The [walk through the decoder](../decoder/walkthrough.md)
# shows all of them with the faults that each one finds.
#
# !!! warning "What this does not show"
#     Checks of components are no evidence that a language model is good, or fast. They decide whether it is the
#     function that was meant; without that, a comparison of two designs compares something else.
