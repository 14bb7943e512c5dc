"""The text of an ablation: bytes of files that every machine with the pinned packages has, and batches cut from it.

Which windows a step sees depends on the seed and the step alone, so all variants of one seed see the same batches in
the same order, on one process or several.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import torch
from torch import Tensor

from decoder.ablate.plan import Plan, PlanError


@dataclass(frozen=True)
class Text:
    """The bytes of a plan's files. ``differs`` says whether they are other bytes than the plan was written for."""

    train: bytes
    held_out: bytes
    sha256: str
    package: str  # name and version, or "" for files beside the plan
    differs: bool


def read_text(plan: Plan) -> Text:
    """Read the files that ``plan`` names. Raises PlanError where one is missing or too short."""
    data, package = plan.data, ""
    if data.package:
        try:
            distribution = metadata.distribution(data.package)
        except metadata.PackageNotFoundError:
            raise PlanError(f"{plan.path}: data.package must be installed, got {data.package!r}") from None
        package = f"{data.package} {distribution.version}"
        root = Path(str(distribution.locate_file("")))
    else:
        root = plan.path.parent
    parts = {}
    for key, tokens in (("train", plan.training.sequence), ("held_out", plan.measurement.held_out_tokens)):
        try:
            parts[key] = b"".join((root / name).read_bytes() for name in getattr(data, key))
        except OSError as error:
            raise PlanError(f"{plan.path}: data.{key} must be readable, got {error.filename!r}") from None
        if len(parts[key]) <= tokens:
            raise PlanError(f"{plan.path}: data.{key} must hold more than {tokens} bytes, got {len(parts[key])}")
    digest = hashlib.sha256(parts["train"] + parts["held_out"]).hexdigest()
    return Text(parts["train"], parts["held_out"], digest, package, digest != data.sha256)


class Windows:
    """Token ids and the label of each: the next byte, or with ``shuffled`` a byte from anywhere in the same text."""

    def __init__(self, text: bytes, shuffled_by: int | None = None) -> None:
        ids = torch.frombuffer(bytearray(text), dtype=torch.uint8)
        self.ids, self.labels = ids[:-1], ids[1:]  # (N,) each
        if shuffled_by is not None:
            order = torch.randperm(len(self.labels), generator=torch.Generator().manual_seed(shuffled_by))
            self.labels = self.labels[order]

    def at(self, starts: Tensor, tokens: int) -> tuple[Tensor, Tensor]:  # (B,) -> (B, T), (B, T)
        places = starts[:, None] + torch.arange(tokens)
        return self.ids[places].long(), self.labels[places].long()

    def random_starts(self, steps: int, batch: int, tokens: int, seed: int) -> Tensor:
        """Where the windows of every step start, (steps, B)."""
        generator = torch.Generator().manual_seed(seed)
        return torch.randint(len(self.ids) - tokens + 1, (steps, batch), generator=generator)

    def spread(self, windows: int, batch: int, tokens: int) -> Iterator[tuple[Tensor, Tensor]]:
        """``windows`` windows at even distances over the whole text, ``batch`` at a time."""
        starts = torch.linspace(0, len(self.ids) - tokens, windows, dtype=torch.float64).long()
        for some in starts.split(batch):
            yield self.at(some, tokens)
