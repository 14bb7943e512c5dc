"""Generation: one token after another, each chosen from the scores that follow the tokens so far."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from decoder.cache import KVCache
from decoder.config import Config
from decoder.model import Decoder, check_ids, left_padding
from decoder.validate import number, whole


# --8<-- [start:generate]
def generate(
    model: Decoder,
    ids: Tensor,
    new_tokens: int,
    *,
    temperature: float = 0.0,
    top_k: int | None = None,
    eos: int | None = None,
    attention_mask: Tensor | None = None,
    cached: bool = True,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Continue each row of ``ids`` (B, T) by up to ``new_tokens`` tokens: (B, T + generated).

    Temperature 0 takes the largest score; otherwise tokens are drawn from softmax(scores / temperature), with
    ``top_k`` from the k largest scores and all that tie with the last of them. A row that has generated ``eos`` is
    finished and padded with ``eos``; one in the prompt finishes nothing. Generation stops when all rows are finished,
    after ``new_tokens``, or at the model's context, whichever comes first. ``attention_mask`` marks left padding as in
    `Decoder.forward`. ``cached=False`` reads the whole row anew for each token and gives the same tokens,
    but for the rope scaling ``"dynamic"``, where a cached key keeps the frequencies of its own call.

    Runs without gradients in evaluation mode; the model's mode is restored afterwards, also after an error.
    Raises ValueError for a prompt or argument that cannot be used, before anything is computed.
    """
    config = model.config
    check_ids(ids, config)
    if ids.shape[1] > config.context:
        raise ValueError(f"ids must fit the context of {config.context} tokens, got a prompt of {ids.shape[1]}")
    _check_arguments(config, new_tokens, temperature, top_k, eos)
    if attention_mask is not None:
        left_padding(attention_mask, ids)
    limit = min(ids.shape[1] + new_tokens, config.context)
    finished = torch.zeros_like(ids[:, 0], dtype=torch.bool)  # (B,)
    cache = KVCache(config, limit) if cached else None
    unread, mask = ids, attention_mask
    with torch.no_grad(), evaluation_mode(model):
        while ids.shape[1] < limit and not finished.all():
            scores = model(unread, cache, mask, last_only=True)[:, -1]  # (B, V)
            token = choose(scores, temperature, top_k, generator)  # (B,)
            if eos is not None:
                token = token.masked_fill(finished, eos)
                finished = finished | (token == eos)
            ids = torch.cat((ids, token[:, None]), 1)
            unread, mask = ids[:, -1:], None
            whole = _grown(attention_mask, ids)
            if not cached or _frequencies_switch(config, ids, whole):
                cache = KVCache(config, limit) if cached else None
                unread, mask = ids, whole
    return ids


def choose(
    scores: Tensor, temperature: float = 0.0, top_k: int | None = None, generator: torch.Generator | None = None
) -> Tensor:
    """One token a row: (B, V) -> (B,). Ties at the cut of ``top_k`` are all kept."""
    if temperature == 0:
        return scores.argmax(-1)
    scores = scores.float()
    scores = (scores - scores.amax(-1, keepdim=True)) / max(temperature, torch.finfo(scores.dtype).tiny)
    if top_k is not None:
        scores = keep_top_k(scores, top_k)
    return torch.multinomial(scores.softmax(-1), 1, generator=generator)[:, 0]


def keep_top_k(scores: Tensor, k: int) -> Tensor:
    """Scores below the k-th largest of their row become -inf; all that tie with it stay."""
    cut = scores.topk(k).values[..., -1:]
    return scores.masked_fill(scores < cut, -torch.inf)


@contextmanager
def evaluation_mode(model: torch.nn.Module) -> Iterator[None]:
    """Evaluation mode inside, and afterwards each module's own mode again."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def _frequencies_switch(config: Config, ids: Tensor, attention_mask: Tensor | None) -> bool:
    """Whether LongRoPE takes its other set of factors from this length on, so that cached keys are of no more use."""
    if config.rope_scaling is None or config.rope_scaling.kind != "longrope":
        return False
    longest = ids.shape[1] if attention_mask is None else int(attention_mask.sum(1).max())
    return longest == config.rope_scaling.original_context + 1


def _grown(attention_mask: Tensor | None, ids: Tensor) -> Tensor | None:
    """The mask of the prompt with ones for what was generated since."""
    if attention_mask is None:
        return None
    return torch.nn.functional.pad(attention_mask, (0, ids.shape[1] - attention_mask.shape[1]), value=1)


def _check_arguments(config: Config, new_tokens: int, temperature: float, top_k: int | None, eos: int | None) -> None:
    whole("new_tokens", new_tokens, least=0)
    if top_k is not None:
        whole("top_k", top_k, most=config.vocab)
    if eos is not None:
        whole("eos", eos, least=0, most=config.vocab - 1)
    number("temperature", temperature, or_zero=True)
