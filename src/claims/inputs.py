"""What moves each number: every page is run again with one input raised, for each of its inputs.

Inputs are the numeric fields of the dataclasses that ``[tool.claims] inputs`` names, wherever the page constructs one,
and the numeric literals that the page's own blocks assign or pass by keyword. A computed number that no input moves is
hard-coded somewhere, unless it is arithmetic in its own link.

A raised page may break: its assertions are left out, and a statement that raises is passed over. Only another value
counts as a move, not a value that is missing then. So this finds numbers that ignore the inputs; it does not show that
they use them rightly.
"""

from __future__ import annotations

import ast
import builtins
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path, PurePosixPath
from typing import Any

from claims.cache import Cache, environment_salt
from claims.code import UNREADABLE, names_in
from claims.finding import Finding
from claims.page import Claim
from claims.project import Project, ProjectError
from claims.raising import digest
from claims.report import Checked, Report
from claims.session import Code, Evaluation, Expression, Program, Result, Runner, Value, brief
from claims.slices import sliced

NUMBERS = ("int", "fraction", "float", "decimal")


@dataclass(frozen=True)
class Literal:
    """A numeric literal in a block; line and column as ``ast`` counts them."""

    name: str
    block: int
    line: int
    column: int
    value: float


@dataclass(frozen=True)
class Field:
    """A numeric field of a dataclass."""

    name: str  # "Config.layers"
    module: str
    kind: str
    field: str


Input = Field | Literal


@dataclass(frozen=True)
class Answer:
    """What raising gave on a page: for each input a sign for each expression, as ``claims.raising.trace`` has them."""

    inputs: list[Input]
    asked: list[str]
    unchanged: str
    raised: list[str]

    @property
    def traced(self) -> bool:
        """Whether the page, run in this way and unchanged, gives its own values."""
        return set(self.unchanged) <= {"="}

    def moving(self, expression: str) -> tuple[str, ...]:
        """The inputs that move an expression."""
        at = self.asked.index(expression)
        pairs = zip(self.inputs, self.raised, strict=True)
        return tuple(dict.fromkeys(entry.name for entry, signs in pairs if signs[at] == "!"))


@dataclass
class Trace:
    """For each page the inputs that move its claims, one tuple a claim and None where nothing is asked of it."""

    moves: dict[str, list[tuple[str, ...] | None]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    inputs: int = 0
    untraced: int = 0  # computed numbers of pages that do not give the same values again

    @property
    def numbers(self) -> int:
        """How many computed numbers were traced."""
        return sum(names is not None for page in self.moves.values() for names in page)


def trace(report: Report, runner: Runner | None) -> Trace:
    """Trace the pages of a report; one that has findings is left out.

    Without a ``runner`` nothing runs, and a page that was not traced before as it stands now is left out as well.
    Raises ProjectError where processes cannot be forked.
    """
    if runner and not hasattr(os, "fork"):
        raise ProjectError("raising inputs takes a system that can fork processes")
    tracing = _Tracing(report.project, runner)
    fields = [entry for name in report.project.inputs for entry in tracing.fields(name)]
    found = Trace()
    pages = [page for page in report.pages if not page.findings and _asked(page)]
    pages.sort(key=lambda page: -page.result.seconds)  # the longest first, so that no core idles at the end
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for page, answer in zip(pages, pool.map(lambda page: tracing.page(page, fields), pages), strict=True):
            if answer:
                _take(found, page, answer)
    found.findings.sort()
    return found


# --- what is recorded -------------------------------------------------------------------------------------------------


def record(report: Report, found: Trace) -> None:
    """Keep what moves each number in the project's ``moves`` file, so that every build of a commit shows the same."""
    path = report.project.root / report.project.moves
    kept = {name: entry for name, entry in _kept(path).items() if (report.project.root / name).is_file()}
    for page in report.pages:
        if page.path in found.moves:
            moves = [names and list(names) for names in found.moves[page.path]]
            kept[page.path] = {"of": _fingerprint(report, page), "moves": moves}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(dict(sorted(kept.items())), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise ProjectError(f"{path}: {error.strerror}") from None


def recorded(report: Report) -> dict[str, list[list[str]]]:
    """For each page, what moves each of its claims; without the pages that changed, or whose files did, since then."""
    kept = _kept(report.project.root / report.project.moves)
    pages = [page for page in report.pages if page.path in kept]
    return {
        page.path: [names or [] for names in kept[page.path]["moves"]]
        for page in pages
        if kept[page.path]["of"] == _fingerprint(report, page)
        and len(kept[page.path]["moves"]) == len(page.page.claims)
    }


def _kept(path: Path) -> dict[str, dict[str, Any]]:
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        return {name: entry for name, entry in entries.items() if {"of", "moves"} <= entry.keys()}
    except (OSError, ValueError, AttributeError):
        return {}


def _fingerprint(report: Report, page: Checked) -> str:
    return Cache(report.project.root, report.project.root, "").fingerprint(page.program, page.result.files)


def _asked(page: Checked) -> dict[str, Value]:
    """The expressions that are traced, with their values."""
    pairs = zip(page.page.claims, page.evaluations, strict=True)
    return {claim.expression: found.value for claim, found in pairs if found.value and _computed(claim, found)}


def _take(found: Trace, page: Checked, answer: Answer) -> None:
    found.inputs += len(answer.inputs)
    moves: list[tuple[str, ...] | None] = []
    found.moves[page.path] = moves
    own = _modules(page)
    waivers = {waiver.text: waiver for waiver in page.page.waivers if waiver.kind == "constant"}
    unused = dict(waivers)
    for claim, evaluation in zip(page.page.claims, page.evaluations, strict=True):
        if not _computed(claim, evaluation) or not answer.traced:
            moves.append(None)
            found.untraced += _computed(claim, evaluation)
            continue
        names = answer.moving(claim.expression)
        moves.append(names)
        if names or names_in(claim.expression) <= own:
            continue
        if claim.literal in waivers:
            unused.pop(claim.literal, None)
            continue
        raised = ", ".join(dict.fromkeys(entry.name for entry in answer.inputs)) or "nothing"
        message = f"no input moves {claim.literal}"
        place = page.page.place(claim.start, claim.end)
        notes = [("expression", claim.expression), ("raised", brief(raised))]
        hint = "compute it from the inputs, or say why it is constant in the front matter"
        found.findings.append(Finding.at(place, "constant", message, hint, notes))
    for waiver in unused.values():
        place = page.page.place(waiver.start, waiver.end)
        found.findings.append(Finding.at(place, "unused-waiver", f"no constant {waiver.text} stands on this page"))


def _computed(claim: Claim, evaluation: Evaluation) -> bool:
    """Whether a claim states a number that names give."""
    value = evaluation.value
    return value is not None and _is_number(value) and bool(names_in(claim.expression))


def _is_number(value: Value) -> bool:
    return value.kind in NUMBERS or (value.kind == "tuple" and any(map(_is_number, value.items)))


def _modules(page: Checked) -> frozenset[str]:
    """Names that no input can move: Python's own, and modules that the page imports from outside the repository."""
    folders = {part for path in page.result.files for part in PurePosixPath(path).with_suffix("").parts}
    imported = set()
    for block in page.page.python:
        try:
            nodes = list(ast.walk(ast.parse(block.code)))
        except UNREADABLE:
            continue
        imports = [alias for node in nodes if isinstance(node, ast.Import) for alias in node.names]
        imported |= {
            alias.asname or alias.name.split(".")[0] for alias in imports if alias.name.split(".")[0] not in folders
        }
    return frozenset(imported) | frozenset(dir(builtins))


# --- which inputs there are ------------------------------------------------------------------------------------------


def literals(codes: list[str]) -> list[Literal]:
    """The numeric literals that blocks assign or pass by keyword, outside functions and subscripts."""
    found: dict[tuple[int, int, int], Literal] = {}
    for block, code in enumerate(codes):
        try:
            body = ast.parse(code).body
        except UNREADABLE:
            continue
        for name, node in ((name, node) for statement in body for name, node in _assigned(statement)):
            for part in _shallow(node):
                value = part.value if isinstance(part, ast.Constant) else None
                if isinstance(part, ast.Constant) and isinstance(value, int | float) and not isinstance(value, bool):
                    place = (block, part.lineno, part.col_offset)
                    found.setdefault(place, Literal(name, *place, value))
    return list(found.values())


def _assigned(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """``(name, value)`` of each keyword argument and each assignment, the keywords first since they lie deeper."""
    nodes = list(_shallow(statement))
    for node in nodes:
        if isinstance(node, ast.keyword) and node.arg:
            yield node.arg, node.value
    for node in nodes:
        if isinstance(node, ast.Assign):
            yield from _pairs(node.targets[0], node.value)
        elif isinstance(node, ast.AnnAssign) and node.value:
            yield from _pairs(node.target, node.value)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for one, other in zip(target.elts, value.elts, strict=True):
            yield from _pairs(one, other)
    else:
        yield ast.unparse(target), value


def _shallow(node: ast.AST) -> Iterator[ast.AST]:
    """A node and what is in it, but for functions, classes and subscripts."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda | ast.JoinedStr):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(node, ast.Subscript) and child is node.slice):
            yield from _shallow(child)


def _reached(page: Checked, fields: list[Field]) -> list[Field]:
    """The fields of dataclasses whose module the page loaded."""
    loaded = tuple(path for path in page.result.files if path.endswith(".py"))
    return [entry for entry in fields if any(path.endswith(entry.module.replace(".", "/") + ".py") for path in loaded)]


# --- raising one -----------------------------------------------------------------------------------------------------


class _Tracing:
    def __init__(self, project: Project, runner: Runner | None) -> None:
        self.cache = Cache(project.root / project.cache / "inputs", project.root, environment_salt(project.preload))
        self.runner, self.time_limit = runner, project.time_limit

    def fields(self, name: str) -> list[Field]:
        """The numeric fields of ``module:Class``. Raises ProjectError for a class that is not there."""
        module, _, kind = name.partition(":")
        code = _code("from claims.raising import numeric_fields\n", name)
        asked = Expression(f"numeric_fields({module!r}, {kind!r})", 1)
        result = self._run(Program(f"inputs of {name}", (code,), (asked,)), self.time_limit)
        if result is None:
            return []
        value, failure = result.evaluations[0].value, result.evaluations[0].failure
        if value is None:
            reason = failure.message if failure else "nothing was found"
            raise ProjectError(f"tool.claims.inputs: {name}: {reason}")
        return [Field(f"{kind}.{item.text}", module, kind, item.text) for item in value.items]

    def page(self, page: Checked, fields: list[Field]) -> Answer | None:
        """What each input moves on a page; None where it is not known and may not be found out.

        What the claims rest on is run again, or the whole page where that alone does not give the page's values.
        """
        asked = _asked(page)
        codes = [block.source if block.run else "" for block in page.program.blocks]
        drawing = {block.number for block in page.page.python if block.option("alt")}
        part = sliced(codes, {name for text in asked for name in names_in(text)}, drawing)
        answer: Answer | None = None
        for source in (part, codes):
            inputs: list[Input] = [*_reached(page, fields), *literals(source)]
            program = _program(page, source, asked, inputs, self.time_limit)
            result = self._run(program, self.time_limit * (3 * len(inputs) + 3), page.result.cacheable)
            if result is None:
                return None
            value = result.evaluations[0].value
            signs = [item.text for item in value.items] if value else ["?" * len(asked)]
            answer = Answer(inputs, list(asked), signs[0], signs[1:])
            if answer.traced:
                break
        return answer

    def _run(self, program: Program, time_limit: float, cacheable: bool = True) -> Result | None:
        if (known := self.cache.get(program)) or self.runner is None:
            return known
        result = self.runner.run(program, time_limit)
        self.cache.put(program, replace(result, cacheable=cacheable))  # the copies that it forked are its own
        return result


def _program(
    page: Checked, codes: list[str], asked: dict[str, Value], inputs: list[Input], time_limit: float
) -> Program:
    """One block that runs the page with each of these inputs raised."""
    request = {
        "blocks": [
            [code, page.path, bool(block.raises)] for code, block in zip(codes, page.program.blocks, strict=True)
        ],
        "asked": [[text, digest(value.to_json())] for text, value in asked.items()],
        "fields": [[entry.module, entry.kind, entry.field] for entry in inputs if isinstance(entry, Field)],
        "literals": [
            [entry.block, entry.line, entry.column, [entry.value + 1, entry.value * 2, entry.value - 1]]
            for entry in inputs
            if isinstance(entry, Literal)
        ],
        "time_limit": ceil(time_limit),
    }
    call = f"_claims_raising.trace({json.dumps(request)!r}, globals())"
    block = _code(f"from claims import raising as _claims_raising\n_claims_signs = {call}\n", "inputs")
    return Program(f"{page.path} with its inputs raised", (block,), (Expression("_claims_signs", 1),))


def _code(source: str, name: str) -> Code:
    return Code(source, name, tuple((name, row) for row in range(1, source.count("\n") + 2)), figures=False)
