"""Read a plan of an ablation from TOML.

`load_plan` reads a file whole, sizes every variant, and refuses anything that it would have to guess, in one line that
names the file, the key, the value and the rule.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterator
from dataclasses import MISSING, fields, replace
from importlib import resources
from pathlib import Path
from typing import Any, get_args, get_type_hints

from decoder.ablate.plan import (
    PER_VARIANT,
    TOLERANCE,
    Budget,
    Data,
    Measurement,
    Plan,
    PlanError,
    Training,
    Variant,
    unequal,
)  # fmt: skip
from decoder.budget import parameters
from decoder.config import Config
from decoder.solve import width_for


def built_in_plans() -> dict[str, Path]:
    """The plans that come with the decoder, by name."""
    folder = Path(str(resources.files("decoder.ablate"))) / "plans"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def find_plan(name: str) -> Path:
    """The file that ``name`` means: a path, or a built-in plan as ``smoke`` or ``plans/smoke.toml``."""
    path = Path(name)
    if path.is_file():
        return path
    known = built_in_plans()
    if path.stem in known and str(path.parent) in (".", "plans") and path.suffix in ("", ".toml"):
        return known[path.stem]
    raise PlanError(f"{name}: plan must be a file or one of {', '.join(known)}")


def load_plan(path: Path) -> Plan:
    """Read, size and check the plan at ``path``. Raises PlanError."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PlanError(f"{path}: plan cannot be read, {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PlanError(f"{path}: plan must be TOML, {error}") from None
    try:
        return _plan(path, document)
    except PlanError as error:
        raise PlanError(f"{path}: {error}") from None


def _plan(path: Path, document: dict[str, Any]) -> Plan:
    known = ("question", "seeds", "base", "variants", "data", "training", "measurement", "budget")
    _known_keys("", document, known)
    question = document.get("question")
    if not isinstance(question, str) or not question.strip():
        raise PlanError(f"question must be a sentence, got {question!r}")
    seeds = document.get("seeds")
    if not isinstance(seeds, list) or not seeds or not all(_is_whole(seed) and seed >= 0 for seed in seeds):
        raise PlanError(f"seeds must be a list of whole numbers from 0, got {seeds!r}")
    if len(set(seeds)) != len(seeds):
        raise PlanError(f"seeds must differ from each other, got {seeds!r}")
    data = _table(Data, "data", document)
    training = _table(Training, "training", document)
    measurement = _table(Measurement, "measurement", document)
    budget = _table(Budget, "budget", document)
    _check_data(data)
    _check_training("training", training)
    _check_measurement(measurement, training)
    if budget.allow_unequal and not budget.reason.strip():
        raise PlanError("budget.reason must say why budgets may be unequal where budget.allow_unequal is true, got ''")
    variants = tuple(_variants(document, training, budget))
    canonical = json.dumps(document, sort_keys=True).encode()
    digest = hashlib.sha256(canonical).hexdigest()
    plan = Plan(path.stem, path, question, tuple(seeds), data, training, measurement, budget, variants, digest)
    _check_budget(plan)
    return plan


def _variants(document: dict[str, Any], training: Training, budget: Budget) -> Iterator[Variant]:
    base = document.get("base")
    if not isinstance(base, dict):
        raise PlanError(f"base must be a table of Config's fields, got {base!r}")
    tables = document.get("variants")
    if not isinstance(tables, list) or len(tables) < 2 or not all(isinstance(table, dict) for table in tables):
        raise PlanError(f"variants must be two tables or more, got {tables!r}")
    names = [table.get("name") for table in tables]
    for i, table in enumerate(tables):
        name = names[i]
        if not isinstance(name, str) or not name.strip() or name in names[:i]:
            raise PlanError(f"variants[{i}].name must be a name of its own, got {name!r}")
        where = f"variants.{name}"
        _known_keys(where, table, ("name", "changes", "training", "against", "solve_ffn_ratio", "seed_offset"))
        changes = table.get("changes", {})
        if not isinstance(changes, dict):
            raise PlanError(f"{where}.changes must be a table of Config's fields, got {changes!r}")
        config = _config(where, base | changes)
        if "solve_ffn_ratio" in table:
            config = _solve(where, config, table["solve_ffn_ratio"], budget)
        if config.context < training.sequence:
            raise PlanError(f"{where}: context must be at least training.sequence {training.sequence}, "
                            f"got {config.context}")  # fmt: skip
        if config.vocab < 256:
            raise PlanError(f"{where}: vocab must be at least 256 for bytes, got {config.vocab}")
        trained = table.get("training", {})
        if not isinstance(trained, dict):
            raise PlanError(f"{where}.training must be a table, got {trained!r}")
        _known_keys(f"{where}.training", trained, PER_VARIANT)
        own = replace(training, **_typed(Training, f"{where}.training", trained))
        _check_training(f"{where}.training", own)
        against = table.get("against", names[0] if i else "")
        if against != "" and (against == name or against not in names):
            raise PlanError(f"{where}.against must name another variant or be empty, got {against!r}")
        offset = table.get("seed_offset", 0)
        if not _is_whole(offset) or offset < 0:
            raise PlanError(f"{where}.seed_offset must be a whole number from 0, got {offset!r}")
        yield Variant(name, config, own, against or None, offset)


def _config(where: str, values: dict[str, Any]) -> Config:
    simple = [item.name for item in fields(Config) if item.name not in ("rope_scaling", "latent", "experts")]
    for key in values:
        if key not in simple:
            raise PlanError(f"{where}: {key} must be a field of Config that is a number, a name or a list")
    given: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    try:
        return Config(**given)
    except ValueError as error:
        raise PlanError(f"{where}: {error}") from None


def _solve(where: str, config: Config, ratio: object, budget: Budget) -> Config:
    """Size ``config`` for ``budget.total``: a legal width at this depth and ratio, and hidden takes up what is left."""
    if not isinstance(ratio, int | float) or isinstance(ratio, bool) or ratio <= 0:
        raise PlanError(f"{where}.solve_ffn_ratio must be a number above 0, got {ratio!r}")
    if budget.total is None:
        raise PlanError(f"budget.total must be given where a variant is solved, as {where} is, got none")
    try:
        sized = width_for(config, budget.total, keep="heads", ffn_ratio=ratio).config
    except ValueError as error:
        raise PlanError(f"{where}: {error}") from None
    one, two = (parameters(sized.replace(hidden=hidden)).total for hidden in (1, 2))
    return sized.replace(hidden=max(1, 1 + round((budget.total - one) / (two - one))))


def _check_data(data: Data) -> None:
    for key in ("train", "held_out"):
        names = getattr(data, key)
        if not names or not all(isinstance(name, str) for name in names):
            raise PlanError(f"data.{key} must be a list of file names, got {list(names)!r}")
    both = sorted(set(data.train) & set(data.held_out))
    if both:
        raise PlanError(f"data.held_out must hold no file of data.train, got {both[0]!r}")


def _check_training(where: str, training: Training) -> None:
    for key in ("tokens", "batch", "sequence", "threads"):
        if getattr(training, key) < 1:
            raise PlanError(f"{where}.{key} must be at least 1, got {getattr(training, key)}")
    if training.tokens % (training.batch * training.sequence):
        raise PlanError(
            f"{where}.tokens must be a multiple of batch x sequence = {training.batch * training.sequence}, "
            f"got {training.tokens}"
        )
    for key in ("learning_rate", "clip"):
        if not 0 < getattr(training, key) < float("inf"):
            raise PlanError(f"{where}.{key} must be finite and above 0, got {getattr(training, key)!r}")
    for key in ("weight_decay", "z_weight"):
        if not 0 <= getattr(training, key) < float("inf"):
            raise PlanError(f"{where}.{key} must be finite and from 0, got {getattr(training, key)!r}")
    if not 0 <= training.final_fraction <= 1:
        raise PlanError(f"{where}.final_fraction must be from 0 to 1, got {training.final_fraction!r}")
    if not 0 <= training.warmup_steps < training.steps:
        raise PlanError(f"{where}.warmup_steps must be from 0 to {training.steps - 1}, got {training.warmup_steps}")


def _check_measurement(measurement: Measurement, training: Training) -> None:
    for key, least, most in (
        ("evaluations", 1, training.steps),
        ("held_out_tokens", training.sequence, 2**40),
        ("untimed_steps", 0, training.steps - 1),
        ("checkpoint_steps", 1, 2**40),
    ):
        value = getattr(measurement, key)
        if not least <= value <= most:
            raise PlanError(f"measurement.{key} must be from {least} to {most}, got {value}")
    if measurement.held_out_tokens % training.sequence:
        raise PlanError(
            f"measurement.held_out_tokens must be a multiple of training.sequence {training.sequence}, "
            f"got {measurement.held_out_tokens}"
        )


def _check_budget(plan: Plan) -> None:
    if plan.budget.rule == "tokens" or plan.budget.allow_unequal:
        return
    for variant, against in plan.comparisons:
        part = unequal(variant, against)[plan.budget.rule]
        if abs(part) > TOLERANCE:
            raise PlanError(
                f"variants.{variant.name}: {plan.budget.rule} must be within {TOLERANCE:.0%} of {against.name!r} "
                f"({getattr(against, plan.budget.rule):,}), got {getattr(variant, plan.budget.rule):,} ({part:+.1%}); "
                "say budget.allow_unequal = true and a budget.reason to run it all the same"
            )


def _table(kind: type, name: str, document: dict[str, Any]) -> Any:
    table = document.get(name, {})
    if not isinstance(table, dict):
        raise PlanError(f"{name} must be a table, got {table!r}")
    _known_keys(name, table, tuple(item.name for item in fields(kind)))
    for item in fields(kind):
        if item.default is MISSING and item.name not in table:
            raise PlanError(f"{name}.{item.name} must be given, got nothing")
    return kind(**_typed(kind, name, table))


def _typed(kind: type, name: str, table: dict[str, Any]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {key: _as(hints[key], f"{name}.{key}", value) for key, value in table.items()}


def _as(kind: Any, where: str, value: object) -> Any:
    choices = get_args(kind)
    if kind == tuple[str, ...]:
        if not isinstance(value, list):
            raise PlanError(f"{where} must be a list, got {value!r}")
        return tuple(value)
    if choices and all(isinstance(choice, str) for choice in choices):
        if value not in choices:
            raise PlanError(f"{where} must be one of {', '.join(map(repr, choices))}, got {value!r}")
        return value
    if kind is float and _is_whole(value):
        return float(value)  # type: ignore[arg-type]
    if kind in (int, int | None) and not _is_whole(value):
        raise PlanError(f"{where} must be a whole number, got {value!r}")
    for plain, word in ((float, "a number"), (bool, "true or false"), (str, "text")):
        if kind is plain and not isinstance(value, plain):
            raise PlanError(f"{where} must be {word}, got {value!r}")
    return value


def _known_keys(where: str, table: dict[str, Any], known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            raise PlanError(f"{where + '.' if where else ''}{key} must be one of {', '.join(known)}")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
