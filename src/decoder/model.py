"""The whole decoder: embedding, a stack of blocks, a final norm, and a head that scores the next token."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from decoder.attention import View, alibi_bias, causal_mask, softcap
from decoder.block import Block
from decoder.cache import KVCache, LayerCache
from decoder.config import Config
from decoder.norms import make_norm
from decoder.positions import layer_rotation, sinusoidal_positions

INIT_STD = 0.02


# --8<-- [start:decoder]
class Decoder(nn.Module):
    """A decoder-only language model with the choices of ``config``, at its random start.

    Matrices and embeddings start normal with standard deviation 0.02, the two that write to the residual stream with
    0.02 / sqrt(2 L). A tied head is the embedding's own Parameter, registered once.
    """

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        d, e = config.width, config.embedding_width or config.width
        self.embedding = nn.Embedding(config.vocab, e)
        self.embedding_in = nn.Linear(e, d, bias=False) if config.embedding_width else nn.Identity()
        self.position_embedding = nn.Embedding(config.position_rows, d) if config.positions == "learned" else None
        self.embedding_norm = make_norm(config, d) if config.embedding_norm else nn.Identity()
        self.blocks = nn.ModuleList(Block(config, layer) for layer in range(config.layers))
        self.final_norm = make_norm(config, d) if config.final_norm else nn.Identity()
        self.embedding_out = nn.Linear(d, e, bias=False) if config.embedding_width else nn.Identity()
        self.head = nn.Linear(e, config.vocab, bias=config.head_bias)
        self._initialize()
        if config.tied:
            self.head.weight = self.embedding.weight

    def forward(
        self,
        ids: Tensor,
        cache: KVCache | None = None,
        attention_mask: Tensor | None = None,
        last_only: bool = False,
    ) -> Tensor:
        """Logits of the next token after each token: ids (B, T) -> (B, T, V), or (B, 1, V) with ``last_only``.

        ``ids`` is int64 in 0..V-1. ``cache`` holds the tokens before them and takes these in; one cache serves one
        sequence of calls. ``attention_mask``, (B, T), is 0 for the left padding of these ids and 1 for real tokens;
        positions count real tokens. Scores at padding mean nothing. Raises ValueError for anything else.
        """
        caches = [None] * self.config.layers if cache is None else cache.layers
        positions, padding = self._place(ids, cache, attention_mask)  # (1 or B, T), (B, 1)
        x = self._embed(ids, positions)  # (B, T, d)
        views = self._views(positions, padding, caches, x.dtype)
        for block, view, held in zip(self.blocks, views, caches, strict=True):
            x = block(x, view, held)  # (B, T, d)
        return self._logits(x[:, -1:] if last_only else x)  # (B, T, V)

    def _embed(self, ids: Tensor, positions: Tensor) -> Tensor:  # (B, T) -> (B, T, d)
        x = self.embedding(ids)
        if self.config.embedding_scale != 1:
            x = x * self.config.embedding_scale
        x = self.embedding_in(x)
        if self.position_embedding is not None:
            x = x + self.position_embedding(positions.clamp(min=0))
        elif self.config.positions == "sinusoidal":
            x = x + sinusoidal_positions(positions.clamp(min=0), self.config.width, x.dtype)
        return self.embedding_norm(x)

    def _logits(self, x: Tensor) -> Tensor:  # (B, T, d) -> (B, T, V)
        logits = self.head(self.embedding_out(self.final_norm(x)))
        if self.config.logit_scale != 1:
            logits = logits * self.config.logit_scale
        return logits if self.config.logit_softcap is None else softcap(logits, self.config.logit_softcap)

    def _views(
        self, positions: Tensor, padding: Tensor | None, caches: Sequence[LayerCache | None], dtype: torch.dtype
    ) -> list[View]:
        """What each layer sees; layers of one kind, windowed or full, share one view."""
        kinds = [layer in self.config.windowed_layers for layer in range(self.config.layers)]
        made = {kind: self._view(positions, padding, kind, caches[kinds.index(kind)], dtype) for kind in set(kinds)}
        return [made[kind] for kind in kinds]

    def _view(
        self, positions: Tensor, padding: Tensor | None, windowed: bool, held: LayerCache | None, dtype: torch.dtype
    ) -> View:
        """A mask is made only where `View`'s default does not say it."""
        config, new = self.config, positions.shape[1]
        past = 0 if held is None else held.length
        window = config.window if windowed else None
        rotation = layer_rotation(config, positions.clamp(min=0), windowed, dtype)
        keys = torch.arange(new, device=positions.device) if held is None else held.indices(new, positions.device)
        plain = padding is None and (past == 0 or new == 1) and (window is None or len(keys) <= window)
        if plain and config.positions != "alibi":
            return View(rotation)
        keys = keys[None] if padding is None else keys - padding  # (1 or B, S)
        visible = causal_mask(positions, keys, window)  # (1 or B, 1, T, S)
        if config.positions != "alibi":
            return View(rotation, visible)
        return View(rotation, alibi_bias(positions, keys, visible, config.heads, dtype))

    def _place(self, ids: Tensor, cache: KVCache | None, attention_mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Refuse what cannot be read; say where each token stands, (1 or B, T), and each row's left padding, (B, 1)."""
        check_ids(ids, self.config)
        past, padding = (0, None) if cache is None else (cache.length, cache.padding)
        total = past + ids.shape[1]
        if total > self.config.context:
            raise ValueError(
                f"ids must fit the context of {self.config.context} tokens, got {total} with the cached ones"
            )
        if cache is not None:
            cache.check(self.config, *ids.shape)
        if attention_mask is not None:
            padding = more_padding(padding, left_padding(attention_mask, ids), past)
        if cache is not None:
            cache.padding = padding
        positions = torch.arange(past, total, device=ids.device)[None]
        return (positions, None) if padding is None else (positions - padding, padding)

    def _initialize(self) -> None:
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                writes = name.endswith((".attention.o", ".down"))
                std = INIT_STD / math.sqrt(2 * self.config.layers) if writes else INIT_STD
                nn.init.normal_(module.weight, std=std)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)


# --8<-- [end:decoder]
def check_ids(ids: Tensor, config: Config) -> None:
    """Refuse anything but (B, T) int64 token ids with 1 <= T and 0 <= id < V."""
    if ids.ndim != 2:
        raise ValueError(f"ids must have rank 2, (B, T), got shape {tuple(ids.shape)}")
    if ids.dtype != torch.int64:
        raise ValueError(f"ids must be int64, got {ids.dtype}")
    if ids.shape[0] < 1 or ids.shape[1] < 1:
        raise ValueError(f"ids must hold at least one token, got shape {tuple(ids.shape)}")
    low, high = (int(x) for x in ids.aminmax())
    if low < 0 or high >= config.vocab:
        raise ValueError(f"ids must be from 0 to {config.vocab - 1}, got {low if low < 0 else high}")


def left_padding(attention_mask: Tensor, ids: Tensor) -> Tensor:
    """How many tokens of padding each row starts with: (B, T) of 0 and 1 -> (B, 1)."""
    if attention_mask.shape != ids.shape:
        raise ValueError(
            f"attention_mask must have the shape of ids {tuple(ids.shape)}, got {tuple(attention_mask.shape)}"
        )
    if not ((attention_mask == 0) | (attention_mask == 1)).all():
        raise ValueError("attention_mask must hold 0 and 1 only")
    real = attention_mask.to(torch.int64)
    if (real[:, 1:] < real[:, :-1]).any():
        raise ValueError("attention_mask must be left padding: zeros first, then ones, in every row")
    return (1 - real).sum(1, keepdim=True)


def more_padding(padding: Tensor | None, new: Tensor, past: int) -> Tensor | None:
    """The padding of the rows after ``new`` more, (B, 1) each: only a row that is all padding so far may have more."""
    if not new.any():
        return padding
    padding = torch.zeros_like(new) if padding is None else padding
    if ((new > 0) & (padding < past)).any():
        raise ValueError("attention_mask must be left padding: a row has padding after its cached tokens")
    return padding + new


def parameter_count(model: nn.Module) -> int:
    """Unique parameters: a shared tensor counts once."""
    return sum(parameter.numel() for parameter in model.parameters())
