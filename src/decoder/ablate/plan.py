"""A plan of an ablation: what is compared, on which text, for how long, and what is held equal.

The nouns of a plan, and what two of its variants do not have in common. `decoder.ablate.toml` reads them from a file.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal

from decoder.budget import flops, kv_cache, parameters
from decoder.config import Config

Rule = Literal["parameters", "flops", "tokens"]
Optimizer = Literal["adamw"]
Schedule = Literal["constant", "linear", "cosine"]
Precision = Literal["float32", "bfloat16"]
Device = Literal["auto", "cpu", "cuda", "mps"]

TOLERANCE = 0.01  # two budgets that differ by no more than this part of the smaller count as equal
NEVER_CONTROLLED = ("learning rate and schedule were not tuned for each variant", "wall time was not held equal")
PER_VARIANT = ("learning_rate", "schedule", "warmup_steps", "weight_decay", "clip", "z_weight")


class PlanError(ValueError):
    """A plan that cannot be run, in one line."""


@dataclass(frozen=True)
class Data:
    """Text that an installed distribution ships: its files are joined in order and read byte by byte.

    With no ``package`` the files lie beside the plan. ``sha256`` is that of the training files followed by the
    held-out ones. ``shuffled_labels`` gives every token a label drawn from elsewhere in the text.
    """

    train: tuple[str, ...]
    held_out: tuple[str, ...]
    sha256: str
    package: str = ""
    shuffled_labels: bool = False


@dataclass(frozen=True)
class Training:
    """How one run is trained. The fields of `PER_VARIANT` may differ between variants, the others are the plan's."""

    tokens: int
    batch: int  # sequences of one step, over all processes together
    sequence: int  # tokens of one sequence
    learning_rate: float
    optimizer: Optimizer = "adamw"
    schedule: Schedule = "cosine"
    warmup_steps: int = 0
    final_fraction: float = 0.1  # the schedule ends at this part of learning_rate
    weight_decay: float = 0.1
    clip: float = 1.0
    z_weight: float = 0.0
    precision: Precision = "float32"
    device: Device = "auto"
    threads: int = 1

    @property
    def steps(self) -> int:
        return self.tokens // (self.batch * self.sequence)


@dataclass(frozen=True)
class Measurement:
    """What is measured: held-out loss at the start and ``evaluations`` times after, step times without the first."""

    evaluations: int = 8
    held_out_tokens: int = 16_384
    untimed_steps: int = 10
    checkpoint_steps: int = 100


@dataclass(frozen=True)
class Budget:
    """What must be equal: parameters, training FLOPs, or tokens alone. Tokens and batches are equal always."""

    rule: Rule
    total: int | None = None  # parameters that a solved variant is sized for
    allow_unequal: bool = False
    reason: str = ""


@dataclass(frozen=True)
class Variant:
    """One side of a comparison, and the name of the variant ``against`` which it is compared."""

    name: str
    config: Config
    training: Training
    against: str | None
    seed_offset: int = 0  # added to the seed of the weights, never to that of the batches

    @property
    def parameters(self) -> int:
        return parameters(self.config).total

    @property
    def flops(self) -> int:
        """Training FLOPs of one run, by the convention of `decoder.budget.Flops`."""
        one = flops(self.config, self.training.sequence, self.training.batch).training
        return one * self.training.steps


@dataclass(frozen=True)
class Plan:
    """A whole plan, checked. ``hash`` is that of its content: comments and spacing do not change it."""

    name: str
    path: Path
    question: str
    seeds: tuple[int, ...]
    data: Data
    training: Training
    measurement: Measurement
    budget: Budget
    variants: tuple[Variant, ...]
    hash: str = field(repr=False)

    def variant(self, name: str) -> Variant:
        return next(variant for variant in self.variants if variant.name == name)

    @property
    def comparisons(self) -> list[tuple[Variant, Variant]]:
        """Each variant that is compared, with the one it is compared against."""
        return [(variant, self.variant(variant.against)) for variant in self.variants if variant.against is not None]


def unequal(variant: Variant, against: Variant) -> dict[str, float]:
    """By what part of the smaller one parameters and training FLOPs differ: positive where ``variant`` has more."""
    pairs = {"parameters": (variant.parameters, against.parameters), "flops": (variant.flops, against.flops)}
    return {name: (a - b) / min(a, b) for name, (a, b) in pairs.items()}


def not_controlled(variant: Variant, against: Variant) -> list[str]:
    """What differs between two variants beside the tokens, in words. `NEVER_CONTROLLED` comes on top."""
    found = [
        f"{name} differ by {part:+.2%}"
        for name, part in zip(("parameters", "training FLOPs"), unequal(variant, against).values(), strict=True)
        if part
    ]
    mine, theirs = (kv_cache(each.config).bytes_per_token for each in (variant, against))
    if mine != theirs:
        found.append(f"cache bytes per token differ: {mine:,} and {theirs:,}")
    for a, b in ((variant.config, against.config), (variant.training, against.training)):
        found += [
            f"{item.name} differs: {getattr(a, item.name)!r} and {getattr(b, item.name)!r}"
            for item in fields(a)
            if getattr(a, item.name) != getattr(b, item.name)
        ]
    if variant.seed_offset != against.seed_offset:
        found.append("initial weights are drawn from different seeds")
    elif variant.config != against.config:
        found.append("initial weights follow one rule and one seed, tensors of different shapes hold different draws")
    return found
