"""Ring attention: one long sequence over several devices, keys and values passed around (Liu et al., 2310.01889).

Each device keeps the queries of its stretch of tokens. The stretches of keys and values travel around a ring, one
neighbour a round. A softmax over all keys is put together from the parts with a running maximum and a running sum, so
the result is that of full attention: not an approximation, and no less work. The devices here are simulated, one
after another; what a real ring gains by sending while it computes is not.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from decoder.attention import repeat_kv


@dataclass(frozen=True)
class OnlineSoftmax:
    """What a device has gathered for its queries so far: weighted values over a sum of weights, both scaled by the
    exponential of the largest score seen."""

    largest: Tensor  # (B, H, t, 1)
    total: Tensor  # (B, H, t, 1)
    gathered: Tensor  # (B, H, t, h)

    @classmethod
    def before(cls, q: Tensor) -> OnlineSoftmax:
        """Nothing gathered yet for queries (B, H, t, h)."""
        start = q.new_full((*q.shape[:-1], 1), -torch.inf)
        return cls(start, torch.zeros_like(start), torch.zeros_like(q))

    def add(self, scores: Tensor, v: Tensor) -> OnlineSoftmax:
        """With more keys: their ``scores`` (B, H, t, s), -inf where hidden, and values (B, H, s, h).

        A query's first keys must not all be hidden.
        """
        largest = torch.maximum(self.largest, scores.amax(-1, keepdim=True))
        shrink, weights = (self.largest - largest).exp(), (scores - largest).exp()
        total = self.total * shrink + weights.sum(-1, keepdim=True)
        return OnlineSoftmax(largest, total, self.gathered * shrink + weights @ v)

    def result(self) -> Tensor:  # (B, H, t, h)
        return self.gathered / self.total


@dataclass(frozen=True)
class RingResult:
    """The attention output and what it took.

    ``sent`` counts the key and value numbers that each device sends in all; ``blocks`` the blocks of scores that each
    device computes, which a causal mask makes unequal; ``largest_block`` the most scores held at once by a device.
    """

    output: Tensor  # (B, H, T, h)
    sent: tuple[int, ...]
    blocks: tuple[int, ...]
    largest_block: int


def ring_attention(q: Tensor, k: Tensor, v: Tensor, devices: int) -> RingResult:
    """Causal attention of (B, H, T, h) queries over (B, K, T, h) keys and values, spread over ``devices``.

    Scores are scaled by 1 / sqrt(h). Raises ValueError where the T tokens do not divide evenly.
    """
    tokens, heads = q.shape[2], q.shape[1]
    if isinstance(devices, bool) or not isinstance(devices, int) or devices < 1 or tokens % devices:
        raise ValueError(f"devices must be a whole number that divides the {tokens} tokens, got {devices!r}")
    stretch = tokens // devices
    queries = q.split(stretch, 2)
    held = list(zip(k.split(stretch, 2), v.split(stretch, 2), strict=True))  # of each device; starts as its own
    states = [OnlineSoftmax.before(part) for part in queries]
    sent, blocks = [0] * devices, [0] * devices
    own_mask = torch.ones(stretch, stretch, dtype=torch.bool, device=q.device).tril()
    for passed in range(devices):
        for device in range(devices):
            owner = (device - passed) % devices
            if owner > device:
                continue  # every key of that stretch comes later
            keys, values = (repeat_kv(part, heads // part.shape[1]) for part in held[device])
            scores = queries[device] @ keys.mT * q.shape[-1] ** -0.5  # (B, H, t, t)
            if owner == device:
                scores = scores.masked_fill(~own_mask, -torch.inf)
            states[device] = states[device].add(scores, values)
            blocks[device] += 1
        if passed < devices - 1:
            for device in range(devices):
                sent[device] += sum(part.numel() for part in held[device])
            held = [held[device - 1] for device in range(devices)]
    output = torch.cat([state.result() for state in states], 2)
    return RingResult(output, tuple(sent), tuple(blocks), q.shape[0] * heads * stretch**2)
