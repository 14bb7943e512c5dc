"""Audit a config.json: what it states, what its class fills in, what follows, and what the model will cost.

``audit`` does the work and returns plain data; ``command`` prints it. Every figure names its convention.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from decoder.budget import BITS, CacheBytes, Flops, Parameters, bytes_text, flops, in_unit, kv_cache, parameters
from decoder.config import Config, RopeScaling
from decoder.config_json import ConfigError, Reading, Value, read_config

WIDEST_HEAD = 256
NARROWEST_HEAD = 64
ASPECTS = (32.0, 256.0)  # of 63 released decoders in decoder.families, 2 have a width / layers outside of this


@dataclass(frozen=True)
class Audit:
    """The whole audit. ``to_json`` gives the stable object that the command line prints."""

    reading: Reading
    parameters: Parameters
    kv_cache: CacheBytes
    flops: Flops
    ratios: Mapping[str, float]
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        cache = self.kv_cache
        return {
            "file": self.reading.source,
            "model_type": self.reading.model_type,
            "parameters": {name: getattr(self.parameters, name) for name in Parameters.formulas},
            "kv_cache": {
                "tokens": cache.tokens,
                "batch": cache.batch,
                "dtype": cache.dtype,
                "bytes_per_token": cache.bytes_per_token,
                "bytes": cache.bytes,
                "needed_bytes": cache.needed_bytes,
                "gigabytes": in_unit(cache.bytes, "GB"),
                "gibibytes": in_unit(cache.bytes, "GiB"),
                "needed_gigabytes": in_unit(cache.needed_bytes, "GB"),
                "needed_gibibytes": in_unit(cache.needed_bytes, "GiB"),
                "layers": list(cache.layers),
                "convention": cache.convention,
            },
            "flops": {
                "forward_per_token_weights": self.flops.forward_per_token_weights,
                "attention_per_token_per_key": self.flops.attention_per_token_per_key,
                "convention": self.flops.convention,
            },
            "ratios": dict(self.ratios),
            "values": {name: _value_json(value) for name, value in sorted(self.reading.values.items())},
            "warnings": list(self.warnings),
        }


def audit(
    source: Mapping[str, Any] | str | Path, context: int | None = None, batch: int = 1, cache_dtype: str = "bf16"
) -> Audit:
    """Read a config.json, given as a path or as its object, and work out what the model costs.

    ``context`` is the number of cached tokens, by default the model's own context. Raises ConfigError for a file
    that cannot be read, ValueError for a context, batch or dtype that is none.
    """
    reading = read_config(source)
    config = reading.config
    cache = kv_cache(config, config.context if context is None else context, batch, cache_dtype)
    return Audit(reading, parameters(config), cache, flops(config), ratios(config), warnings(reading, cache))


def active_hidden(config: Config) -> int:
    """The hidden width that one token meets in a layer: visited and shared experts together, where there are any."""
    experts = config.experts
    if experts is None or len(experts.dense_layers) == config.layers:
        return config.hidden
    return experts.per_token * experts.hidden + (experts.shared_hidden or 0)


def ratios(config: Config) -> dict[str, float]:
    """Feed-forward hidden / width (active experts), width / layers, and heads * head_width / width."""
    return {
        "ffn": active_hidden(config) / config.width,
        "aspect": config.width / config.layers,
        "attention_width": config.heads * config.head_width / config.width,
    }


def warnings(reading: Reading, cache: CacheBytes) -> tuple[str, ...]:
    """What a reader of this config should look at twice, each with its reason."""
    config, shape = reading.config, ratios(reading.config)
    found = list(reading.notes)
    found += [f"cannot be loaded as it is: {reason}" for reason in reading.unsupported]
    usual = (8 / 3, "8/3 of a gated") if config.gated else (4.0, "4 of a plain")
    if not usual[0] / 2 <= shape["ffn"] <= usual[0] * 2:
        found.append(
            f"feed-forward ratio {shape['ffn']:.2f} is more than a factor 2 from the usual {usual[1]} feed-forward part"
        )
    if not ASPECTS[0] <= shape["aspect"] <= ASPECTS[1]:
        found.append(
            f"width / layers is {shape['aspect']:.1f}; most released decoders lie between {ASPECTS[0]:.0f} and "
            f"{ASPECTS[1]:.0f}"
        )
    if config.latent is None and shape["attention_width"] != 1:
        found.append(
            f"heads x head_width is {config.heads * config.head_width:,}, not the width {config.width:,}: "
            "a cache computed from width / heads would be wrong"
        )
    if not NARROWEST_HEAD <= config.head_width <= WIDEST_HEAD:
        found.append(
            f"head_width {config.head_width} is outside {NARROWEST_HEAD} to {WIDEST_HEAD}, where attention kernels are "
            "tuned"
        )
    if config.vocab % 64:
        found.append(
            f"vocab {config.vocab:,} is no multiple of 64: the head's matrix product runs on whole tiles, and padded "
            "rows are cheap"
        )
    stated_head = reading.values.get("head_width")
    if stated_head is not None and stated_head.origin == "class default":
        found.append(f"head_dim is absent: the class takes {config.head_width}, not width / heads")
    tied = reading.values.get("tied")
    if tied is not None and tied.origin == "class default":
        kind = "ties" if config.tied else "does not tie"
        found.append(
            f"tie_word_embeddings is absent: the class {kind}; that is {config.vocab * config.width:,} parameters"
        )
    if config.window is not None and cache.needed_bytes < cache.bytes:
        found.append(
            f"{len(config.windowed_layers)} of {config.layers} layers see {config.window:,} keys: at {cache.tokens:,} "
            f"tokens {cache.needed_bytes:,} bytes are needed, {cache.bytes:,} where every layer has room for all tokens"
        )
    if config.experts is not None and config.experts.selection_bias:
        layers = config.layers - len(config.experts.dense_layers)
        found.append(
            f"{layers * config.experts.count:,} router correction values are stored with the weights but are not "
            "trained parameters; they are not counted"
        )
    if cache.tokens > config.context:
        found.append(f"{cache.tokens:,} tokens are beyond the context of {config.context:,} that the file states")
    return tuple(found)


def _value_json(value: Value) -> dict[str, Any]:
    shown = asdict(value.value) if isinstance(value.value, RopeScaling) else value.value
    return {"value": list(shown) if isinstance(shown, tuple) else shown, "origin": value.origin, "key": value.key}


@click.command("audit")
@click.argument("config", type=click.Path(path_type=Path))
@click.option(
    "--context", type=click.IntRange(min=1), help="Cached tokens of a sequence. [default: the model's context]"
)
@click.option("--batch", type=click.IntRange(min=1), default=1, show_default=True, help="Sequences at once.")
@click.option("--cache-dtype", type=click.Choice(list(BITS)), default="bf16", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(config: Path, context: int | None, batch: int, cache_dtype: str, as_json: bool) -> None:
    """What a config.json states and implies: parameters, cache, FLOPs, ratios.

    Exit status: 0 read, 1 refused (one line says why), 2 wrong usage.
    """
    try:
        result = audit(config, context, batch, cache_dtype)
    except ConfigError as error:
        raise click.ClickException(str(error)) from None
    if as_json:
        click.echo(json.dumps(result.to_json(), indent=2))
    else:
        _print(result)


def _print(result: Audit) -> None:
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    reading, cache = result.reading, result.kv_cache

    def table(title: str, *columns: str) -> Table:
        made = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
        made.add_column(columns[0])
        for column in columns[1:]:
            made.add_column(column, justify="right" if column in ("parameters", "share", "FLOPs", "ratio") else "left")
        return made

    console.print(f"[bold]{escape(reading.source)}[/bold]  model_type {reading.model_type or 'absent'}")
    counts = table("Parameters", "part", "parameters", "share")
    total = result.parameters.total
    for name in Parameters.formulas:
        number = getattr(result.parameters, name)
        counts.add_row(name.replace("_", " "), f"{number:,}", f"{number / total:.1%}")
    console.print(counts)
    console.print(result.parameters.convention, style="dim")

    memory = table(f"Cache: {cache.tokens:,} tokens, batch {cache.batch}, {cache.dtype}", "what", "bytes")
    memory.add_row("one token", bytes_text(cache.bytes_per_token))
    memory.add_row("every layer holds every token", bytes_text(cache.bytes))
    memory.add_row("needed, windows applied", bytes_text(cache.needed_bytes))
    console.print(memory)

    work = table("FLOPs", "what", "FLOPs")
    work.add_row("weights, forward, one token", f"{result.flops.forward_per_token_weights:,}")
    work.add_row("attention, one token, each key it sees", f"{result.flops.attention_per_token_per_key:,}")
    console.print(work)
    console.print(result.flops.convention, style="dim")

    shape = table("Ratios", "what", "ratio")
    for name, ratio in result.ratios.items():
        shape.add_row(RATIO_NAMES[name], f"{ratio:.3f}")
    console.print(shape)

    values = table("Values", "field", "value", "origin", "key")
    for name, value in sorted(reading.values.items()):
        text = json.dumps(_value_json(value)["value"])
        values.add_row(name, escape(text if len(text) <= 24 else text[:21] + "..."), value.origin, value.key or "")
    console.print(values)

    console.print("Warnings" if result.warnings else "No warnings", style="bold")
    for warning in result.warnings:
        console.print(f"- {escape(warning)}")


RATIO_NAMES = {
    "ffn": "feed-forward hidden / width (active)",
    "aspect": "width / layers",
    "attention_width": "heads x head width / width",
}
