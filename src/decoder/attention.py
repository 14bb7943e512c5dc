"""Attention: what each token gathers from the tokens before it.

H query heads share K key/value heads (K = H is multi-head, K = 1 multi-query, anything between grouped-query
attention; Ainslie et al., 2305.13245). Query head i reads key/value head i // (H / K): each one is repeated next to
itself. `attend` is the readable reference with the repetition written out; where nothing but a mask is asked for,
torch's scaled_dot_product_attention does the same without it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from decoder.cache import LayerCache
from decoder.config import Config
from decoder.norms import make_norm, wide
from decoder.positions import alibi_slopes, apply_rotary


@dataclass(frozen=True)
class View:
    """What the tokens of one call know about place; the layers of one kind share it.

    ``mask`` is True where a query may see a key, or ALiBi's bias with -inf elsewhere. None means that token t of T
    sees the keys up to its own, and a single new token all of them.
    """

    rotation: tuple[Tensor, Tensor] | None = None  # cos and sin, (B, 1, T, pairs) each
    mask: Tensor | None = None  # (B, 1 or H, T, S)


def causal_mask(queries: Tensor, keys: Tensor, window: int | None = None) -> Tensor:
    """Who sees whom, by position: (B, T) and (B, S) -> (B, 1, T, S), True for visible.

    A token sees itself and what stands before it, within ``window`` keys (its own included) if given. Padding, at
    negative positions, sees padding only, and is seen by no real token.
    """
    distance = queries[:, None, :, None] - keys[:, None, None, :]
    visible = (distance >= 0) & ((queries < 0)[:, None, :, None] == (keys < 0)[:, None, None, :])
    return visible if window is None else visible & (distance < window)


def alibi_bias(queries: Tensor, keys: Tensor, visible: Tensor, heads: int, dtype: torch.dtype) -> Tensor:
    """ALiBi as a mask to add to the scores: minus slope times distance, -inf where not visible, (B, H, T, S)."""
    distance = queries[:, None, :, None] - keys[:, None, None, :]
    slopes = alibi_slopes(heads, torch.promote_types(dtype, torch.float32), queries.device)[:, None, None]
    return (-slopes * distance).masked_fill(~visible, -torch.inf).to(dtype)


# --8<-- [start:attention]
def repeat_kv(x: Tensor, times: int) -> Tensor:
    """Each key/value head ``times`` times, next to itself: (B, K, S, h) -> (B, K * times, S, h)."""
    return x.repeat_interleave(times, dim=1)


def softcap(x: Tensor, cap: float) -> Tensor:
    """``cap * tanh(x / cap)``: near x for small x, never beyond ``cap``."""
    return cap * torch.tanh(x / cap)


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor,
    scale: float,
    cap: float | None = None,
    sinks: Tensor | None = None,
) -> Tensor:
    """Attention written out: (B, H, T, h) queries over (B, K, S, h) keys and values give (B, H, T, h).

    ``mask`` is as in `View`. ``cap`` soft-caps the scores. ``sinks``, one logit a head, take part in the softmax and
    carry no value.
    """
    k, v = repeat_kv(k, q.shape[1] // k.shape[1]), repeat_kv(v, q.shape[1] // v.shape[1])
    scores = wide(q @ k.transpose(-1, -2) * scale)  # (B, H, T, S)
    if cap is not None:
        scores = softcap(scores, cap)
    scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    if sinks is not None:
        sink = sinks.to(scores)[:, None, None].expand(*scores.shape[:-1], 1)
        scores = torch.cat((scores, sink), -1)
    weights = scores.softmax(-1)[..., : k.shape[2]]
    return weights.to(v.dtype) @ v


class Attention(nn.Module):
    """Grouped-query attention with 2 d H h + 2 d K h weights, and biases where ``attention_bias`` names them.

    ``layer`` counts from 0; it decides about the window and about rotary positions.
    """

    def __init__(self, config: Config, layer: int = 0) -> None:
        super().__init__()
        d, h, bias = config.width, config.head_width, config.attention_bias
        self.heads, self.kv_heads = config.heads, config.kv_heads
        self.q = nn.Linear(d, self.heads * h, bias="q" in bias)
        self.k = nn.Linear(d, self.kv_heads * h, bias="k" in bias)
        self.v = nn.Linear(d, self.kv_heads * h, bias="v" in bias)
        self.o = nn.Linear(self.heads * h, d, bias="o" in bias)
        self.qk_norm = config.qk_norm
        self.q_norm = self._make_qk_norm(config, self.heads)
        self.k_norm = self._make_qk_norm(config, self.kv_heads)
        self.rotary = config.positions == "rotary" and layer not in config.no_rope_layers
        self.pairing = config.rope_pairing
        self.scale = h**-0.5 if config.attention_scale is None else config.attention_scale
        self.cap = config.attention_softcap
        self.sinks = nn.Parameter(torch.zeros(self.heads)) if config.sinks else None

    def forward(self, x: Tensor, view: View, cache: LayerCache | None = None) -> Tensor:  # (B, T, d) -> (B, T, d)
        q = self._split(self.q(x), self.heads, self.q_norm)  # (B, H, T, h)
        k = self._split(self.k(x), self.kv_heads, self.k_norm)  # (B, K, T, h)
        v = self._split(self.v(x), self.kv_heads)  # (B, K, T, h)
        if self.rotary and view.rotation is not None:
            q, k = apply_rotary(q, *view.rotation, self.pairing), apply_rotary(k, *view.rotation, self.pairing)
        if cache is not None:
            k, v = cache.update(k, v)  # (B, K, S, h)
        y = self._attend(q, k, v, view.mask)  # (B, H, T, h)
        return self.o(y.transpose(1, 2).flatten(2))

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        if self.cap is None and self.sinks is None:
            causal = mask is None and q.shape[2] > 1
            grouped = self.heads != self.kv_heads
            return F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal, scale=self.scale, enable_gqa=grouped)
        if mask is None:
            mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril(k.shape[2] - q.shape[2])
        return attend(q, k, v, mask, self.scale, self.cap, self.sinks)

    def _split(self, x: Tensor, heads: int, norm: nn.Module | None = None) -> Tensor:  # (B, T, n h) -> (B, n, T, h)
        if norm is not None and self.qk_norm == "full":
            x = norm(x)
        x = x.unflatten(-1, (heads, -1))
        if norm is not None and self.qk_norm != "full":
            x = norm(x)
        return x.transpose(1, 2)

    def _make_qk_norm(self, config: Config, heads: int) -> nn.Module | None:
        if config.qk_norm == "none":
            return None
        if config.qk_norm == "full":
            return make_norm(config, heads * config.head_width)
        return make_norm(config, config.head_width, heads if config.qk_norm == "per_head_weights" else None)


def make_attention(config: Config, layer: int) -> nn.Module:
    """The attention part of one layer."""
    if config.latent is not None:
        from decoder.survey.latent_attention import MultiHeadLatentAttention

        return MultiHeadLatentAttention(config, layer)
    return Attention(config, layer)
