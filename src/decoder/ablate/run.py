"""One run of an ablation: train one variant from one seed, measure it, and survive being killed.

Under ``torchrun`` each process takes its rows of the same global batch and gradients are averaged, so that the run is
the one that a single process makes, up to the rounding of sums. Batches depend on the seed and the step alone, and
nothing in training draws random numbers, so a checkpoint is weights, optimizer state, step and what was measured.
"""

from __future__ import annotations

import io
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from decoder.ablate.data import Text, Windows
from decoder.ablate.plan import Plan, PlanError, Training, Variant
from decoder.losses import language_model_loss
from decoder.model import Decoder
from decoder.training import make_optimizer

PHASES = ("forward", "backward", "update")


@dataclass(frozen=True)
class Process:
    """This process among those of ``torchrun``, or the only one, and the device it computes on."""

    rank: int
    count: int
    device: torch.device

    @property
    def first(self) -> bool:
        return self.rank == 0

    def share(self, rows: Tensor) -> Tensor:
        """This process's rows of a global batch."""
        return rows.tensor_split(self.count)[self.rank]

    def total(self, value: Tensor) -> Tensor:
        if self.count > 1:
            dist.all_reduce(value)
        return value

    def wait(self) -> None:
        if self.count > 1:
            dist.barrier()

    def synchronize(self) -> None:
        """Wait for the device: without it a clock measures how fast work is queued, not how fast it is done."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        elif self.device.type == "mps":
            torch.mps.synchronize()


@contextmanager
def joined(plan: Plan) -> Iterator[Process]:
    """Join the processes of ``torchrun`` where there are any, with the plan's threads and deterministic kernels."""
    count, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    device = _device(plan, int(os.environ.get("LOCAL_RANK", "0")))
    if plan.training.batch % count:
        raise PlanError(
            f"{plan.path}: training.batch must be a multiple of the {count} processes, got {plan.training.batch}"
        )
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    torch.set_num_threads(plan.training.threads)
    torch.use_deterministic_algorithms(device.type == "cpu")
    if count > 1:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield Process(rank, count, device)
    finally:
        if count > 1:
            dist.destroy_process_group()
        torch.set_num_threads(before[0])
        torch.use_deterministic_algorithms(before[1])


@dataclass
class Measured:
    """What a run has shown so far. Losses are mean cross-entropy in nats a token, over the held-out windows or, as
    ``train``, over the batches since the last evaluation. Seconds are of single steps, all after the untimed ones."""

    at_step: list[int] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)
    train: list[float | None] = field(default_factory=list)
    since: list[float] = field(default_factory=list)
    gradient_norms: dict[str, list[float]] = field(default_factory=dict)  # by layer, at the first and the last step
    seconds: dict[str, list[float]] = field(default_factory=lambda: {phase: [] for phase in PHASES})
    peak_bytes: int = 0
    wall_seconds: float = 0.0
    diverged_at: int | None = None

    def summary(self, device: torch.device) -> dict[str, Any]:
        """What a result file keeps: everything but the single steps."""
        return {
            "held_out": None if self.diverged_at is not None else self.held_out[-1],
            "diverged_at": self.diverged_at,
            "curve": {"step": self.at_step, "held_out": _short(self.held_out), "train": _short(self.train)},
            "gradient_norms": {when: _short(norms) for when, norms in self.gradient_norms.items()},
            "median_milliseconds": {
                phase: round(1000 * statistics.median(times), 4) for phase, times in self.seconds.items() if times
            },
            "peak_bytes": self.peak_bytes,
            "peak_of": "CUDA allocator" if device.type == "cuda" else "resident set of the process",
            "wall_seconds": round(self.wall_seconds, 2),
        }


def run(
    plan: Plan, variant: Variant, seed: int, text: Text, process: Process, checkpoint: Path, tick: Callable[[int], None]
) -> dict[str, Any]:
    """Train ``variant`` from ``seed`` and return `Measured.summary`. Goes on from ``checkpoint`` where there is one.

    ``tick`` is told the number of steps done.
    """
    training, began = variant.training, time.perf_counter()
    shuffled_by = seed if plan.data.shuffled_labels else None
    windows, held_out = Windows(text.train, shuffled_by), Windows(text.held_out, shuffled_by)
    starts = windows.random_starts(training.steps, training.batch, training.sequence, seed)
    torch.manual_seed(seed + variant.seed_offset)
    model = Decoder(variant.config).to(process.device)
    optimizer = make_optimizer(model, training.learning_rate, training.weight_decay)
    forward: nn.Module = model
    if process.count > 1:
        forward = nn.parallel.DistributedDataParallel(model)
    measured, done = _resume(checkpoint, model, optimizer, process)
    earlier = measured.wall_seconds
    _reset_peak(process.device)

    def evaluate(step: int) -> None:
        measured.at_step.append(step)
        measured.held_out.append(held_out_loss(plan, training, model, held_out, process))
        measured.train.append(statistics.fmean(measured.since) if measured.since else None)
        measured.since.clear()

    if not measured.at_step:
        evaluate(0)
    for step in range(done + 1, training.steps + 1):
        ids, labels = windows.at(process.share(starts[step - 1]), training.sequence)
        end = step in (1, training.steps)
        loss, norms, times = _step(training, step, forward, optimizer, ids, labels, process, layer_norms=end)
        if not math.isfinite(loss):
            measured.diverged_at = step
            break
        measured.since.append(loss)
        if end:
            measured.gradient_norms["first" if step == 1 else "last"] = norms
        if step > plan.measurement.untimed_steps:
            for phase, seconds in zip(PHASES, times, strict=True):
                measured.seconds[phase].append(seconds)
        if step * plan.measurement.evaluations // training.steps > (
            (step - 1) * plan.measurement.evaluations // training.steps
        ):
            evaluate(step)
        measured.wall_seconds = earlier + time.perf_counter() - began
        if step % plan.measurement.checkpoint_steps == 0 and step < training.steps and process.first:
            buffer = io.BytesIO()
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "measured": asdict(measured)}
            torch.save({**state, "step": step}, buffer)
            save_atomically(checkpoint, buffer.getvalue())
        tick(step)
    measured.peak_bytes = max(measured.peak_bytes, _peak(process.device))
    return measured.summary(process.device)


def learning_rate_at(training: Training, step: int) -> float:
    """The learning rate of ``step``, counted from 1: a linear warm-up, then the schedule down to its final part."""
    if step <= training.warmup_steps:
        return training.learning_rate * step / training.warmup_steps
    if training.schedule == "constant":
        return training.learning_rate
    past = (step - training.warmup_steps) / (training.steps - training.warmup_steps)
    left = 1 - past if training.schedule == "linear" else (1 + math.cos(math.pi * past)) / 2
    return training.learning_rate * (training.final_fraction + (1 - training.final_fraction) * left)


@torch.no_grad()
def held_out_loss(plan: Plan, training: Training, model: Decoder, held_out: Windows, process: Process) -> float:
    """Mean cross-entropy in nats over the held-out windows, each process scoring its share."""
    sums = torch.zeros(2, dtype=torch.float64)
    for ids, labels in held_out.spread(
        plan.measurement.held_out_tokens // training.sequence, training.batch, training.sequence
    ):
        ids, labels = process.share(ids), process.share(labels)
        if not len(ids):
            continue
        with _autocast(training, process.device):
            logits = model(ids.to(process.device))
        loss = language_model_loss(logits, labels.to(process.device))
        sums += torch.tensor([loss.cross_entropy.item() * loss.tokens, loss.tokens], dtype=torch.float64)
    total, tokens = process.total(sums.to(process.device) if process.device.type == "cuda" else sums).tolist()
    return total / tokens


def save_atomically(path: Path, content: bytes) -> None:
    """Write a file that is either whole or not there: whoever is killed in between loses nothing that was there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def _step(
    training: Training,
    step: int,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    ids: Tensor,
    labels: Tensor,
    process: Process,
    layer_norms: bool,
) -> tuple[float, list[float], list[float]]:
    """One optimizer step: the loss before it over the global batch, gradient norms by layer, seconds by phase."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate_at(training, step)
    optimizer.zero_grad(set_to_none=True)
    ids, labels = ids.to(process.device), labels.to(process.device)
    marks = [_now(process)]
    with _autocast(training, process.device):
        logits = model(ids)
    loss = language_model_loss(logits, labels, training.z_weight)
    marks.append(_now(process))
    loss.total.backward()
    marks.append(_now(process))
    norms = _norms_by_layer(model) if layer_norms else []
    marks.append(_now(process))
    nn.utils.clip_grad_norm_(model.parameters(), training.clip)
    optimizer.step()
    marks.append(_now(process))
    value = process.total(loss.cross_entropy.detach().clone()).item() / process.count
    return value, norms, [marks[1] - marks[0], marks[2] - marks[1], marks[4] - marks[3]]


def _norms_by_layer(model: nn.Module) -> list[float]:
    decoder = model.module if isinstance(model, nn.parallel.DistributedDataParallel) else model
    return [
        torch.stack([p.grad.square().sum() for p in block.parameters() if p.grad is not None]).sum().sqrt().item()
        for block in decoder.blocks  # type: ignore[union-attr]
    ]


def _resume(
    checkpoint: Path, model: nn.Module, optimizer: torch.optim.Optimizer, process: Process
) -> tuple[Measured, int]:
    process.wait()  # whoever starts late must not find a checkpoint that others did not
    if not checkpoint.is_file():
        return Measured(), 0
    state = torch.load(checkpoint, map_location=process.device, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return Measured(**state["measured"]), state["step"]


def _device(plan: Plan, local_rank: int) -> torch.device:
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    name = plan.training.device
    if name == "auto":
        name = next(kind for kind in ("cuda", "mps", "cpu") if there[kind])  # type: ignore[assignment]
    if not there[name]:
        raise PlanError(f"{plan.path}: training.device must be a device of this machine or 'auto', got {name!r}")
    return torch.device(name, local_rank) if name == "cuda" else torch.device(name)


def _autocast(training: Training, device: torch.device) -> Any:
    return torch.autocast(device.type, torch.bfloat16) if training.precision == "bfloat16" else nullcontext()


def _now(process: Process) -> float:
    process.synchronize()
    return time.perf_counter()


def _reset_peak(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    elif sys.platform == "linux":
        try:
            Path("/proc/self/clear_refs").write_text("5")
        except OSError:
            return  # the peak is then that of the process since its start


def _peak(device: torch.device) -> int:
    """Bytes: what torch allocated on a CUDA device, else the resident set of the process at its highest."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if sys.platform == "linux":
        status = Path("/proc/self/status").read_text()
        return 1024 * int(status.split("VmHWM:")[1].split()[0])
    return 0


def _short(values: list[Any]) -> list[Any]:
    return [value if value is None else float(f"{value:.7g}") for value in values]
