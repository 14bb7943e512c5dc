"""Compare design choices by training them: the same seeds, the same batches, the same number of tokens.

`ablate` runs every variant of a plan from every seed, compares them seed by seed, and returns the result that the file
holds. `command` is ``python -m decoder ablate``; under ``torchrun`` the same command shares each batch out.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import Any

import click
import torch

from decoder.ablate_data import Text, read_text
from decoder.ablate_plan import NEVER_CONTROLLED, Plan, PlanError, not_controlled, unequal
from decoder.ablate_run import Process, joined, run, save_atomically
from decoder.ablate_toml import built_in_plans, find_plan, load_plan

CONFIDENCE = 0.95
WORK = Path(".cache/ablate")
CODE = ("config", "norms", "positions", "attention", "feedforward", "block", "model", "losses", "training",
        "ablate_data", "ablate_run")  # fmt: skip


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


def ablate(plan: Plan, process: Process, work: Path = WORK, progress: bool = False) -> dict[str, Any]:
    """Run ``plan`` and return its result. Runs that an earlier, killed call has finished under ``work`` are kept."""
    began = time.time()
    text = read_text(plan)
    code = _code()
    folder = work / f"{plan.name}-{_key(plan, text, code, process)}"
    runs: dict[str, list[dict[str, Any]]] = {variant.name: [] for variant in plan.variants}
    resumed = 0
    with _bars(progress and process.first) as bars:
        every = bars.add_task(plan.name, total=len(plan.variants) * len(plan.seeds))
        for number, variant in enumerate(plan.variants):
            for seed in plan.seeds:
                finished = folder / f"{number}-{seed}.json"
                process.wait()
                if finished.is_file():
                    resumed += 1
                else:
                    checkpoint = finished.with_suffix(".pt")
                    bar = bars.add_task(f"  {variant.name}, seed {seed}", total=variant.training.steps)
                    summary = run(
                        plan, variant, seed, text, process, checkpoint,
                        tick=lambda step, bar=bar: bars.update(bar, completed=step),
                    )  # fmt: skip
                    if process.first:
                        save_atomically(finished, _json(summary))
                        checkpoint.unlink(missing_ok=True)
                    bars.remove_task(bar)
                process.wait()
                runs[variant.name].append({"seed": seed, **json.loads(finished.read_bytes())})
                bars.advance(every)
    result = _result(plan, text, code, process, runs) | {
        "last_call": {"seconds": round(time.time() - began, 1), "runs_kept_from_earlier": resumed}
    }
    process.wait()
    if process.first:
        shutil.rmtree(folder, ignore_errors=True)
    return result


def _result(
    plan: Plan, text: Text, code: str, process: Process, runs: dict[str, list[dict[str, Any]]]
) -> dict[str, Any]:
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


def _argument(plan: Plan) -> str:
    return plan.name if built_in_plans().get(plan.name) == plan.path else str(plan.path)


def _code() -> str:
    """One hash over the modules that decide what a run computes."""
    files = [resources.files("decoder").joinpath(f"{name}.py").read_bytes() for name in CODE]
    return hashlib.sha256(b"\0".join(files)).hexdigest()


def _key(plan: Plan, text: Text, code: str, process: Process) -> str:
    """What finished runs may be reused for: this plan, text, code and torch, on as many processes of this device."""
    parts = (plan.hash, text.sha256, code, torch.__version__, str(process.count), process.device.type)
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:12]


def _json(value: object) -> bytes:
    """Indented JSON with every list of numbers on one line."""
    text = json.dumps(value, indent=1, allow_nan=False)
    return (re.sub(r"\[[-\d.e+,\snul]+\]", lambda numbers: " ".join(numbers[0].split()), text) + "\n").encode()


def _bars(shown: bool) -> Any:
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
    )
    return progress.Progress(*columns, console=Console(stderr=True), disable=not shown)


@click.command("ablate")
@click.argument("plan", required=False)
@click.option("--results", type=click.Path(path_type=Path, file_okay=False), default="ablations", show_default=True,
              help="Folder for the result, as PLAN.json.")  # fmt: skip
@click.option("--check", "only_check", is_flag=True, help="Read the plan, print its sizes, run nothing.")
def command(plan: str | None, results: Path, only_check: bool) -> None:
    """Train the variants of PLAN and compare them. Without PLAN, list the built-in plans.

    PLAN is a TOML file or a built-in name. A killed run goes on where it was when the same command is given again.
    Exit status: 0 done, 1 refused (one line says why), 2 wrong usage.
    """
    try:
        if plan is None:
            for name, path in built_in_plans().items():
                click.echo(f"{name:<12} {load_plan(path).question}")
            return
        loaded = load_plan(find_plan(plan))
        if only_check:
            _print_sizes(loaded)
            return
        _run_command(loaded, results)
    except PlanError as error:
        raise click.ClickException(str(error)) from None


def _run_command(plan: Plan, results: Path) -> None:
    try:
        import scipy  # noqa: F401
    except ImportError:
        raise click.ClickException("intervals need scipy: pip install scipy") from None
    with joined(plan) as process:
        text = read_text(plan)
        if text.differs and process.first:
            click.echo(
                f"{plan.path}: data.sha256 is of other bytes than this machine has; going on with {text.sha256}",
                err=True,
            )
        result = ablate(plan, process, progress=sys.stderr.isatty())
        if process.first:
            path = results / f"{plan.name}.json"
            save_atomically(path, _json(result))
            _print_result(result)
            click.echo(f"written to {path}")


def _print_sizes(plan: Plan) -> None:
    click.echo(plan.question)
    click.echo(f"{plan.training.tokens:,} tokens a run, {len(plan.seeds)} seeds, equal {plan.budget.rule}")
    for variant in plan.variants:
        click.echo(f"{variant.name:<24} {variant.parameters:>12,} parameters {variant.flops:.3e} training FLOPs")


def _print_result(result: dict[str, Any]) -> None:
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
