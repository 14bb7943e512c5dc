"""The result of an ablation: what runs show together, as one JSON object, on a screen, and read again.

A result keeps each seed's final loss and curve, the intervals over seeds, the paired differences, what was not
controlled, and what made it: the plan's hash, the text's, the code's, the environment, the command.
"""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from decoder.ablate.data import Text
from decoder.ablate.plan import NEVER_CONTROLLED, Plan, not_controlled, unequal
from decoder.ablate.run import Process
from decoder.ablate.toml import built_in_plans

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Result:
    """A result read from its file; ``content`` is the JSON object. Losses are nats a byte on held-out text."""

    content: dict[str, Any]

    def variant(self, name: str) -> dict[str, Any]:
        return next(variant for variant in self.content["variants"] if variant["name"] == name)

    def losses(self, name: str) -> list[float]:
        """The final held-out loss of each seed."""
        return [run["held_out"] for run in self.variant(name)["runs"]]

    def comparison(self, name: str) -> dict[str, Any]:
        """The paired differences of variant ``name`` minus the one it is against."""
        return next(found for found in self.content["comparisons"] if found["variant"] == name)


def read_results(folder: Path | str) -> dict[str, Result | None]:
    """The results under ``folder`` of all built-in plans, None for a plan that was not run."""
    files = {name: Path(folder) / f"{name}.json" for name in built_in_plans()}
    return {name: Result(json.loads(file.read_bytes())) if file.is_file() else None for name, file in files.items()}


def interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Student's t interval of the mean of ``values`` at `CONFIDENCE`; None for fewer than two."""
    from scipy import stats

    if len(values) < 2:
        return None
    if min(values) == max(values):
        return values[0], values[0]
    low, high = stats.ttest_1samp(values, 0).confidence_interval(CONFIDENCE)
    return float(low), float(high)


def estimate(values: Sequence[float | None]) -> dict[str, Any]:
    """Mean and interval of what is there; ``missing`` counts seeds without a value, and then nothing is estimated."""
    there = [value for value in values if value is not None]
    if len(there) < len(values):
        return {"mean": None, "interval": None, "missing": len(values) - len(there)}
    bounds = interval(there)
    return {"mean": sum(there) / len(there), "interval": bounds and list(bounds), "missing": 0}


def compare(plan: Plan, finals: dict[str, list[float | None]]) -> list[dict[str, Any]]:
    """Paired differences of held-out loss, variant minus the one it is against, seed by seed."""
    found = []
    for variant, against in plan.comparisons:
        pairs = zip(finals[variant.name], finals[against.name], strict=True)
        differences = [None if a is None or b is None else a - b for a, b in pairs]
        found.append(
            {
                "variant": variant.name,
                "against": against.name,
                "differences": differences,
                **estimate(differences),
                "unequal": unequal(variant, against),
                "not_controlled": not_controlled(variant, against),
            }
        )
    return found


def make_result(
    plan: Plan, text: Text, code: str, process: Process, runs: dict[str, list[dict[str, Any]]]
) -> dict[str, Any]:
    """The JSON object of a whole plan from the summaries of its runs."""
    finals = {name: [each["held_out"] for each in some] for name, some in runs.items()}
    return {
        "plan": plan.name,
        "question": plan.question,
        "command": f"python -m decoder ablate {_argument(plan)}",
        "plan_sha256": plan.hash,
        "code_sha256": code,
        "data": {**asdict(plan.data), "package": text.package, "sha256": text.sha256, "differs_from_plan": text.differs,
                 "train_bytes": len(text.train), "held_out_bytes": len(text.held_out)},
        "training": asdict(plan.training) | {"steps": plan.training.steps},
        "measurement": asdict(plan.measurement),
        "budget": asdict(plan.budget),
        "seeds": list(plan.seeds),
        "environment": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "system": f"{platform.system()} {platform.machine()}",
            "device": torch.cuda.get_device_name() if process.device.type == "cuda" else process.device.type,
            "cores": os.cpu_count(),
            "processes": process.count,
            "deterministic": process.device.type == "cpu",
        },
        "wall_seconds": round(sum(each["wall_seconds"] for some in runs.values() for each in some), 1),
        "confidence": CONFIDENCE,
        "never_controlled": list(NEVER_CONTROLLED),
        "variants": [
            {
                "name": variant.name,
                "against": variant.against,
                "config": {key: value for key, value in asdict(variant.config).items() if value is not None},
                "parameters": variant.parameters,
                "training_flops": variant.flops,
                "own_training": {
                    key: value
                    for key, value in asdict(variant.training).items()
                    if value != getattr(plan.training, key)
                },
                "held_out": estimate(finals[variant.name]),
                "runs": runs[variant.name],
            }
            for variant in plan.variants
        ],
        "comparisons": compare(plan, finals),
    }  # fmt: skip


def to_json(value: object) -> bytes:
    """Indented JSON with every list of numbers on one line."""
    text = json.dumps(value, indent=1, allow_nan=False)
    return (re.sub(r"\[[-\d.e+,\snul]+\]", lambda numbers: " ".join(numbers[0].split()), text) + "\n").encode()


def print_result(result: dict[str, Any]) -> None:
    """The table that the command shows."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    console.print(result["question"], style="bold")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("variant")
    for column in ("parameters", "held-out nats", "paired difference", "ms a step"):
        table.add_column(column, justify="right")
    differences = {each["variant"]: _shown(each, "+.4f") for each in result["comparisons"]}
    for variant in result["variants"]:
        name = variant["name"]
        milliseconds = sum(variant["runs"][0]["median_milliseconds"].values())
        held_out = _shown(variant["held_out"], ".4f")
        table.add_row(name, f"{variant['parameters']:,}", held_out, differences.get(name, ""), f"{milliseconds:.1f}")
    console.print(table)
    console.print(
        f"{len(result['seeds'])} seeds, {result['training']['tokens']:,} tokens a run, "
        f"± half of the {CONFIDENCE:.0%} interval, {result['wall_seconds']} s of training"
    )
    if result["budget"]["allow_unequal"]:
        console.print(f"Unequal budgets were allowed: {result['budget']['reason']}.")
    for each in result["comparisons"]:
        console.print(f"{each['variant']} minus {each['against']}: {'; '.join(each['not_controlled'])}", style="dim")
    console.print(f"And for all: {'; '.join(NEVER_CONTROLLED)}.", style="dim")


def _shown(found: dict[str, Any], form: str) -> str:
    if found["mean"] is None:
        return f"{found['missing']} diverged"
    bounds = found["interval"]
    spread = "" if bounds is None else f" ± {(bounds[1] - bounds[0]) / 2:.4f}"
    return f"{found['mean']:{form}}{spread}"


def _argument(plan: Plan) -> str:
    return plan.name if built_in_plans().get(plan.name) == plan.path else str(plan.path)
