"""What moves each number: every page is run again with one input raised, for each of its inputs.

Inputs are the numeric fields of the dataclasses that ``[tool.claims] inputs`` names, wherever the page constructs one,
the numeric literals that the page's own blocks assign or pass by keyword, and the numbers in the JSON that they read,
as one input. A computed number that no input moves is hard-coded somewhere, unless it is arithmetic in its own link.

A raised page may break: its assertions are left out, and a statement that raises is passed over. Only another value
counts as a move, not a value that is missing then. So this finds numbers that ignore the inputs; it does not show that
they use them rightly.
"""

from __future__ import annotations

import ast
import builtins
import json
import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

from claims import whole_file
from claims.cache import Cache, environment_salt
from claims.code import UNREADABLE, names_in
from claims.finding import Finding
from claims.inputs.rerun import digest
from claims.page import Claim
from claims.project import Project, ProjectError
from claims.report import Checked, Report
from claims.results import Code, Evaluation, Expression, Program, Value, brief
from claims.session import Runner

NUMBERS = ("int", "fraction", "float", "decimal")
PATIENCE = (8.0, 150.0)  # seconds of a processor for a page, to know all that moves a number, and to know anything


@dataclass(frozen=True)
class Moves:
    """The inputs that move a number.

    ``open`` says that others may and were not raised, since that takes too long; ``steady`` that the number is the same
    when its page runs again, without which nothing can be said of it.
    """

    names: tuple[str, ...] = ()
    open: bool = False
    steady: bool = True

    def __str__(self) -> str:
        if self.names:
            return ", ".join(self.names) + (", and more that was not tried" if self.open else "")
        return "not found out" if self.open or not self.steady else ""

    def to_json(self) -> list[str | None] | None:
        return [*self.names, *([None] if self.open else [])] if self.steady else None

    @classmethod
    def from_json(cls, data: list[str | None] | None) -> Moves:
        names = tuple(name for name in data or () if name is not None)
        return cls(names, None in (data or ()), data is not None)


@dataclass(frozen=True)
class Answer:
    """What raising gave on a page: the inputs, and what moves each expression that was asked."""

    inputs: tuple[str, ...]
    moves: dict[str, Moves]

    def to_json(self) -> dict[str, Any]:
        moves = {text: moves.to_json() for text, moves in self.moves.items()}
        return {"inputs": list(self.inputs), "moves": moves}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Answer:
        moves = {text: Moves.from_json(names) for text, names in data["moves"].items()}
        return cls(tuple(data["inputs"]), moves)


@dataclass
class Trace:
    """For each page what moves its numbers, and the findings."""

    answers: dict[str, Answer] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    recorded: int = 0  # pages that had not changed since they were recorded

    @property
    def numbers(self) -> int:
        """How many expressions were traced."""
        return sum(len(answer.moves) for answer in self.answers.values())

    @property
    def inputs(self) -> int:
        return sum(len(answer.inputs) for answer in self.answers.values())


def trace(report: Report, runner: Runner, cold: bool = False, patience: tuple[float, float] = PATIENCE) -> Trace:
    """Trace the pages of a report; one that has findings is left out.

    A page that is as it was when it was recorded is not run again, unless ``cold``. ``patience`` holds the seconds of a
    processor that a page may take to learn all that moves its numbers, and to learn of one thing that does.

    Raises ProjectError where processes cannot be forked.
    """
    if not hasattr(os, "fork"):
        raise ProjectError("raising inputs takes a system that can fork processes")
    tracing = _Tracing(report.project, runner, patience)
    fields = [tracing.fields(name) for name in report.project.inputs]
    known = {} if cold else {page.path: answer for page, answer in _recorded(report) if _enough(page, answer)}
    pages = [page for page in report.pages if not page.findings and _asked(page)]
    pages.sort(key=lambda page: -page.result.seconds)  # the longest first, so that no core idles at the end
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        answers = list(pool.map(lambda page: known.get(page.path) or tracing.page(page, fields, cold), pages))
    found = Trace({page.path: answer for page, answer in zip(pages, answers, strict=True)})
    found.recorded = sum(page.path in known for page in pages)
    found.findings = sorted(finding for page in pages for finding in _judge(page, found.answers[page.path]))
    return found


# --- what is recorded -------------------------------------------------------------------------------------------------


def record(report: Report, found: Trace) -> None:
    """Keep what moves each number in the project's ``moves`` file, so that every build of a commit shows the same.

    Raises ProjectError where it cannot be written.
    """
    path = report.project.root / report.project.moves
    kept = {name: entry for name, entry in _kept(report.project).items() if (report.project.root / name).is_file()}
    for page in report.pages:
        if page.path in found.answers:
            kept[page.path] = {"of": _fingerprint(report.project, page), **found.answers[page.path].to_json()}
    text = json.dumps(
        {"inputs": report.project.inputs, "pages": dict(sorted(kept.items()))}, indent=1, ensure_ascii=False
    )
    text = re.sub(r"\[[^\[\]{}]*\]", lambda found: re.sub(r"\n *", " ", found[0]), text)  # a list is one line
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        whole_file.write(path, f"{text}\n".encode())
    except OSError as error:
        raise ProjectError(f"{path}: {error.strerror}") from None


def recorded(report: Report) -> dict[str, Answer]:
    """What was recorded of each page; without the pages that changed, or whose files did, since then."""
    return {page.path: answer for page, answer in _recorded(report)}


def _recorded(report: Report) -> Iterator[tuple[Checked, Answer]]:
    kept = _kept(report.project)
    for page in report.pages:
        if page.path in kept and kept[page.path]["of"] == _fingerprint(report.project, page):
            yield page, Answer.from_json(kept[page.path])


def _enough(page: Checked, answer: Answer) -> bool:
    """Whether no number was given up that was named a constant then and is none now."""
    given_up = {text for text, moves in answer.moves.items() if moves.open and not moves.names}
    return given_up <= _constant(page)


def _kept(project: Project) -> dict[str, dict[str, Any]]:
    try:
        entries = json.loads((project.root / project.moves).read_text(encoding="utf-8"))
        pages = entries["pages"] if entries["inputs"] == list(project.inputs) else {}
        return {name: entry for name, entry in pages.items() if {"of", "inputs", "moves"} <= entry.keys()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def _fingerprint(project: Project, page: Checked) -> str:
    """Names what a page runs and asks and the files that it opened, wherever in the page it stands."""
    blocks = tuple(replace(block, lines=()) for block in page.program.blocks)
    asked = tuple(Expression(text, 0) for text in _asked(page))
    return Cache(project.root, project.root, "").fingerprint(Program(page.path, blocks, asked), page.result.files)


# --- what is asked of a page ------------------------------------------------------------------------------------------


def _asked(page: Checked) -> dict[str, Value]:
    """The expressions that are traced, with their values."""
    pairs = zip(page.page.claims, page.evaluations, strict=True)
    return {claim.expression: found.value for claim, found in pairs if found.value and _computed(claim, found)}


def _computed(claim: Claim, evaluation: Evaluation) -> bool:
    """Whether a claim states a number that names give."""
    value = evaluation.value
    return value is not None and _is_number(value) and bool(names_in(claim.expression))


def _is_number(value: Value) -> bool:
    return value.kind in NUMBERS or (value.kind == "tuple" and any(map(_is_number, value.items)))


def _constant(page: Checked) -> set[str]:
    """The expressions that need no input to move them: named as constants, or made of nothing that could be moved."""
    own = _modules(page)
    named = {waiver.text for waiver in page.page.waivers if waiver.kind == "constant"}
    return {
        claim.expression for claim in page.page.claims if claim.literal in named or names_in(claim.expression) <= own
    }


def _judge(page: Checked, answer: Answer) -> Iterator[Finding]:
    own = _modules(page)
    waivers = {waiver.text: waiver for waiver in page.page.waivers if waiver.kind == "constant"}
    unused = dict(waivers)
    for claim in page.page.claims:
        moves = answer.moves.get(claim.expression)
        if moves is None or moves.names or names_in(claim.expression) <= own:
            continue
        if claim.literal in waivers:
            unused.pop(claim.literal, None)
            continue
        if not moves.steady:
            message = f"nothing can move {claim.literal}, another run of the page gives another number"
        elif moves.open:
            message = f"whether an input moves {claim.literal} was not found out in the time allowed"
        else:
            message = f"no input moves {claim.literal}"
        place = page.page.place(claim.start, claim.end)
        notes = [("expression", claim.expression), ("raised", brief(", ".join(answer.inputs) or "nothing"))]
        hint = "compute it from the inputs, or say why it is constant in the front matter"
        yield Finding.at(place, "constant", message, hint, notes)
    for waiver in unused.values():
        place = page.page.place(waiver.start, waiver.end)
        yield Finding.at(place, "unused-waiver", f"no constant {waiver.text} stands on this page")


def _modules(page: Checked) -> frozenset[str]:
    """Names that no input can move: Python's own, and what the page imports from outside the repository."""
    folders = {part for path in page.result.files for part in PurePosixPath(path).with_suffix("").parts}
    imported: set[tuple[str, str]] = set()
    for block in page.page.python:
        try:
            nodes = list(ast.walk(ast.parse(block.code)))
        except UNREADABLE:
            continue
        for node in nodes:
            if isinstance(node, ast.Import):
                imported |= {(alias.asname or alias.name.split(".")[0], alias.name) for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                imported |= {(alias.asname or alias.name, node.module) for alias in node.names}
    outside = {name for name, module in imported if module.split(".")[0] not in folders}
    return frozenset(outside) | frozenset(dir(builtins))


# --- raising ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Fields:
    """The numeric fields of a dataclass."""

    module: str
    kind: str
    names: tuple[str, ...]

    def loaded(self, page: Checked) -> bool:
        """Whether the page loaded the module."""
        return any(path.endswith(self.module.replace(".", "/") + ".py") for path in page.result.files)


class _Tracing:
    def __init__(self, project: Project, runner: Runner, patience: tuple[float, float]) -> None:
        self.project, self.runner, self.patience = project, runner, patience
        self.cache = Cache(project.root / project.cache / "inputs", project.root, environment_salt(project.preload))

    def fields(self, name: str) -> _Fields:
        """The numeric fields of ``module:Class``. Raises ProjectError for a class that is not there."""
        module, _, kind = name.partition(":")
        code = _code("from claims.inputs.fields import numeric_fields\n", name)
        asked = Expression(f"numeric_fields({module!r}, {kind!r})", 1)
        result = self.runner.run(Program(f"inputs of {name}", (code,), (asked,)))
        value, failure = result.evaluations[0].value, result.evaluations[0].failure
        if value is None:
            reason = failure.message if failure else "nothing was found"
            raise ProjectError(f"tool.claims.inputs: {name}: {reason}")
        return _Fields(module, kind, tuple(item.text for item in value.items))

    def page(self, page: Checked, fields: list[_Fields], cold: bool) -> Answer:
        """What each input moves on a page."""
        asked = _asked(page)
        program = self._program(page, asked, [entry for entry in fields if entry.loaded(page)])
        result = None if cold else self.cache.get(program)
        if result is None:
            result = self.runner.run(program, 10 * sum(self.patience) + 60)  # it may share its processor
            kept = replace(result, cacheable=page.result.cacheable)  # the copies it forked are its own
            self.cache.put(program, kept)
        if value := result.evaluations[0].value:
            data = json.loads(value.text)
            moves = map(Moves.from_json, data["moves"])
            return Answer(tuple(data["inputs"]), dict(zip(asked, moves, strict=True)))
        return Answer((), dict.fromkeys(asked, Moves(open=True)))

    def _program(self, page: Checked, asked: dict[str, Value], fields: list[_Fields]) -> Program:
        """One block that runs the page with each of its inputs raised."""
        drawing = {block.number for block in page.page.python if block.option("alt")}
        constant = _constant(page)
        request = {
            "of": _fingerprint(self.project, page),
            "blocks": [
                [block.source if block.run else "", page.path, bool(block.raises), index in drawing]
                for index, block in enumerate(page.program.blocks)
            ],
            "asked": [[text, digest(value.to_json()), text in constant] for text, value in asked.items()],
            "fields": [[entry.module, entry.kind, entry.names] for entry in fields],
            "time_limit": self.project.time_limit,
            "patience": self.patience,
        }
        call = f"_claims_raising.trace({json.dumps(request)!r}, globals())"
        block = _code(f"from claims.inputs import raising as _claims_raising\n_claims_moves = {call}\n", "inputs")
        return Program(f"{page.path} with its inputs raised", (block,), (Expression("_claims_moves", 1),))


def _code(source: str, name: str) -> Code:
    return Code(source, name, tuple((name, row) for row in range(1, source.count("\n") + 2)), figures=False)
