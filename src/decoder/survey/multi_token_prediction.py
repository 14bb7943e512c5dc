"""Multi-token prediction: at every token more than one target, all of them tokens that really came.

Two designs, both on a `Decoder` that goes on predicting the next token as before:

    ParallelHeads      Gloeckle et al., 2404.19737, section 2: the last block is one of n heads that read the same
                       trunk, each for a token one further on; they know nothing of one another.
    SequentialModules  DeepSeek-V3, 2412.19437, section 2.2: module k joins the stream of depth k - 1 with the
                       embedding of the token k further on, runs one block, and predicts the token after that one.

`futures` gives the scores of both in one form: element k, (B, T, V) or shorter, has at place i the scores of token
i + k + 1. Embedding and head are shared throughout.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from decoder.attention import View
from decoder.block import Block
from decoder.config import Config
from decoder.losses import language_model_loss
from decoder.model import Decoder
from decoder.norms import make_norm
from decoder.positions import layer_rotation
from decoder.validate import whole


class ParallelHeads(Decoder):
    """``config.layers`` blocks of which the last is the head for the next token, and n - 1 blocks like it."""

    def __init__(self, config: Config, targets: int) -> None:
        super().__init__(_checked(config, targets))
        self.further = nn.ModuleList(Block(config, config.layers - 1) for _ in range(targets - 1))
        self._initialize()

    def futures(self, ids: Tensor) -> list[Tensor]:  # (B, T) -> n times (B, T, V)
        positions, _ = self._place(ids, None, None)
        x = self._embed(ids, positions)
        views = self._views(positions, None, [None] * self.config.layers, x.dtype)
        *trunk, last = self.blocks
        for block, view in zip(trunk, views, strict=False):
            x = block(x, view)
        return [self._logits(head(x, views[-1])) for head in (last, *self.further)]


class SequentialModule(nn.Module):
    """One further depth: two norms, a projection of 2 d to d, a block, and a norm before the shared head."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.state_norm, self.embedding_norm, self.out_norm = (make_norm(config, config.width) for _ in range(3))
        self.join = nn.Linear(2 * config.width, config.width, bias=False)
        self.block = Block(config, config.layers - 1)

    def forward(self, x: Tensor, embedded: Tensor, view: View) -> tuple[Tensor, Tensor]:
        """The stream for the next depth and what the head reads, both (B, t, d), from two of (B, t, d)."""
        x = self.block(self.join(torch.cat((self.state_norm(x), self.embedding_norm(embedded)), -1)), view)
        return x, self.out_norm(x)


class SequentialModules(Decoder):
    """The whole decoder for the next token, and n - 1 modules, each for one token further on.

    The stream that the first module reads is the one before the decoder's final norm.
    """

    def __init__(self, config: Config, targets: int) -> None:
        super().__init__(_checked(config, targets))
        self.further = nn.ModuleList(SequentialModule(config) for _ in range(targets - 1))
        self._initialize()

    def futures(self, ids: Tensor) -> list[Tensor]:  # (B, T) -> (B, T, V), (B, T - 1, V), ...
        positions, _ = self._place(ids, None, None)
        embedded = x = self._embed(ids, positions)
        views = self._views(positions, None, [None] * self.config.layers, x.dtype)
        for block, view in zip(self.blocks, views, strict=True):
            x = block(x, view)
        scores = [self._logits(x)]
        for depth, module in enumerate(self.further, start=1):
            places = positions[:, :-depth]
            view = View(layer_rotation(self.config, places, False, x.dtype))
            x, read = module(x[:, : places.shape[1]], embedded[:, depth:], view)
            scores.append(self.head(self.embedding_out(read)))
        return scores


def target_losses(scores: Sequence[Tensor], ids: Tensor) -> list[Tensor]:
    """Cross-entropy of each target in nats, the next token first; ``scores`` from `futures`, ``ids`` (B, T)."""
    return [
        language_model_loss(logits[:, : ids.shape[1] - ahead], ids[:, ahead:]).cross_entropy
        for ahead, logits in enumerate(scores, start=1)
    ]


def multi_token_loss(scores: Sequence[Tensor], ids: Tensor, weight: float) -> Tensor:
    """The next token's loss plus ``weight`` times the mean of the others (DeepSeek-V3, equation 25).

    ``weight`` = n - 1 is the plain sum of n losses that `ParallelHeads` was proposed with.
    """
    first, *others = target_losses(scores, ids)
    return first + weight * torch.stack(others).mean()


def _checked(config: Config, targets: int) -> Config:
    whole("targets", targets, least=2)
    for name, plain in (("window", None), ("block", "serial"), ("logit_softcap", None), ("logit_scale", 1.0)):
        if getattr(config, name) != plain:
            raise ValueError(f"{name} must be {plain!r} for multi-token prediction, got {getattr(config, name)!r}")
    if config.positions == "alibi":
        raise ValueError("positions must not be 'alibi' for multi-token prediction")
    return config
