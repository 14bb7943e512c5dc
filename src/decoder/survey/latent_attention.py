"""Multi-head latent attention: the cache holds one compressed vector and one rotary key for all heads.

DeepSeek-V2 (2405.04434, section 2.1). From each token come a latent of c numbers, from which every head's unrotated
key (n) and value (v) can be rebuilt, and one rotary key of r numbers that all heads share. Those c + r numbers are
cached. A query has n + r numbers a head; its scores are scaled by 1 / sqrt(n + r).

The same result has two forms. `expand` rebuilds keys and values of every cached token. `absorb` moves the rebuilding
matrix to the other side of each product: the query takes the key part, the output takes the value part, and what is
left is multi-query attention over the cache itself.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from decoder.attention import View
from decoder.cache import LayerCache
from decoder.config import Config, LatentAttention
from decoder.norms import RMSNorm
from decoder.positions import apply_rotary


class MultiHeadLatentAttention(nn.Module):
    """Latent attention with d q + q H (n + r) + d (c + r) + c H (n + v) + H v d weights, and the norms of c and q.

    Without a query latent, d H (n + r) weights make the queries. ``config.head_width`` and ``config.kv_heads`` are
    not read. A call with a cache and one new token takes the absorbed form, any other the expanded one.
    Raises ValueError for choices that latent attention does not have: biases, QK-norm, sinks and a soft cap.
    """

    def __init__(self, config: Config, layer: int = 0) -> None:
        super().__init__()
        self.config = config
        latent = _checked(config)
        d, heads, eps = config.width, config.heads, config.norm_eps
        self.key_widths = [latent.nope_width, latent.rope_width]  # n, r
        self.cached_widths = [latent.kv_rank, latent.rope_width]  # c, r
        queries = heads * sum(self.key_widths)
        self.q_down = None if latent.query_rank is None else nn.Linear(d, latent.query_rank, bias=False)
        self.q_norm = None if latent.query_rank is None else RMSNorm(latent.query_rank, eps)
        self.q_up = nn.Linear(latent.query_rank or d, queries, bias=False)
        self.kv_down = nn.Linear(d, sum(self.cached_widths), bias=False)
        self.kv_norm = RMSNorm(latent.kv_rank, eps)
        self.kv_up = nn.Linear(latent.kv_rank, heads * (latent.nope_width + latent.value_width), bias=False)
        self.o = nn.Linear(heads * latent.value_width, d, bias=False)
        self.rotary = config.positions == "rotary" and layer not in config.no_rope_layers
        self.scale = sum(self.key_widths) ** -0.5 if config.attention_scale is None else config.attention_scale

    def forward(self, x: Tensor, view: View, cache: LayerCache | None = None) -> Tensor:  # (B, T, d) -> (B, T, d)
        q_nope, q_rope = self._queries(x).split(self.key_widths, -1)  # (B, H, T, n), (B, H, T, r)
        latent, k_rope = self.kv_down(x)[:, None].split(self.cached_widths, -1)  # (B, 1, T, c), (B, 1, T, r)
        latent = self.kv_norm(latent)
        if self.rotary and view.rotation is not None:
            pairing = self.config.rope_pairing
            q_rope, k_rope = (apply_rotary(part, *view.rotation, pairing) for part in (q_rope, k_rope))
        if cache is not None:
            latent, k_rope = cache.update(latent, k_rope)  # (B, 1, S, c), (B, 1, S, r)
        form = self.absorb if cache is not None and x.shape[1] == 1 else self.expand
        y = form(q_nope, q_rope, latent, k_rope, view.mask)  # (B, H, T, v)
        return self.o(y.transpose(1, 2).flatten(2))

    def expand(self, q_nope: Tensor, q_rope: Tensor, latent: Tensor, k_rope: Tensor, mask: Tensor | None) -> Tensor:
        """Attention over rebuilt keys and values, which are H times (n + r) and v wide."""
        to_key, to_value = self._rebuilding()  # (H, n, c), (H, v, c)
        k_nope, v = latent @ to_key.mT, latent @ to_value.mT  # (B, H, S, n), (B, H, S, v)
        k = torch.cat((k_nope, k_rope.expand(-1, k_nope.shape[1], -1, -1)), -1)  # (B, H, S, n + r)
        return self._attend(torch.cat((q_nope, q_rope), -1), k, v, mask)

    def absorb(self, q_nope: Tensor, q_rope: Tensor, latent: Tensor, k_rope: Tensor, mask: Tensor | None) -> Tensor:
        """The same over what is cached: one key of c + r numbers for all heads, its first c the value as well."""
        to_key, to_value = self._rebuilding()
        q = torch.cat((q_nope @ to_key, q_rope), -1)  # (B, H, T, c + r), since q . (W l) = (W' q) . l
        gathered = self._attend(q, torch.cat((latent, k_rope), -1), latent, mask)  # (B, H, T, c)
        return gathered @ to_value.mT  # (B, H, T, v)

    def _queries(self, x: Tensor) -> Tensor:  # (B, T, d) -> (B, H, T, n + r)
        if self.q_down is not None and self.q_norm is not None:
            x = self.q_norm(self.q_down(x))
        return self.q_up(x).unflatten(-1, (self.config.heads, -1)).transpose(1, 2)

    def _rebuilding(self) -> tuple[Tensor, Tensor]:
        """What rebuilds each head's key and value from a latent, (H, n, c) and (H, v, c): two parts of one matrix."""
        by_head = self.kv_up.weight.unflatten(0, (self.config.heads, -1))  # (H, n + v, c)
        return by_head[:, : self.key_widths[0]], by_head[:, self.key_widths[0] :]

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        causal, shared = mask is None and q.shape[2] > 1, q.shape[1] != k.shape[1]
        return F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal, scale=self.scale, enable_gqa=shared)


def _checked(config: Config) -> LatentAttention:
    latent = config.latent
    if latent is None:
        raise ValueError("latent must be given for latent attention, got None")
    for name, plain in (("attention_bias", ""), ("qk_norm", "none"), ("sinks", False), ("attention_softcap", None)):
        if getattr(config, name) != plain:
            raise ValueError(f"{name} must be {plain!r} with latent attention, got {getattr(config, name)!r}")
    return latent
