"""Released weights: a Hugging Face folder, config.json and safetensors, becomes a Decoder.

    model = load("path/to/folder")

First the config and the headers of the files are read, and every tensor's name, shape and dtype is compared with what
the model needs; only then memory is taken and the tensors are read, one at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from decoder.checkpoint_files import CheckpointError, TensorEntry, read_headers
from decoder.checkpoint_names import AWAITED, CHECKPOINTS, Checkpoint, Stored
from decoder.config_json import Reading, read_config
from decoder.model import Decoder

DTYPES = {"F64": torch.float64, "F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}


@dataclass(frozen=True)
class Step:
    """One tensor of the files, and the parameters that it fills."""

    name: str
    entry: TensorEntry
    stored: Stored
    parts: tuple[str, ...]  # parameters of the Decoder, or buffers


def load(folder: str | Path, dtype: torch.dtype | None = None, device: torch.device | str | None = None) -> Decoder:
    """The Decoder of a Hugging Face folder, in evaluation mode.

    ``dtype`` converts the weights; without it they keep the one dtype of the files. ``device`` is where they go, by
    default where torch puts new tensors. Raises `CheckpointError` or `decoder.config_json.ConfigError`, both
    ValueErrors of one line that name the file, the key or tensor and the rule: for a family that is not built, a key
    that a Config does not express, a tensor that is missing, unknown, cut short, or of another shape or dtype, and
    for weights kept as pickles. Nothing is allocated before all of this has been checked.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise CheckpointError(f"{folder}: must be a folder with config.json and safetensors files")
    reading = read_config(folder / "config.json")
    checkpoint = _checkpoint(reading, folder)
    entries = read_headers(folder)
    model = _without_memory(reading, len(entries))
    steps = _plan(folder, checkpoint, entries, model)
    model = model.to(_dtype(folder, steps, dtype)).to_empty(device=device or torch.get_default_device())
    if reading.config.tied:
        model.head.weight = model.embedding.weight  # to_empty made two of it
    _fill(model, steps)
    return model.eval()


def _checkpoint(reading: Reading, folder: Path) -> Checkpoint:
    """The names of the family's tensors. Refuses what cannot be built."""
    path, kind = folder / "config.json", reading.model_type
    if kind in AWAITED:
        raise CheckpointError(f"{path}: model_type: {kind!r} has {AWAITED[kind]}, which the Decoder does not build")
    if kind not in CHECKPOINTS:
        raise CheckpointError(f"{path}: model_type: {kind!r} is not known; known are {', '.join(CHECKPOINTS)}")
    if reading.unsupported:
        raise CheckpointError(f"{path}: {'; '.join(reading.unsupported)}")
    if json.loads(path.read_text(encoding="utf-8")).get("quantization_config"):
        raise CheckpointError(f"{path}: quantization_config: quantized weights are not read")
    names = CHECKPOINTS[kind]
    return names if isinstance(names, Checkpoint) else names(reading.config)


def _without_memory(reading: Reading, tensors: int) -> Decoder:
    """The model on the meta device. Modules take memory too, so that there must be a tensor for each large part."""
    config = reading.config
    parts, name = config.layers, "layers"
    if config.experts is not None:
        parts, name = config.experts.count * (config.layers - len(config.experts.dense_layers)), "experts"
    if tensors < max(parts, config.layers):
        raise CheckpointError(
            f"{reading.source}: {parts:,} {name} need more than the {tensors:,} tensors of the folder"
        )
    try:
        with torch.device("meta"):
            return Decoder(config)
    except ValueError as error:
        raise CheckpointError(f"{reading.source}: {error}") from None
    except RuntimeError:
        raise CheckpointError(f"{reading.source}: sizes that no tensor can have") from None


def _plan(folder: Path, checkpoint: Checkpoint, entries: Mapping[str, TensorEntry], model: Decoder) -> list[Step]:
    """Which tensor fills which parameters: every tensor is used, every parameter is filled, every shape is right."""
    config = model.config
    parameters = model.state_dict(keep_vars=True)
    stem = checkpoint.stem if any(name.startswith(checkpoint.stem) for name in entries) else ""
    steps, missing = [], []
    for module, stored in checkpoint.modules(config, stem):
        for suffix in (".weight", ".bias", ""):
            parts = tuple(part + suffix for part in stored.parts)
            if not all(part in parameters for part in parts):
                continue
            name = module + suffix
            if name in entries:
                steps.append(Step(name, entries[name], stored, parts))
            elif not (config.tied and parts == ("head.weight",)):
                missing.append(name)
    _refuse(folder, "missing; the config needs it", missing)
    constants = checkpoint.constants(config, stem)
    used = {step.name for step in steps}
    _refuse(folder, "not a tensor of this config", [n for n in entries if n not in used and n not in constants])
    unfilled = parameters.keys() - {part for step in steps for part in step.parts} - {"head.weight"}
    _refuse(folder, "no tensor of the files is known to hold it", sorted(unfilled))
    for step in steps:
        shape = step.stored.shape([parameters[part] for part in step.parts])
        if step.entry.shape != shape:
            raise CheckpointError(f"{step.entry.file}: {step.name}: shape {step.entry.shape}, the config needs {shape}")
        if step.entry.dtype not in DTYPES:
            raise CheckpointError(
                f"{step.entry.file}: {step.name}: dtype {step.entry.dtype}, must be one of {', '.join(DTYPES)}"
            )
    return steps


def _refuse(folder: Path, rule: str, names: list[str]) -> None:
    if names:
        others = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
        raise CheckpointError(f"{folder}: {names[0]}: {rule}{others}")


def _dtype(folder: Path, steps: Iterable[Step], wanted: torch.dtype | None) -> torch.dtype:
    if wanted is not None:
        if wanted not in DTYPES.values():
            raise CheckpointError(f"dtype must be one of {', '.join(map(str, DTYPES.values()))}, got {wanted}")
        return wanted
    first, *others = steps
    for step in others:
        if step.entry.dtype != first.entry.dtype:
            raise CheckpointError(
                f"{folder}: {step.name}: dtype {step.entry.dtype}, but {first.name} has {first.entry.dtype}; "
                "give load a dtype to convert both"
            )
    return DTYPES[first.entry.dtype]


def _fill(model: Decoder, steps: Iterable[Step]) -> None:
    """Copy each tensor to its parameters; a head that is stored beside its tied embedding must equal it."""
    parameters = model.state_dict(keep_vars=True)
    files: dict[Path, safe_open] = {}
    with ExitStack() as stack, torch.no_grad():
        for step in steps:
            path = step.entry.file
            try:
                if path not in files:
                    files[path] = stack.enter_context(safe_open(path, framework="pt"))
                tensor = files[path].get_tensor(step.name)
            except (SafetensorError, OSError) as error:
                raise CheckpointError(f"{path}: {step.name}: cannot be read: {error}") from None
            filled = [parameters[part] for part in step.parts]
            if model.config.tied and step.parts == ("head.weight",):  # the embedding comes before it
                if not torch.equal(tensor.to(filled[0]), filled[0]):
                    raise CheckpointError(
                        f"{path}: {step.name}: differs from the embedding, but tie_word_embeddings is true"
                    )
                continue
            for parameter, part in zip(filled, step.stored.split(tensor, filled, model.config), strict=True):
                parameter.copy_(part)
