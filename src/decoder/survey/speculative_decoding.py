"""Speculative decoding: a cheap model drafts some tokens, one pass of the target model judges them all.

Leviathan et al., 2211.17192, section 2. A drafted token x is kept with probability min(1, p(x) / q(x)), p the
target's distribution and q the draft's; the first one that is not is replaced by a draw from what p has above q.
The tokens then follow p exactly, whatever q is. How many survive, and what that saves, depends on both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from decoder.model import Decoder
from decoder.validate import whole

Predictor = Callable[[Tensor], Tensor]  # ids (T,) -> probabilities of the next token after each, (T, V)


def predictor(model: Decoder, temperature: float = 1.0) -> Predictor:
    """A decoder's distributions, softmax(logits / temperature), without gradients and without a cache."""

    @torch.no_grad()
    def predict(ids: Tensor) -> Tensor:
        return (model(ids[None])[0].double() / temperature).softmax(-1)

    return predict


def accept(target: Tensor, draft: Tensor, drafted: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """The tokens that one pass yields: some of ``drafted`` (g,), from its front, and one more.

    ``draft`` (g, V) are the distributions that they were drawn from, ``target`` (g + 1, V) those of the target
    model at the same places and after the last. Between 1 and g + 1 tokens come back.
    """
    for place, token in enumerate(drafted):
        p, q = target[place], draft[place]
        if torch.rand((), generator=generator, dtype=p.dtype) * q[token] < p[token]:
            continue
        rest = (p - q).clamp(min=0)
        return torch.cat((drafted[:place], torch.multinomial(rest, 1, generator=generator)))
    return torch.cat((drafted, torch.multinomial(target[-1], 1, generator=generator)))


@dataclass(frozen=True)
class Speculation:
    """The sequence and what it took: passes of the target, tokens judged by it, tokens it kept."""

    ids: Tensor
    passes: int
    judged: int
    kept: int

    @property
    def acceptance(self) -> float:
        """Kept over judged: a token after a rejected one is not judged."""
        return self.kept / self.judged


def speculate(
    target: Predictor,
    draft: Predictor,
    ids: Tensor,
    new_tokens: int,
    drafted_tokens: int,
    generator: torch.Generator | None = None,
) -> Speculation:
    """Continue ``ids`` (T,) by at least ``new_tokens``, and at most ``drafted_tokens`` more, with the target's law."""
    whole("drafted_tokens", drafted_tokens)
    start, passes, judged, kept = len(ids), 0, 0, 0
    while len(ids) < start + new_tokens:
        longer, beliefs = ids, []
        for _ in range(drafted_tokens):
            beliefs.append(draft(longer)[-1])
            longer = torch.cat((longer, torch.multinomial(beliefs[-1], 1, generator=generator)))
        judgement = target(longer)[len(ids) - 1 :]
        new = accept(judgement, torch.stack(beliefs), longer[len(ids) :], generator)
        passes, kept = passes + 1, kept + len(new) - 1
        judged += min(len(new), drafted_tokens)
        ids = torch.cat((ids, new))
    return Speculation(ids, passes, judged, kept)


def agreement(p: Tensor, q: Tensor) -> Tensor:
    """The chance that a token drawn from q is kept under p: the sum of min(p, q), over the last dimension."""
    return torch.minimum(p, q).sum(-1)


def tokens_per_pass(acceptance: float, drafted_tokens: int) -> float:
    """Expected tokens of one pass, (1 - a^(g+1)) / (1 - a), if every token is kept with the same chance a.

    Leviathan et al., equation 1. It counts tokens, not time: drafts cost, and so does judging g + 1 places at once.
    """
    return sum(acceptance**kept for kept in range(drafted_tokens + 1))
