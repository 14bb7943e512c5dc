"""The self-check can fail: each of these changes to the source breaks the checks that it should.

A change is made in the text of one module, the decoder is built anew from the changed text, and all checks run on it.
"""

import sys
import types

import pytest

from decoder.onefile import module_sources, one_file

NORM = "return (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + eps)).to(x.dtype)\n\n\ndef layer_norm"
WIDE = "return x.to(torch.promote_types(x.dtype, torch.float32))"
RESIDUAL = "x = self.attention_post_norm(self._carry(x) + branch)"
GATED = "return self.down(self.activation(self.gate(x)) * self.up(x))"
TIE = "self.head.weight = self.embedding.weight"
ROTATE = "q, k = apply_rotary(q, *view.rotation, self.pairing), apply_rotary(k, *view.rotation, self.pairing)"

# change: (module, text, replacement, checks that must fail; True if no other may)
MUTATIONS = {
    "causal mask off": (
        "attention", "is_causal=causal", "is_causal=False", {"causality", "attention reference"}, False,
    ),
    "key/value heads tiled": (
        "attention", "x.repeat_interleave(times, dim=1)", "x.repeat(1, times, 1, 1)", {"attention reference"}, True,
    ),
    "values rotated too": (
        "attention", ROTATE, ROTATE + "\n            v = apply_rotary(v, *view.rotation, self.pairing)",
        {"shift invariance", "attention reference"}, False,
    ),
    "no rotation": (
        "attention", "if self.rotary and view.rotation is not None:", "if False:",
        {"attention reference", "block reference"}, True,
    ),
    "queries rotated only": (
        "attention", ROTATE, "q = apply_rotary(q, *view.rotation, self.pairing)",
        {"shift invariance", "attention reference"}, False,
    ),
    "half-split pairs": (
        "positions", "if pairing == \"adjacent\" else", "if pairing == \"half\" else", {"rotary pairing"}, True,
    ),
    "half-split pairs by default": (
        "config", 'rope_pairing: Pairing = "adjacent"', 'rope_pairing: Pairing = "half"', {"rotary pairing"}, False,
    ),
    "final norm removed": (
        "model", "self.head(self.embedding_out(self.final_norm(x)))", "self.head(self.embedding_out(x))",
        {"all gradients", "final norm reference"}, True,
    ),
    "not tied": ("model", "if config.tied:", "if not config.tied:", {"parameters", "tying"}, False),
    "tied by a clone": (
        "model", TIE, "self.head.weight = nn.Parameter(self.embedding.weight.detach().clone())",
        {"parameters", "tying"}, False,
    ),
    "gate added": (
        "feedforward", GATED, "return self.down(self.activation(self.gate(x)) + self.up(x))",
        {"block reference"}, True,
    ),
    "activation on the other branch": (
        "feedforward", GATED, "return self.down(self.gate(x) * self.activation(self.up(x)))",
        {"block reference"}, True,
    ),
    "GELU gate": (
        "config", 'activation: Activation = "silu"', 'activation: Activation = "gelu"', {"block reference"}, True,
    ),
    "RMSNorm by the sum": (
        "norms", NORM, NORM.replace(".mean(", ".sum("),
        {"norm value", "norm in half precision, constant", "norm in double precision", "final norm reference"}, False,
    ),
    "RMSNorm without the mean": (
        "norms", NORM, "y = y - y.mean(-1, keepdim=True)\n    " + NORM,
        {"norm value", "norm in half precision, constant", "final norm reference"}, False,
    ),
    "no 32 bits in the norm": ("norms", WIDE, "return x", {"norm in half precision, finite"}, False),
    "always 32 bits in the norm": ("norms", WIDE, "return x.float()", {"norm in double precision"}, False),
    "parallel block": (
        "block",
        "branch = self.feed_forward_out_norm(self.feed_forward(self.feed_forward_norm(x)))",
        "branch = self.feed_forward_out_norm(self.feed_forward(self.attention_norm(x)))",
        {"all gradients", "block reference"}, True,
    ),
    "parallel block by default": (
        "config", 'block: BlockKind = "serial"', 'block: BlockKind = "parallel"',
        {"block reference", "parameters"}, False,
    ),
    "post-norm block": (
        "config", 'norm_placement: NormPlacement = "pre"', 'norm_placement: NormPlacement = "post"',
        {"block reference"}, False,
    ),
    "residual dropped": ("block", RESIDUAL, "x = self.attention_post_norm(branch)", {"block reference"}, False),
    "end token of the prompt finishes a row": (
        "generate", "finished = torch.zeros_like(ids[:, 0], dtype=torch.bool)",
        "finished = (ids == eos).any(1)", {"end of sequence"}, False,
    ),
    "no padding after the end": (
        "generate", "token = token.masked_fill(finished, eos)", "pass", {"end of sequence"}, True,
    ),
    "no stop at the context": (
        "generate", "limit = min(ids.shape[1] + new_tokens, config.context)", "limit = ids.shape[1] + new_tokens",
        {"context limit"}, True,
    ),
    "mode not restored": ("generate", "module.training = training", "pass", {"mode restored"}, True),
    "bias in one projection": (
        "attention", 'bias="o" in bias)', "bias=True)", {"parameters", "block reference"}, False,
    ),
    "positions restart at zero": (
        "model", "positions = torch.arange(past, total, device=ids.device)[None]",
        "positions = torch.arange(total - past, device=ids.device)[None]", {"cached step"}, False,
    ),
    "repeated heads in the cache": (
        "attention", "k, v = cache.update(k, v)",
        "k, v = cache.update(repeat_kv(k, 2), repeat_kv(v, 2))", {"cached step"}, False,
    ),
    "plain start for all matrices": (
        "model", "INIT_STD / math.sqrt(2 * self.config.layers) if writes else INIT_STD", "INIT_STD", {"start"}, True,
    ),
}  # fmt: skip


def failed_checks(sources: dict[str, str]) -> set[str]:
    module = types.ModuleType("mutated_decoder")
    sys.modules[module.__name__] = module  # dataclasses look their module up
    try:
        exec(compile(one_file(sources), "mutated_decoder.py", "exec"), module.__dict__)
        return set(module.failures())
    finally:
        del sys.modules[module.__name__]


def test_the_unchanged_source_fails_nothing():
    assert failed_checks(module_sources()) == set()


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_change_breaks_its_checks(name):
    module, text, replacement, checks, alone = MUTATIONS[name]
    sources = module_sources()
    assert sources[module].count(text) == 1, f"{text!r} must stand once in {module}.py"
    sources[module] = sources[module].replace(text, replacement)
    failed = failed_checks(sources)
    assert checks <= failed
    assert not alone or failed == checks
