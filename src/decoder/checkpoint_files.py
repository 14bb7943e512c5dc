"""The weight files of a folder, known from their headers alone.

A safetensors file starts with the length of a JSON header (8 bytes, little-endian), then the header with each
tensor's dtype, shape and place, then the tensors back to back. Everything is checked here before a tensor is read.
Pickles are never opened: reading one runs whatever program it holds.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LARGEST_HEADER = 100_000_000  # bytes: the limit of the format's own library
LARGEST_INDEX = 100_000_000
INDEX = "model.safetensors.index.json"
WHOLE = "model.safetensors"
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
WIDTHS = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2,
    "I32": 4, "U32": 4, "F32": 4, "I64": 8, "U64": 8, "F64": 8,
}  # fmt: skip


class CheckpointError(ValueError):
    """A folder that cannot be loaded: one line with the file, the tensor and the rule."""


@dataclass(frozen=True)
class TensorEntry:
    """One tensor as its file's header describes it."""

    file: Path
    dtype: str  # the format's own name: F32, BF16, ...
    shape: tuple[int, ...]


def read_headers(folder: Path) -> dict[str, TensorEntry]:
    """Every tensor of the folder's safetensors files, by name, without reading any.

    Takes the shards that ``model.safetensors.index.json`` names if there is one, else the only safetensors file.
    Raises CheckpointError, naming the file and the tensor, where files, index and headers do not agree.
    """
    try:
        return _sharded_headers(folder) if (folder / INDEX).exists() else _file_header(_only_file(folder))
    except OSError as error:
        raise CheckpointError(f"{error.filename}: cannot be read: {error.strerror}") from None


def _sharded_headers(folder: Path) -> dict[str, TensorEntry]:
    if (folder / WHOLE).exists():
        raise CheckpointError(f"{folder}: holds both {WHOLE} and {INDEX}; which one counts is not known")
    places = _read_index(folder / INDEX)
    entries: dict[str, TensorEntry] = {}
    for shard in sorted(set(places.values())):
        for name, entry in _file_header(folder / shard).items():
            if places.get(name) != shard:
                said = f"{INDEX} places it in {places[name]}" if name in places else f"{INDEX} does not name it"
                raise CheckpointError(f"{folder / shard}: {name}: {said}")
            entries[name] = entry
    for name, shard in places.items():
        if name not in entries:
            raise CheckpointError(f"{folder / shard}: {name}: missing; {INDEX} places it here")
    return entries


def _only_file(folder: Path) -> Path:
    found = sorted(folder.glob("*.safetensors"))
    if folder / WHOLE in found:
        return folder / WHOLE
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(path.name for path in found[:3])
        raise CheckpointError(f"{folder}: holds {len(found)} safetensors files ({names}, ...) and no {INDEX}")
    pickles = sorted(path.name for path in folder.iterdir() if path.suffix in PICKLES)
    if pickles:
        raise CheckpointError(
            f"{folder / pickles[0]}: a pickle, which runs code when it is read; only safetensors files are loaded"
        )
    raise CheckpointError(f"{folder}: holds no safetensors file")


def _read_index(path: Path) -> dict[str, str]:
    """Tensor name to shard."""
    size = path.stat().st_size
    if size > LARGEST_INDEX:
        raise CheckpointError(f"{path}: {size:,} bytes; an index has at most {LARGEST_INDEX:,}")
    places = _json_object(path.read_bytes(), f"{path}").get("weight_map")
    if not isinstance(places, dict) or not places:
        raise CheckpointError(f"{path}: weight_map must be an object that names a file for each tensor")
    for name, shard in places.items():
        if not isinstance(shard, str) or not shard.endswith(".safetensors") or set(shard) & set("/\\:"):
            raise CheckpointError(f"{path}: {name}: must be in a safetensors file of this folder, got {shard!r}")
        if not (path.parent / shard).is_file():
            raise CheckpointError(f"{path}: {name}: {shard!r} is not in the folder")
    return places


def _file_header(path: Path) -> dict[str, TensorEntry]:
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > size - 8:
            raise CheckpointError(f"{path}: truncated: the file ends within its header")
        if length > LARGEST_HEADER:
            raise CheckpointError(f"{path}: a header of {length:,} bytes; at most {LARGEST_HEADER:,} are read")
        header = _json_object(file.read(length), f"{path}: header")
    header.pop("__metadata__", None)
    entries, places = {}, []
    for name, described in header.items():
        entries[name], start, end = _entry(path, name, described)
        places.append((start, end, name))
    _check_places(path, places, size - 8 - length)
    return entries


def _entry(path: Path, name: str, described: Any) -> tuple[TensorEntry, int, int]:
    described = described if isinstance(described, dict) else {}
    dtype, shape, place = (described.get(key) for key in ("dtype", "shape", "data_offsets"))
    if not _counts(shape) or not _counts(place) or len(place) != 2 or not isinstance(dtype, str):
        raise CheckpointError(f"{path}: {name}: must state dtype, shape and data_offsets in its header")
    if dtype not in WIDTHS:
        raise CheckpointError(f"{path}: {name}: dtype {dtype!r} is not known")
    needed = math.prod(shape) * WIDTHS[dtype]
    if place[1] - place[0] != needed:
        raise CheckpointError(
            f"{path}: {name}: {tuple(shape)} in {dtype} takes {needed:,} bytes, got {place[1] - place[0]:,}"
        )
    return TensorEntry(path, dtype, tuple(shape)), place[0], place[1]


def _counts(value: Any) -> bool:
    return isinstance(value, list) and all(type(number) is int and 0 <= number < 2**63 for number in value)


def _check_places(path: Path, places: list[tuple[int, int, str]], size: int) -> None:
    """Tensors must lie back to back from the end of the header to the end of the file."""
    reached = 0
    for start, end, name in sorted(places):
        if start != reached:
            raise CheckpointError(f"{path}: {name}: starts at byte {start:,} of the data, must start at {reached:,}")
        if end > size:
            raise CheckpointError(f"{path}: {name}: truncated: ends at byte {end:,} of the data, the file at {size:,}")
        reached = end
    if reached != size:
        raise CheckpointError(f"{path}: {size - reached:,} bytes after the last tensor")


def _json_object(text: bytes, name: str) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        known: dict[str, Any] = {}
        for key, value in pairs:
            if not key.isprintable():
                raise CheckpointError(f"{name}: {key!r}: a name must be printable")
            if key in known:
                raise CheckpointError(f"{name}: {key}: stated twice")
            known[key] = value
        return known

    try:
        value = json.loads(text, object_pairs_hook=once)
    except CheckpointError:
        raise
    except (ValueError, RecursionError):
        raise CheckpointError(f"{name}: not JSON") from None
    if not isinstance(value, dict):
        raise CheckpointError(f"{name}: must hold one JSON object")
    return value
