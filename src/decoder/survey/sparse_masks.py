"""Sparse attention as masks: which keys a query sees in one layer, and what reaches it through a stack of layers.

A mask is (T, T), rows queries, columns keys, True for visible. All but `global_and_local` and `big_bird` with
``causal=False`` show a token itself and what stands before it. A mask says what is seen, not how fast: only a kernel
that skips what a mask hides saves its work.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from decoder.validate import whole


def offsets(tokens: int) -> Tensor:
    """How far key j stands before query i: i - j, (T, T)."""
    places = torch.arange(tokens)
    return places[:, None] - places[None]


def full(tokens: int) -> Tensor:
    """Every token before, and the token itself."""
    return offsets(tokens) >= 0


def sliding(tokens: int, window: int) -> Tensor:
    """The last ``window`` tokens, the token itself among them (Mistral 7B, 2310.06825)."""
    whole("window", window)
    return full(tokens) & (offsets(tokens) < window)


def chunked(tokens: int, chunk: int) -> Tensor:
    """The tokens before in the same block of ``chunk`` (Llama 4's local layers). The view starts anew at each block."""
    whole("chunk", chunk)
    blocks = torch.arange(tokens) // chunk
    return full(tokens) & (blocks[:, None] == blocks[None])


def dilated(tokens: int, window: int, step: int) -> Tensor:
    """``window`` keys, each ``step`` tokens before the last (Longformer, 2004.05150, section 3.1)."""
    whole("window", window)
    whole("step", step)
    return sliding(tokens, (window - 1) * step + 1) & (offsets(tokens) % step == 0)


def global_and_local(tokens: int, window: int, global_tokens: Sequence[int], causal: bool = True) -> Tensor:
    """A window, and a few tokens that see and are seen by all (Longformer, section 3.1).

    ``causal`` is the decoder's form, where nothing sees what comes later. Without it the window reaches
    ``window - 1`` tokens to each side, as in an encoder.
    """
    whole("window", window)
    chosen = torch.zeros(tokens, dtype=torch.bool)
    chosen[list(global_tokens)] = True
    seen = (offsets(tokens).abs() < window) | chosen[:, None] | chosen[None]
    return seen & full(tokens) if causal else seen


def big_bird(
    tokens: int, block: int, window: int, global_blocks: int, random_blocks: int, seed: int = 0, causal: bool = True
) -> Tensor:
    """Blocks of tokens in place of tokens: a window, the first blocks for all, random ones (Big Bird, 2007.14062).

    A query's block sees ``window`` blocks (itself and those before, without ``causal`` as many on each side), the
    first ``global_blocks``, and ``random_blocks`` of those it may see and does not yet. Global blocks see all blocks.
    """
    whole("block", block)
    whole("window", window)
    blocks = -(-tokens // block)
    seen = global_and_local(blocks, window, range(min(global_blocks, blocks)), causal)
    allowed = full(blocks) if causal else torch.ones(blocks, blocks, dtype=torch.bool)
    generator = torch.Generator().manual_seed(seed)
    for row in range(blocks):
        unseen = (allowed[row] & ~seen[row]).nonzero()[:, 0]
        drawn = torch.randperm(len(unseen), generator=generator)[:random_blocks]
        seen[row, unseen[drawn]] = True
    by_token = seen.repeat_interleave(block, 0).repeat_interleave(block, 1)[:tokens, :tokens]
    return by_token & full(tokens) if causal else by_token


def reach(masks: Sequence[Tensor]) -> Tensor:
    """Which inputs can matter for which outputs of a stack with these masks, first layer first: (T, T).

    The residual stream carries a token past each layer, seen or not. This is what a path exists for, an upper bound:
    whether anything of use travels along it is a question for a trained model.
    """
    tokens = masks[0].shape[0]
    reached = torch.eye(tokens, dtype=torch.bool)
    for mask in masks:
        step = (mask | torch.eye(tokens, dtype=torch.bool)).double()
        reached = step @ reached.double() > 0
    return reached
