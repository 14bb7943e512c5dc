"""A block: attention and feed-forward around the residual stream, and where the norms stand.

    pre      x + F(norm(x))          the stream itself is never normalized
    post     norm(a x + F(x))        the 2017 order; a is DeepNorm's residual scale
    both     x + norm(F(norm(x)))    Gemma 2
    output   x + norm(F(x))          OLMo 2

A serial block does this for attention, then for the feed-forward part. A parallel block (GPT-J, PaLM) adds both to
the same x, which they read through one shared norm or through one each.
"""

from __future__ import annotations

from torch import Tensor, nn

from decoder.attention import View, make_attention
from decoder.cache import LayerCache
from decoder.config import Config
from decoder.feedforward import make_feed_forward
from decoder.norms import make_norm


# --8<-- [start:block]
class Block(nn.Module):
    """One layer. Norms that a placement does not use are identities without parameters."""

    def __init__(self, config: Config, layer: int = 0) -> None:
        super().__init__()

        def norm_at(*placements: str) -> nn.Module:
            return make_norm(config, config.width) if config.norm_placement in placements else nn.Identity()

        self.parallel = config.block == "parallel"
        self.residual_scale = config.residual_scale
        self.attention_norm = norm_at("pre", "both")
        self.attention = make_attention(config, layer)
        self.attention_out_norm = norm_at("both", "output")
        self.attention_post_norm = norm_at("post")
        shared = self.parallel and config.parallel_norms == 1
        self.feed_forward_norm = nn.Identity() if shared else norm_at("pre", "both")
        self.feed_forward = make_feed_forward(config, layer)
        self.feed_forward_out_norm = norm_at("both", "output")
        self.feed_forward_post_norm = norm_at("post")
        self.shared_norm = shared

    def forward(self, x: Tensor, view: View, cache: LayerCache | None = None) -> Tensor:  # (B, T, d) -> (B, T, d)
        if self.parallel:
            return self._parallel(x, view, cache)
        branch = self.attention_out_norm(self.attention(self.attention_norm(x), view, cache))
        x = self.attention_post_norm(self._carry(x) + branch)
        branch = self.feed_forward_out_norm(self.feed_forward(self.feed_forward_norm(x)))
        return self.feed_forward_post_norm(self._carry(x) + branch)

    def _parallel(self, x: Tensor, view: View, cache: LayerCache | None) -> Tensor:
        read = self.attention_norm(x)
        feed_forward_read = read if self.shared_norm else self.feed_forward_norm(x)
        return self._carry(x) + self.attention(read, view, cache) + self.feed_forward(feed_forward_read)

    def _carry(self, x: Tensor) -> Tensor:
        return x if self.residual_scale == 1 else self.residual_scale * x
