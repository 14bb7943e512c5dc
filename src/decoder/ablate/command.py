"""Compare design choices by training them: the same seeds, the same batches, the same number of tokens.

`ablate` runs every variant of a plan from every seed, compares them seed by seed, and returns the result that the file
holds. `command` is ``python -m decoder ablate``; under ``torchrun`` the same command shares each batch out.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import time
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

import click
import torch

from decoder.ablate.data import Text, read_text
from decoder.ablate.plan import Plan, PlanError
from decoder.ablate.result import make_result, print_result, to_json
from decoder.ablate.run import Process, joined, run, save_atomically
from decoder.ablate.toml import built_in_plans, find_plan, load_plan

WORK = Path(".cache/ablate")
CODE = ("validate", "config", "norms", "positions", "attention", "feedforward", "block", "model", "losses", "training",
        "ablate/data", "ablate/run")  # fmt: skip


def ablate(plan: Plan, process: Process, path: Path, work: Path = WORK, progress: bool = False) -> dict[str, Any]:
    """Run ``plan``, write its result to ``path`` and return it.

    What an earlier, killed call has finished under ``work`` is kept, until the result is written.
    """
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
                    tick = partial(_advance, bars, bar)
                    summary = run(plan, variant, seed, text, process, checkpoint, tick)
                    if process.first:
                        save_atomically(finished, to_json(summary))
                        checkpoint.unlink(missing_ok=True)
                    bars.remove_task(bar)
                process.wait()
                runs[variant.name].append({"seed": seed, **json.loads(finished.read_bytes())})
                bars.advance(every)
    result = make_result(plan, text, code, process, runs) | {
        "last_call": {"seconds": round(time.time() - began, 1), "runs_kept_from_earlier": resumed}
    }
    process.wait()
    if process.first:
        save_atomically(path, to_json(result))
        shutil.rmtree(folder, ignore_errors=True)
    return result


def _code() -> str:
    """One hash over the modules that decide what a run computes."""
    files = [resources.files("decoder").joinpath(f"{name}.py").read_bytes() for name in CODE]
    return hashlib.sha256(b"\0".join(files)).hexdigest()


def _key(plan: Plan, text: Text, code: str, process: Process) -> str:
    """What finished runs may be reused for: this plan, text, code and torch, on as many processes of this device."""
    parts = (plan.hash, text.sha256, code, torch.__version__, str(process.count), process.device.type)
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:12]


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


def _advance(bars: Any, bar: Any, step: int) -> None:
    bars.update(bar, completed=step)


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
            note = f"data.sha256 is of other bytes than this machine has, which are {text.sha256}; going on with those"
            click.echo(f"{plan.path}: {note}", err=True)
        path = results / f"{plan.name}.json"
        result = ablate(plan, process, path, progress=sys.stderr.isatty())
        if process.first:
            print_result(result)
            click.echo(f"written to {path}")


def _print_sizes(plan: Plan) -> None:
    click.echo(plan.question)
    click.echo(f"{plan.training.tokens:,} tokens a run, {len(plan.seeds)} seeds, equal {plan.budget.rule}")
    for variant in plan.variants:
        click.echo(f"{variant.name:<24} {variant.parameters:>12,} parameters {variant.flops:.3e} training FLOPs")
