"""Released models as configs, by name, and what was published about them.

``released.json`` holds two lists. Models are config.json files, read as ``decoder.config_json`` reads any other, so
that their counts are exact. Systems are what the book speaks of besides: with a shape where one was published and a
Config can express it, else with a note that says why not. Values that could not be checked are named.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import click

from decoder.budget import parameters
from decoder.config import Config, Experts, LatentAttention
from decoder.config_json import Reading, read_config


@dataclass(frozen=True)
class Published:
    """A count that someone printed. ``why`` explains a difference from the formula, where we know the reason."""

    count: int | str  # a string where only a rounded size was published
    source: str
    why: str = ""


@dataclass(frozen=True)
class Row:
    """One model or system. ``config`` is None where no shape was published, or a Config cannot express it."""

    name: str
    year: int
    config: Config | None
    published: tuple[Published, ...]
    source: str  # where the values come from
    unverified: tuple[str, ...]  # values that could not be checked
    note: str
    reading: Reading | None = None  # of a released config.json


@cache
def _data() -> dict[str, list[dict[str, Any]]]:
    return json.loads(files("decoder").joinpath("released.json").read_text(encoding="utf-8"))


def _published(row: dict[str, Any]) -> tuple[Published, ...]:
    return tuple(Published(**entry) for entry in row.get("published", ()))


def _model(row: dict[str, Any]) -> Row:
    reading = read_config(row["config"], name=row["name"])
    unverified = tuple(row["unverified"])
    return Row(row["name"], row["year"], reading.config, _published(row), row["source"], unverified, "", reading)


def _system(row: dict[str, Any]) -> Row:
    if "released" in row:
        model = next(model for model in RELEASED if model.name == row["released"])
        note = f"{row['note']}; shown as {model.name}"
        return Row(row["name"], row["year"], model.config, model.published, model.source, model.unverified, note)
    config = _config(row["config"]) if "config" in row else None
    unverified = tuple(row.get("unverified", ()))
    return Row(row["name"], row["year"], config, _published(row), row.get("source", ""), unverified, row["note"])


def _config(stated: dict[str, Any]) -> Config:
    chosen: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in stated.items()
    }
    if "experts" in stated:
        experts = stated["experts"]
        chosen["experts"] = Experts(**{**experts, "dense_layers": tuple(experts.get("dense_layers", ()))})
    if "latent" in stated:
        chosen["latent"] = LatentAttention(**stated["latent"])
    return Config(**chosen)


RELEASED: tuple[Row, ...] = tuple(_model(row) for row in _data()["models"])
SYSTEMS: tuple[Row, ...] = tuple(_system(row) for row in _data()["systems"])


def names() -> tuple[str, ...]:
    """Every name that ``get`` knows: released models, then systems with a published shape."""
    return tuple(row.name for row in RELEASED) + tuple(row.name for row in SYSTEMS if row.config is not None)


def row(name: str) -> Row:
    """Everything known about a model or system. Raises ValueError, with names that resemble it, for an unknown one."""
    for candidate in RELEASED + SYSTEMS:
        if name in (candidate.name, candidate.name.rpartition("/")[2]):
            return candidate
    near = [known for known in names() if name.lower() in known.lower()]
    hint = f"; did you mean {', '.join(near[:5])}?" if near else f"; families.names() lists all {len(names())}"
    raise ValueError(f"name must be a released model, got {name!r}{hint}")


def get(name: str) -> Config:
    """The Config of a released model, by its full name or the part after the slash.

    Raises ValueError for an unknown name, and for a system whose shape was not published.
    """
    found = row(name)
    if found.config is None:
        raise ValueError(f"{name} has no Config: {found.note}")
    return found.config


@dataclass(frozen=True)
class Comparison:
    """The formula's count beside the built model's and a published one."""

    name: str
    formula: int
    published: Published | None = None
    built: int | None = None  # None: not asked for, or not a model that decoder.model builds

    @property
    def difference(self) -> int | None:
        """Formula minus published, None where nothing exact was published."""
        if self.published is None or isinstance(self.published.count, str):
            return None
        return self.formula - self.published.count

    def to_json(self) -> dict[str, Any]:
        stated = self.published
        return {
            "name": self.name,
            "formula": self.formula,
            "built": self.built,
            "published": stated and stated.count,
            "difference": self.difference,
            "source": stated and stated.source,
            "why": stated and stated.why,
        }


def comparisons(only: str = "", build: bool = False) -> tuple[Comparison, ...]:
    """Each released model whose name holds ``only`` with each count published for it, or once where none was found.

    ``build`` adds the parameters of the model built on the meta device, where ``decoder.model`` builds its kind.
    """
    found: list[Comparison] = []
    for model in RELEASED:
        if only.lower() in model.name.lower() and model.config is not None:
            total = parameters(model.config).total
            built = _built(model.config) if build else None
            found += [Comparison(model.name, total, published, built) for published in model.published or (None,)]
    return tuple(found)


def _built(config: Config) -> int | None:
    import torch

    from decoder.model import Decoder, parameter_count

    try:
        with torch.device("meta"):
            return parameter_count(Decoder(config))
    except ValueError:  # the kinds of the survey chapters have modules of their own
        return None


@click.command("models")
@click.option("--build", is_flag=True, help="Build each model without memory and count its tensors.")
@click.option("--only", default="", help="Only models whose name holds this.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def models_command(build: bool, only: str, as_json: bool) -> None:
    """Every released model: the formula's count, the published one, the difference and its reason."""
    compared = comparisons(only, build)
    if not compared:
        raise click.UsageError(f"no released model's name holds {only!r}")
    if as_json:
        click.echo(json.dumps([each.to_json() for each in compared], indent=1))
    else:
        _print(compared, build)


def _print(compared: tuple[Comparison, ...], build: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False)
    table.add_column("model", overflow="fold")
    for column in ("formula", *(["built"] if build else []), "published", "difference"):
        table.add_column(column, justify="right")
    for each in compared:
        cells = [f"{each.formula:,}"]
        if build:
            cells.append("-" if each.built is None else "equal" if each.built == each.formula else f"{each.built:,}")
        cells.append("none found" if each.published is None else f"{each.published.count:,}")
        table.add_row(each.name, *cells, "" if each.difference is None else f"{each.difference:+,}")
    console.print(table)
    differing = [
        (each.name, each.difference, each.published) for each in compared if each.difference and each.published
    ]
    for name, difference, published in differing:
        console.print(f"{name} {difference:+,}: {published.why} ({published.source})")
    models = {each.name for each in compared}
    equal = {each.name for each in compared if each.difference == 0}
    unexplained = sum(published.why.endswith("unexplained") for _, _, published in differing)
    console.print(
        f"{len(models)} models; {len(equal)} equal to a published count; {len(differing)} published counts differ, "
        f"{len(differing) - unexplained} for a known reason, {unexplained} unexplained"
    )
    if build:
        tried = {each.name: each.built == each.formula for each in compared if each.built is not None}
        wrong = list(tried.values()).count(False)
        console.print(
            f"{len(tried)} built on the meta device, {wrong} of them different from the formula; "
            f"{len(models) - len(tried)} not built here"
        )
