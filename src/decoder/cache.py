"""The key/value cache: what a decoder keeps of the tokens it has read.

Compact: the K key/value heads are stored, never the H repeated ones. A windowed layer keeps a ring of its last
``window`` tokens. Keys are stored rotated, so a cached key keeps the position it was read at. Latent attention stores
its latent in the place of the keys and its rotary key in the place of the values, one head each.
"""

from __future__ import annotations

import torch
from torch import Tensor

from decoder.config import Config
from decoder.validate import whole


class LayerCache:
    """Keys and values of one layer, in a ring of ``capacity`` tokens that is reserved at the first call."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.length = 0  # tokens read so far; the last `capacity` of them are held
        self.keys: Tensor | None = None  # (B, K, capacity, h)
        self.values: Tensor | None = None  # (B, K, capacity, h)

    @property
    def held(self) -> int:
        return min(self.length, self.capacity)

    @property
    def nbytes(self) -> int:
        """Bytes of the keys and values held."""
        if self.keys is None or self.values is None:
            return 0
        return self.keys[:, :, : self.held].nbytes + self.values[:, :, : self.held].nbytes

    @property
    def reserved_nbytes(self) -> int:
        """Bytes of the whole ring."""
        return 0 if self.keys is None or self.values is None else self.keys.nbytes + self.values.nbytes

    def indices(self, new: int, device: torch.device | None = None) -> Tensor:
        """Which tokens the next `update` with ``new`` tokens returns, in its order, counted from 0."""
        last = self.length + new - 1
        if self._in_place(new):
            slots = torch.arange(min(last + 1, self.capacity), device=device)
            return last - (last - slots) % self.capacity
        return torch.arange(self.length - self.held, last + 1, device=device)

    def update(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Store ``keys`` and ``values``, (B, K, T, h); return all that these T tokens may look at, (B, K, S, h)."""
        if self.keys is None or self.values is None:
            self.keys = keys.new_empty(*keys.shape[:2], self.capacity, keys.shape[3])
            self.values = values.new_empty(*values.shape[:2], self.capacity, values.shape[3])
        new = keys.shape[2]
        in_place = self._in_place(new)
        if not in_place:  # some of the new tokens still need what the others overwrite
            past = torch.arange(self.length - self.held, self.length, device=keys.device) % self.capacity
            keys = torch.cat((self.keys[:, :, past], keys), 2)
            values = torch.cat((self.values[:, :, past], values), 2)
        self.length += new
        stored = min(keys.shape[2], self.capacity)
        first = (self.length - stored) % self.capacity
        if first + stored <= self.capacity:
            slots: slice | Tensor = slice(first, first + stored)
        else:
            slots = torch.arange(first, first + stored, device=keys.device) % self.capacity
        self.keys[:, :, slots] = keys[:, :, -stored:]
        self.values[:, :, slots] = values[:, :, -stored:]
        if not in_place:
            return keys, values
        return self.keys[:, :, : self.held], self.values[:, :, : self.held]

    def _in_place(self, new: int) -> bool:
        return new == 1 or self.length + new <= self.capacity


class KVCache:
    """The caches of all layers, and where the rows stand.

    ``capacity`` is the number of tokens to reserve room for, by default the context. The dtype, device and batch
    size are those of the first call's keys. A cache is written in place: use it under ``torch.no_grad()``, and train
    without one. Raises ValueError for a capacity that is no whole number from 1 to the context.
    """

    def __init__(self, config: Config, capacity: int | None = None) -> None:
        capacity = config.context if capacity is None else capacity
        whole("capacity", capacity, most=config.context)
        self.config, self.capacity = config, capacity
        self.padding: Tensor | None = None  # left padding of each row, (B, 1); None where there is none
        self.layers = [
            LayerCache(min(capacity, config.window or capacity) if layer in config.windowed_layers else capacity)
            for layer in range(config.layers)
        ]

    @property
    def length(self) -> int:
        """Tokens read so far, padding included."""
        return self.layers[0].length

    def check(self, config: Config, rows: int, new: int) -> None:
        """Refuse a call of ``rows`` times ``new`` tokens that these caches cannot take in."""
        if config != self.config:
            raise ValueError("cache must have been made for the config of this model, got one for another")
        keys = self.layers[0].keys
        if keys is not None and keys.shape[0] != rows:
            raise ValueError(f"ids must have the {keys.shape[0]} rows of the cache, got {rows}")
        if self.length + new > self.capacity:
            raise ValueError(
                f"ids must fit the cache of {self.capacity} tokens, got {self.length + new} with the cached ones"
            )

    @property
    def nbytes(self) -> int:
        """Bytes of the keys and values held: what attention needs."""
        return sum(layer.nbytes for layer in self.layers)

    @property
    def reserved_nbytes(self) -> int:
        """Bytes set aside for ``capacity`` tokens."""
        return sum(layer.reserved_nbytes for layer in self.layers)
