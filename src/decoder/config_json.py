"""Read a Hugging Face config.json into a Config, and say where each value comes from.

A released config states some values, leaves some to the class that reads it, and implies the rest; an absent key
means different things in different classes. ``decoder.model_types`` holds that knowledge. A ``model_type`` that it
lacks is read by the keys that most families share, if they are all there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decoder.config import Config, Experts, LatentAttention, RopeScaling
from decoder.config_keys import (
    DERIVED,
    LARGEST_NUMBER,
    REQUIRED,
    ConfigError,
    ConfigFile,
    Family,
    Key,
    Rope,
    Value,
    Windows,
    short,
)  # fmt: skip
from decoder.model_types import FAMILIES, GENERIC, GENERIC_REFUSES, OTHER_NAMES

__all__ = ["FAMILIES", "ConfigError", "Reading", "Value", "read_config"]

LARGEST_FILE = 1_000_000  # bytes; released files hold a few thousand
MOST_LAYERS = 10_000


@dataclass(frozen=True)
class Reading:
    """A config.json understood. ``values`` holds every field of ``config`` that was read, by name.

    ``notes`` says what a reader should know; ``unsupported`` what the file asks for that a Config cannot express:
    it changes no count, but weights loaded without it would compute something else.
    """

    config: Config
    model_type: str | None
    source: str
    values: Mapping[str, Value]
    notes: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()


def read_config(source: Mapping[str, Any] | str | Path, name: str | None = None) -> Reading:
    """Read a config.json, given as its path or as the object it holds.

    Raises ConfigError, one line that names the file, the key, its value and the rule, for anything that is no
    config of a decoder, or that no count could be trusted for. ``name`` replaces the file's name in messages.
    """
    if isinstance(source, str | Path):
        name = name or str(source)
        data = _load(Path(source), name)
    else:
        name, data = name or "config", source
    if not isinstance(data, Mapping):
        raise ConfigError(f"{name}: must hold one JSON object, got a {type(data).__name__}")
    return _read(ConfigFile(_text_part(data, name), name))


def _load(path: Path, name: str) -> Any:
    def refuse(constant: str) -> None:
        raise ConfigError(f"{name}: {constant} is not JSON; every number must be finite")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        known: dict[str, Any] = {}
        for key, value in pairs:
            if key in known and known[key] != value:
                raise ConfigError(f"{name}: {key}: stated twice, {short(known[key])} and {short(value)}")
            known[key] = value
        return known

    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_FILE + 1)
        if len(raw) > LARGEST_FILE:
            raise ConfigError(f"{name}: more than {LARGEST_FILE:,} bytes; no config.json is that long")
        return json.loads(raw.decode(), parse_constant=refuse, object_pairs_hook=once)
    except OSError as error:
        raise ConfigError(f"{name}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{name}: not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise ConfigError(f"{name}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise ConfigError(f"{name}: objects nested too deeply") from None
    except ValueError as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"{name}: a number too long to read") from None


def _text_part(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The language model's own keys: the inner object of a multimodal config, with the outer tie where it has none."""
    inner = data.get("text_config")
    if inner is None:
        return data
    if not isinstance(inner, dict):
        raise ConfigError(f"{name}: text_config: got {short(inner)}; must be an object")
    outer_tie = {"tie_word_embeddings": data["tie_word_embeddings"]} if "tie_word_embeddings" in data else {}
    outer_type = {"model_type": f"{data['model_type']}_text"} if isinstance(data.get("model_type"), str) else {}
    return {**outer_tie, **outer_type, **inner}


def _read(file: ConfigFile) -> Reading:
    model_type = file.get("model_type")
    if model_type is not REQUIRED and not isinstance(model_type, str):
        raise file.error("model_type", model_type, "must be a string")
    family = FAMILIES.get(model_type)
    if family is None:
        shown = "absent" if model_type is REQUIRED else short(model_type)
        for key in GENERIC_REFUSES:
            if file.get(key) not in (REQUIRED, None, False, 0):
                raise file.error(key, file.get(key), f"cannot be counted for an unknown model_type ({shown})")
        file.notes.append(
            f"model_type {shown} is not known: read by its keys alone, as a pre-norm decoder with RMS norms, rotary "
            "positions and a gate where the activation is SiLU; biases, QK-norm and other "
            "parts that its class adds without a key are not counted"
        )
        family = GENERIC
    for key, allowed in family.only.items():
        stated = file.get(key)
        if stated is not REQUIRED and stated not in allowed:
            rule = f"must be {' or '.join(map(short, allowed))}, nothing else is counted for {model_type}"
            raise file.error(key, stated, rule)
    for key, allowed in family.expressed.items():
        stated = file.get(key)
        if stated is not REQUIRED and stated not in allowed:
            file.unsupported.append(f"{key} is {short(stated)}, which a Config does not express")
    file.unsupported.extend(family.beyond)
    read = {name: file.take(name, spec) if isinstance(spec, Key) else spec for name, spec in family.fields.items()}
    if family is GENERIC:
        read["gated"] = file.derive("gated", read["activation"] == "silu", "hidden_act")
    _heads(file, family, read)
    if family.latent:
        latent = {name: file.take(f"latent.{name}", key) for name, key in family.latent.items()}
        read["latent"] = LatentAttention(**latent)
    _windows(file, family.windows, read)
    _rotary(file, family.rope, read)
    if family.finish:
        family.finish(file, read)
    _experts(file, family, read)
    _unread(file, family)
    try:
        config = Config(**{name: value for name, value in read.items() if value is not DERIVED})
    except ValueError as error:
        raise ConfigError(f"{file.source}: {_with_key(str(error), file)}") from None
    return Reading(
        config,
        None if model_type is REQUIRED else model_type,
        file.source,
        dict(file.values),
        tuple(file.notes),
        tuple(file.unsupported),
    )


def _with_key(message: str, file: ConfigFile) -> str:
    """A Config's own message, led by the key that its first word was read from."""
    value = file.values.get(message.split(" ", 1)[0])
    return f"{value.key}: {message}" if value and value.key else message


def _heads(file: ConfigFile, family: Family, read: dict[str, Any]) -> None:
    width, heads = read["width"], read["heads"]
    if read["layers"] > MOST_LAYERS:
        raise file.error(str(file.values["layers"].key), read["layers"], f"must be at most {MOST_LAYERS:,}")
    if read.get("kv_heads") is DERIVED:
        spec = family.fields.get("kv_heads")
        read["kv_heads"] = file.derive("kv_heads", heads, spec.name if isinstance(spec, Key) else None)
    if heads % read["kv_heads"]:
        key = file.values["kv_heads"].key or file.values["heads"].key
        raise file.error(str(key), read["kv_heads"], f"must divide {file.named('heads')}")
    if family.latent is None and read.get("head_width") is DERIVED:
        if width % heads:
            rule = f"must divide {file.named('width')} where no head_dim is stated"
            raise file.error(str(file.values["heads"].key), heads, rule)
        read["head_width"] = file.derive("head_width", width // heads, "head_dim")


def _unread(file: ConfigFile, family: Family) -> None:
    """Note each key that states a size under a name that this class does not read, if the file does not state it."""
    keys = {field: spec.names for field, spec in family.fields.items() if isinstance(spec, Key)}
    own = {name for names in keys.values() for name in names}
    for name in file.data:
        field = OTHER_NAMES.get(name, "")
        read = file.values.get(field) if field in keys and name not in own else None
        if read is not None and read.origin != "stated":
            taken = f"{field} is {read.value} ({read.origin})"
            file.notes.append(f"{name} has no effect: the class reads {' or '.join(keys[field])}; {taken}")


def _windows(file: ConfigFile, windows: Windows | None, read: dict[str, Any]) -> None:
    layers, types = read["layers"], file.get("layer_types")
    if types is REQUIRED or types is None:
        sliding = None
    else:
        known = ("full_attention", "sliding_attention")
        if not isinstance(types, list) or any(kind not in known for kind in types):
            raise file.error("layer_types", types, f"must be a list of {' and '.join(known)}")
        if len(types) != layers:
            raise file.error("layer_types", types, f"must have one entry a layer, {file.named('layers')}")
        sliding = tuple(layer for layer, kind in enumerate(types) if kind == "sliding_attention")
    window = None
    if windows is not None:
        window = file.take("window", windows.width)
        if windows.switch is not None and not file.take("use_sliding_window", windows.switch):
            if file.values.pop("window", None) and window:
                file.notes.append(
                    f"sliding_window is {window}, but use_sliding_window is false: every layer sees all keys"
                )
            window = None
    if sliding and window is None:
        raise file.error("sliding_window", None, f"must be a whole number, {len(sliding)} of layer_types slide")
    if window is None or windows is None:
        read["windowed_layers"] = ()
        return
    if sliding is None:
        sliding = tuple(layer for layer in range(layers) if windows.slides(layer, file))
        file.derive("windowed_layers", sliding)
    else:
        file.values["windowed_layers"] = Value(sliding, "stated", "layer_types")
    read["windowed_layers"] = sliding
    read["window"] = window if sliding else None


def _rotary(file: ConfigFile, rope: Rope | None, read: dict[str, Any]) -> None:
    if rope is None:
        return
    read.setdefault("positions", "rotary")
    read["rope_pairing"] = rope.pairing
    holder, every = _rope_parameters(file, rope)
    nested = {
        kind: every[kind] for kind in ("full_attention", "sliding_attention") if isinstance(every.get(kind), dict)
    }
    full = nested.get("full_attention", {} if nested else every)
    read["rope_base"] = _rope_number(file, "rope_base", full, "rope_theta", rope.base_keys, rope.base, holder)
    if rope.base_windowed is not None or "sliding_attention" in nested:
        own = nested.get("sliding_attention", {})
        default = rope.base_windowed or read["rope_base"]
        keys = ("rope_local_base_freq",)
        read["rope_base_windowed"] = _rope_number(file, "rope_base_windowed", own, "rope_theta", keys, default, holder)
        if own.get("rope_type", "default") != "default":
            file.unsupported.append("rope_parameters scale the windowed layers, which a Config does not express")
    if "latent" not in read:
        part = _rope_number(
            file, "rotary_part", full, "partial_rotary_factor", rope.part_keys, rope.part, holder, most=1.0
        )
        rotated = file.derive("rotary_width", int(read["head_width"] * part))
        if rotated < 2 or rotated % 2:
            origin = f"{file.named('width')}, {file.named('heads')}, head_dim {file.values['head_width'].origin}"
            rule = f"must rotate an even number of coordinates, got {rotated} of {read['head_width']} ({origin})"
            raise file.error(file.values["rotary_part"].key or "", part, rule)
        read["rotary_width"] = rotated
    read["rope_scaling"] = _rope_scaling(file, rope, full, read, holder)


def _rope_parameters(file: ConfigFile, rope: Rope) -> tuple[str, Mapping[str, Any]]:
    """The object that describes rotary positions, under its new name or its old one."""
    for key in ("rope_scaling", "rope_parameters"):
        stated = file.get(key)
        if stated is REQUIRED or stated is None:
            continue
        if not isinstance(stated, dict):
            raise file.error(key, stated, "must be an object")
        return key, stated
    return "rope_parameters", rope.scaling or {}


def _rope_number(
    file: ConfigFile,
    name: str,
    stated: Mapping[str, Any],
    key: str,
    outer: tuple[str, ...],
    default: float,
    holder: str,
    most: float = LARGEST_NUMBER,
) -> float:
    """A number of the rotary object; else of a key of the file itself; else the class default."""
    places = [(f"{holder}.{key}", stated.get(key))] + [(other, file.get(other)) for other in outer]
    for place, value in places:
        if value is not None and value is not REQUIRED:
            file.number(place, value)
            if value > most:
                raise file.error(place, value, f"must be at most {most:g}")
            file.values[name] = Value(value, "stated", place)
            return float(value)
    file.values[name] = Value(default, "class default", key)
    return default


def _rope_scaling(
    file: ConfigFile, rope: Rope, stated: Mapping[str, Any], read: Mapping[str, Any], holder: str
) -> RopeScaling | None:
    kind = stated.get("rope_type", stated.get("type", "default"))
    if not isinstance(kind, str):
        raise file.error(f"{holder}.rope_type", kind, "must be a string")
    kind = rope.kinds.get(kind, kind)
    if kind == "default":
        return None
    if kind not in ("linear", "dynamic", "yarn", "llama3", "longrope"):
        file.unsupported.append(f"{holder}.rope_type is {short(kind)}, which a Config does not express")
        return None

    def optional(key: str) -> float | None:
        value = stated.get(key)
        return None if value is None else float(file.number(f"{holder}.{key}", value))

    original = stated.get("original_max_position_embeddings")
    outer = file.get("original_max_position_embeddings")
    if outer is not REQUIRED and outer is not None:  # Phi-3 states it outside, and that one counts
        original = outer
    original = read["context"] if original is None else file.whole("original_max_position_embeddings", original)
    factor = optional("factor")
    if factor is None:
        if kind not in ("yarn", "longrope"):
            raise file.error(f"{holder}.factor", REQUIRED, f"rope_type {kind} needs it")
        factor = read["context"] / original
    chosen: dict[str, Any] = {"kind": kind, "factor": factor, "original_context": original}
    names = {
        "attention_factor": "attention_factor", "mscale": "mscale", "mscale_all_dim": "mscale_all_dim",
        "beta_fast": "beta_fast", "beta_slow": "beta_slow", "low_freq_factor": "low_frequency",
        "high_freq_factor": "high_frequency",
    }  # fmt: skip
    for key, name in names.items():
        if stated.get(key) not in (None, 0):
            chosen[name] = optional(key)
    if "truncate" in stated:
        chosen["truncate"] = bool(stated["truncate"])
    if kind == "longrope":
        for key, name in (("short_factor", "short_factors"), ("long_factor", "long_factors")):
            numbers = stated.get(key)
            if not isinstance(numbers, list):
                raise file.error(f"{holder}.{key}", numbers, "must be a list of numbers, one per rotated pair")
            chosen[name] = tuple(float(file.number(f"{holder}.{key}", value)) for value in numbers)
    try:
        scaling = RopeScaling(**chosen)
    except ValueError as error:
        raise ConfigError(f"{file.source}: {holder}: {error}") from None
    return file.derive("rope_scaling", scaling, holder)


def _experts(file: ConfigFile, family: Family, read: dict[str, Any]) -> None:
    if family.experts is None:
        return
    chosen: dict[str, Any] = {}
    for name, spec in family.experts.items():
        if spec == "hidden":  # the key that is a dense width elsewhere
            chosen[name] = read["hidden"]
            file.values["experts.hidden"] = file.values["hidden"]
        elif callable(spec):
            chosen[name] = spec(file)
        else:
            chosen[name] = file.take(f"experts.{name}", spec) if isinstance(spec, Key) else spec
    chosen["dense_layers"] = tuple(layer for layer in range(read["layers"]) if family.dense_layer(layer, file))
    file.derive("experts.dense_layers", chosen["dense_layers"])
    try:
        read["experts"] = Experts(**chosen)
    except ValueError as error:
        raise ConfigError(f"{file.source}: {_with_key(str(error), file)}") from None
