"""The self-check: small experiments that each decide one question about the decoder.

Every check compares with something that does not share the code it questions: a value worked out by hand, a formula
written out here, or the same scores reached on another way.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from decoder.attention import Attention, View, attend
from decoder.block import Block
from decoder.cache import KVCache
from decoder.config import Config
from decoder.generate import generate
from decoder.model import Decoder, parameter_count
from decoder.norms import RMSNorm
from decoder.positions import apply_rotary, rotary_frequencies, rotary_tables

# Sizes in which no two are equal, with a head width that is not width / heads.
SMALL = Config(vocab=31, width=12, layers=2, heads=6, kv_heads=3, head_width=4, hidden=20, context=16)


class CheckFailed(Exception):
    """A check found something else than it should."""


def require(holds: bool | Tensor, message: str) -> None:
    if not holds:
        raise CheckFailed(message)


def require_close(found: Tensor, expected: Tensor, what: str, tolerance: float = 1e-12) -> None:
    gap = (found.double() - expected.double()).abs().max().item()  # nan where either is not finite
    require(gap <= tolerance, f"{what}: off by {gap:.3g}, more than {tolerance:g}")


def small_decoder(seed: int = 0, **changes: Any) -> Decoder:
    """A decoder of the sizes of `SMALL` in float64, its weights large enough that each part shows in the scores."""
    torch.manual_seed(seed)
    model = Decoder(SMALL.replace(**changes)).double()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    return model


def some_ids(rows: int = 2, tokens: int = 9) -> Tensor:
    return torch.randint(SMALL.vocab, (rows, tokens), generator=torch.Generator().manual_seed(1))


def some_stream(rows: int = 2, tokens: int = 7) -> Tensor:
    return torch.randn(rows, tokens, SMALL.width, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


def rotation(tokens: int, offset: int = 0) -> tuple[Tensor, Tensor]:
    positions = torch.arange(offset, offset + tokens)
    return rotary_tables(positions, rotary_frequencies(SMALL.head_width))


def parameters() -> None:
    """The default design has 100,092,672 parameters, and any size follows the formula."""
    with torch.device("meta"):
        count = parameter_count(Decoder(Config()))
    require(count == 100_092_672, f"the default design has {count:,} parameters, not 100,092,672")
    c = SMALL
    per_layer = 2 * c.width * c.head_width * (c.heads + c.kv_heads) + 3 * c.width * c.hidden + 2 * c.width
    expected = c.vocab * c.width + c.layers * per_layer + c.width
    count = parameter_count(Decoder(c))
    require(count == expected, f"the small design has {count} parameters, not {expected}")


def tying() -> None:
    """A tied head is the embedding's own Parameter, also after a change of dtype."""
    model = Decoder(SMALL).double()
    require(model.head.weight is model.embedding.weight, "the head is not the embedding's Parameter")


def start() -> None:
    """Matrices start with a standard deviation of 0.02, those that write to the stream with 0.02 / sqrt(2 L)."""
    torch.manual_seed(0)
    model = Decoder(SMALL.replace(width=96, hidden=160, layers=8))
    for name, parameter in model.named_parameters():
        if parameter.ndim == 2:
            std = 0.005 if name.endswith(("attention.o.weight", "feed_forward.down.weight")) else 0.02
            found = parameter.std().item()
            require(abs(found / std - 1) < 0.1, f"{name} starts with a standard deviation of {found:.4f}, not {std}")


def norm_value() -> None:
    """RMSNorm turns (3, 4) into (0.848528, 1.131371): both over the root of 12.5."""
    x = torch.tensor([3.0, 4.0], dtype=torch.float64)
    require_close(RMSNorm(2, eps=0.0).double()(x), x / 12.5**0.5, "RMSNorm of (3, 4)")


def norm_half_finite() -> None:
    """The squares of a half-precision input may pass 65,504; the norm stays finite and keeps the dtype."""
    found = RMSNorm(2).half()(torch.tensor([300.0, 400.0], dtype=torch.float16))
    require(found.dtype == torch.float16, f"RMSNorm of float16 gives {found.dtype}")
    require_close(found, torch.tensor([0.848528, 1.131371]), "RMSNorm of (300, 400) in float16", 1e-3)


def norm_half_constant() -> None:
    """A constant half-precision vector becomes ones."""
    found = RMSNorm(4).half()(torch.full((4,), 300.0, dtype=torch.float16))
    require_close(found, torch.ones(4), "RMSNorm of a constant float16 vector", 1e-3)


def norm_double() -> None:
    """A float64 input keeps float64 all through."""
    x = torch.tensor([1.0, 1 / 3, -0.7], dtype=torch.float64)
    found = RMSNorm(3, eps=1e-6).double()(x)
    require_close(found, x / ((x * x).sum() / 3 + 1e-6).sqrt(), "RMSNorm in float64", 1e-14)


def rotary_pairing() -> None:
    """Adjacent pairs: (1, 2, 3, 4) at position 1 turns (1, 2) by 1 and (3, 4) by 0.01 radians."""
    found = apply_rotary(torch.tensor([1.0, 2, 3, 4]).double().view(1, 1, 1, 4), *rotation(1, offset=1))
    expected = torch.tensor([-1.1426396637, 1.9220755966, 2.9598506679, 4.0297996696])
    require_close(found.flatten(), expected.double(), "adjacent pairs at position 1", 1e-6)
    require(Config().rope_pairing == "adjacent", f"the default pairing is {Config().rope_pairing}, not adjacent")


def attention_reference() -> None:
    """Attention equals a loop over heads and tokens, with query head i on key/value head i // (H / K)."""
    torch.manual_seed(3)
    attention, x = Attention(SMALL).double(), some_stream()
    for parameter in attention.parameters():
        nn.init.normal_(parameter, std=0.4)
    rows, tokens, h = x.shape[0], x.shape[1], SMALL.head_width
    q = apply_rotary(F.linear(x, attention.q.weight).view(rows, tokens, -1, h).transpose(1, 2), *rotation(tokens))
    k = apply_rotary(F.linear(x, attention.k.weight).view(rows, tokens, -1, h).transpose(1, 2), *rotation(tokens))
    v = F.linear(x, attention.v.weight).view(rows, tokens, -1, h).transpose(1, 2)
    heads = torch.empty_like(q)
    for i in range(SMALL.heads):
        j = i // 2
        for t in range(tokens):
            scores = (k[:, j, : t + 1] @ q[:, i, t, :, None])[..., 0] / 2  # the head width is 4
            weights = scores.exp() / scores.exp().sum(1, keepdim=True)
            heads[:, i, t] = (weights[:, :, None] * v[:, j, : t + 1]).sum(1)
    expected = F.linear(heads.transpose(1, 2).flatten(2), attention.o.weight)
    require_close(attention(x, View(rotation(tokens))), expected, "attention and the loop over heads")
    mask = torch.ones(tokens, tokens, dtype=torch.bool).tril()
    require_close(attend(q, k, v, mask, 0.5), heads, "attention with repeated heads and the loop")


def causality() -> None:
    """The scores of a prefix do not change when tokens follow."""
    model, ids = small_decoder(), some_ids()
    require_close(model(ids)[:, :5], model(ids[:, :5]), "the scores of a prefix")


def shift_invariance() -> None:
    """Attention sees offsets only: moving all tokens by 5 positions changes nothing."""
    attention, x = Attention(SMALL).double(), some_stream()
    here, there = View(rotation(7)), View(rotation(7, offset=5))
    require_close(attention(x, here), attention(x, there), "attention 5 positions later")


def block_reference() -> None:
    """A block is x + attention(norm(x)), then x + down(silu(gate(norm(x))) * up(norm(x)))."""
    torch.manual_seed(4)
    block, x, view = Block(SMALL).double(), some_stream(), View(rotation(7))
    for parameter in block.parameters():
        nn.init.normal_(parameter, std=0.4)

    def norm(x: Tensor, weight: Tensor) -> Tensor:
        return F.rms_norm(x, (SMALL.width,), weight, SMALL.norm_eps)

    weights = dict(block.named_parameters())
    y = norm(x, weights["attention_norm.weight"])
    q, k, v = (F.linear(y, weights[f"attention.{name}.weight"]) for name in "qkv")
    q, k, v = (part.unflatten(-1, (-1, SMALL.head_width)).transpose(1, 2) for part in (q, k, v))
    q, k = apply_rotary(q, *rotation(7)), apply_rotary(k, *rotation(7))
    heads = F.scaled_dot_product_attention(query=q, key=k, value=v, enable_gqa=True, is_causal=True)
    middle = x + F.linear(heads.transpose(1, 2).flatten(2), weights["attention.o.weight"])
    y = norm(middle, weights["feed_forward_norm.weight"])
    gate = F.linear(y, weights["feed_forward.gate.weight"])
    hidden = gate / (1 + torch.exp(-gate)) * F.linear(y, weights["feed_forward.up.weight"])
    require_close(
        block(x, view), middle + F.linear(hidden, weights["feed_forward.down.weight"]), "a block and its formula"
    )


def final_norm_reference() -> None:
    """Scores are the head times the normalized stream."""
    model = small_decoder()
    weights, ids = dict(model.named_parameters()), some_ids()
    for name, weight in weights.items():
        if name.endswith(("attention.o.weight", "feed_forward.down.weight")):
            nn.init.zeros_(weight)
    x = model.embedding.weight[ids]
    expected = F.rms_norm(x, (SMALL.width,), weights["final_norm.weight"], SMALL.norm_eps) @ model.embedding.weight.T
    require_close(model(ids), expected, "the scores of a stack that adds nothing")


def all_gradients() -> None:
    """Every parameter takes part: each has a gradient that is not all zero."""
    model = small_decoder()
    model(some_ids()).square().sum().backward()
    for name, parameter in model.named_parameters():
        require(parameter.grad is not None and bool(parameter.grad.any()), f"{name} has no gradient")


def cached_step() -> None:
    """Reading token by token through the cache gives the scores of the full pass."""
    model, ids = small_decoder(), some_ids()
    full, cache = model(ids), KVCache(SMALL)
    for t in range(ids.shape[1]):
        require_close(model(ids[:, t : t + 1], cache)[:, 0], full[:, t], f"the cached step at token {t}")
    expected = 2 * ids.numel() * SMALL.layers * SMALL.kv_heads * SMALL.head_width * 8
    require(cache.nbytes == expected, f"the cache holds {cache.nbytes} bytes, not {expected}")


class Scripted(Decoder):
    """Scores by a script: after token i comes ``script[i]``."""

    def __init__(self, script: dict[int, int]) -> None:
        super().__init__(SMALL)
        self.script, self.calls = script, 0

    def forward(self, ids: Tensor, *_: Any, **__: Any) -> Tensor:
        self.calls += 1
        if ids.shape[1] > self.config.context:
            raise ValueError("ids must fit the context")
        following = [[self.script[int(i)] for i in row] for row in ids]
        return F.one_hot(torch.tensor(following), self.config.vocab).double()


def end_of_sequence() -> None:
    """A row ends with the first end token that it generates, and is padded with it while others run."""
    script = Scripted({5: 2, 2: 1, 1: 5})
    found = generate(script, torch.tensor([[5, 2], [2, 5]]), 9, eos=5)
    expected = [[5, 2, 1, 5, 5], [2, 5, 2, 1, 5]]
    require(found.tolist() == expected, f"generation gives {found.tolist()}, not {expected}")
    require(script.calls == 3, f"generation takes {script.calls} steps, not 3, to finish both rows")


def context_limit() -> None:
    """Generation stops at the context, whatever was asked for, and after the tokens asked for."""
    model = small_decoder()
    for cached in (True, False):
        found = generate(model, some_ids(1, 14), 10, cached=cached).shape[1]
        require(found == 16, f"generation from 14 tokens in a context of 16 ends at {found}")
        found = generate(model, some_ids(1, 5), 3, cached=cached).shape[1]
        require(found == 8, f"3 tokens after 5 make {found}")


def mode_restored() -> None:
    """Generation leaves training mode as it was, also after an error."""
    for training in (True, False):
        for script in ({5: 5}, {}):
            model = Scripted(script).train(training)
            with suppress(KeyError):  # the second script knows no token
                generate(model, torch.tensor([[5]]), 2)
            require(model.training == training, f"training mode is {model.training} after generation, not {training}")


CHECKS: dict[str, Callable[[], None]] = {
    "parameters": parameters,
    "tying": tying,
    "start": start,
    "norm value": norm_value,
    "norm in half precision, finite": norm_half_finite,
    "norm in half precision, constant": norm_half_constant,
    "norm in double precision": norm_double,
    "rotary pairing": rotary_pairing,
    "attention reference": attention_reference,
    "causality": causality,
    "shift invariance": shift_invariance,
    "block reference": block_reference,
    "final norm reference": final_norm_reference,
    "all gradients": all_gradients,
    "cached step": cached_step,
    "end of sequence": end_of_sequence,
    "context limit": context_limit,
    "mode restored": mode_restored,
}


def failures() -> dict[str, str]:
    """Run every check; the ones that fail, each with what it found."""
    found = {}
    for name, run in CHECKS.items():
        try:
            run()
        except Exception as error:  # a broken decoder may fail in any way
            found[name] = f"{type(error).__name__}: {error}" if not isinstance(error, CheckFailed) else str(error)
    return found


def self_check() -> int:
    """Print each check and its outcome, then the parameters of the default design. Returns 0 if all hold, else 1."""
    failed = failures()
    for name in CHECKS:
        print(f"FAILED  {name}: {failed[name]}" if name in failed else f"ok      {name}")
    print(f"{len(CHECKS) - len(failed)} of {len(CHECKS)} checks hold.")
    with torch.device("meta"):
        print(f"{parameter_count(Decoder(Config())):,} parameters in the default design")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(self_check())
