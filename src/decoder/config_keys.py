"""The words in which a config.json is described: keys, what their absence means, and one file being read.

``decoder.model_types`` is written in them, ``decoder.config_json`` reads by them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Origin = Literal["stated", "class default", "derived"]

LARGEST = 100_000_000  # of any size
LARGEST_NUMBER = 1e15

ACTIVATIONS = {
    "gelu": "gelu", "gelu_python": "gelu", "gelu_new": "gelu_tanh", "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu", "relu2": "relu2", "silu": "silu", "swish": "silu",
    "linear": "identity",
}  # fmt: skip


class ConfigError(ValueError):
    """A config.json that cannot be read: one line with the file, the key, its value and the rule."""


@dataclass(frozen=True)
class Value:
    """One value as read: what it is, how we know, and the key that states or would state it."""

    value: Any
    origin: Origin
    key: str | None = None


REQUIRED: Any = object()  # absent: refused
DERIVED = None  # absent: follows from other values


@dataclass(frozen=True)
class Key:
    """Where a value stands in the file, and what its absence and its null mean."""

    names: tuple[str, ...]
    default: Any
    kind: Literal["whole", "number", "flag", "activation"]
    null: Any = REQUIRED  # what null means; REQUIRED: null is refused
    least: float = 1
    means: Mapping[Any, Any] | None = None

    @property
    def name(self) -> str:
        return self.names[0]


def whole(*names: str, default: Any = REQUIRED, null: Any = REQUIRED, least: int = 1) -> Key:
    return Key(names, default, "whole", DERIVED if default is DERIVED else null, least)


def number(*names: str, default: Any = REQUIRED, null: Any = REQUIRED) -> Key:
    return Key(names, default, "number", DERIVED if default is DERIVED else null)


def flag(*names: str, default: Any = REQUIRED, null: Any = REQUIRED, means: Mapping[bool, Any] | None = None) -> Key:
    return Key(names, default, "flag", null, means=means)


def activation(*names: str, default: Any = REQUIRED) -> Key:
    return Key(names, default, "activation")


def biases(*names: str, default: Any, letters: str = "qkvo") -> Key:
    return flag(*names, default=default, means={True: letters, False: ""})


@dataclass(frozen=True)
class Rope:
    """Rotary positions of a family: the pairing of its code, and the class defaults of base and rotated part."""

    pairing: Literal["adjacent", "half"] = "half"
    base: float = 10_000.0
    base_keys: tuple[str, ...] = ("rope_theta",)
    part: float = 1.0
    part_keys: tuple[str, ...] = ("partial_rotary_factor",)
    base_windowed: float | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)  # names that mean another kind here
    scaling: Mapping[str, Any] | None = None  # class default of rope_parameters


@dataclass(frozen=True)
class Windows:
    """Sliding windows of a family: the width's key, the switch, and which layers slide if ``layer_types`` is absent."""

    width: Key
    switch: Key | None = None
    slides: Callable[[int, ConfigFile], bool] = lambda layer, file: True


@dataclass(frozen=True)
class Family:
    """How one ``model_type`` is read. ``fields`` gives each Config field a Key, or the value its class fixes."""

    fields: Mapping[str, Any]
    rope: Rope | None = None
    windows: Windows | None = None
    experts: Mapping[str, Any] | None = None
    dense_layer: Callable[[int, ConfigFile], bool] = lambda layer, file: False
    latent: Mapping[str, Key] | None = None
    finish: Callable[[ConfigFile, dict[str, Any]], None] | None = None
    only: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # key: the values that counts hold for
    expressed: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # key: the values that a Config expresses
    beyond: tuple[str, ...] = ()  # what its class always does and a Config does not express


class ConfigFile:
    """The keys of one file, the origin of what was taken from them, and errors that name both."""

    def __init__(self, data: Mapping[str, Any], source: str) -> None:
        self.data, self.source = data, source
        self.values: dict[str, Value] = {}
        self.notes: list[str] = []
        self.unsupported: list[str] = []

    def error(self, key: str, value: Any, rule: str) -> ConfigError:
        shown = "absent" if value is REQUIRED else f"got {short(value)}"
        return ConfigError(f"{self.source}: {key}: {shown}; {rule}")

    def get(self, name: str) -> Any:
        """The raw value of a key, REQUIRED where it is absent. A dot leads into a nested object."""
        outer, _, inner = name.partition(".")
        value = self.data.get(outer, REQUIRED)
        if not inner or value is REQUIRED or value is None:
            return value if not inner else REQUIRED
        if not isinstance(value, dict):
            raise self.error(outer, value, "must be an object")
        return value.get(inner, REQUIRED)

    def take(self, field_name: str, key: Key) -> Any:
        """The value of ``key``, checked, its origin recorded under ``field_name``; DERIVED where it must follow."""
        present = [(name, self.get(name)) for name in key.names if self.get(name) is not REQUIRED]
        if not present:
            if key.default is REQUIRED:
                raise self.error(key.name, REQUIRED, f"{field_name} has no default here, the file must state it")
            if key.default is not DERIVED:
                value = key.means[key.default] if key.means else key.default
                self.values[field_name] = Value(value, "class default", key.name)
                return value
            return DERIVED
        name, value = present[0]
        for other, stated in present[1:]:
            if stated != value:
                raise self.error(other, stated, f"must equal {name}, which is {short(value)}")
        if value is None:
            if key.null is REQUIRED:
                raise self.error(name, None, f"must be {_KIND[key.kind]}")
            if key.null is not DERIVED:
                self.values[field_name] = Value(key.null, "class default", name)
            return key.null
        value = self.check(name, value, key)
        self.values[field_name] = Value(value, "stated", name)
        return value

    def check(self, name: str, value: Any, key: Key) -> Any:
        if key.kind == "whole":
            self.whole(name, value, int(key.least))
        elif key.kind == "number":
            self.number(name, value)
        elif key.kind == "flag" and not isinstance(value, bool):
            raise self.error(name, value, "must be true or false")
        elif key.kind == "activation":
            if not isinstance(value, str) or value not in ACTIVATIONS:
                raise self.error(name, value, f"must be one of {', '.join(ACTIVATIONS)}")
            return ACTIVATIONS[value]
        return key.means[value] if key.means else value

    def whole(self, name: str, value: Any, least: int = 1, most: int = LARGEST) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error(name, value, "must be a whole number")
        if not least <= value <= most:
            raise self.error(name, value, f"must be from {least} to {most:,}")
        return value

    def number(self, name: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(name, value, "must be a number")
        if not 0 < value <= LARGEST_NUMBER:
            raise self.error(name, value, f"must be above 0 and at most {LARGEST_NUMBER:g}")
        return value

    def named(self, field_name: str) -> str:
        """A value already read, with its key: for the other side of a contradiction."""
        value = self.values[field_name]
        origin = "" if value.origin == "stated" else f" ({value.origin})"
        return f"{value.key} {value.value}{origin}"

    def derive(self, field_name: str, value: Any, key: str | None = None) -> Any:
        self.values[field_name] = Value(value, "derived", key)
        return value


_KIND = {"whole": "a whole number", "number": "a number", "flag": "true or false", "activation": "an activation's name"}


def short(value: Any) -> str:
    try:
        text = repr(value) if isinstance(value, float) else json.dumps(value, default=repr)
    except RecursionError:
        return "a value nested too deeply to show"
    return text if len(text) <= 48 else text[:45] + "..."
