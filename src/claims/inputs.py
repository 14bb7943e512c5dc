"""What moves each number: every page is run again with one input raised, for each of its inputs.

Inputs are the numeric fields of the dataclasses that ``[tool.claims] inputs`` names, wherever the page constructs one,
and the numeric literals that the page's own blocks assign or pass by keyword. A computed number that no input moves is
hard-coded somewhere, unless it is arithmetic in its own link.

A raised page may break: its assertions are left out, a block that raises is left at that, and an expression that then
has no value counts as depending on the input, since the page would not stand without it. So this finds numbers that
ignore the inputs; it does not show that they use them rightly.
"""

from __future__ import annotations

import ast
import builtins
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from claims.cache import Cache, environment_salt
from claims.code import UNREADABLE, names_in
from claims.finding import Finding
from claims.page import Claim
from claims.project import ProjectError
from claims.report import Checked, Report
from claims.session import Code, Evaluation, Expression, Program, Result, Runner, Value
from claims.slices import sliced

NUMBERS = ("int", "fraction", "float", "decimal")
REFUSED = "claims: no value"  # stands for an expression that cannot be evaluated on a raised page

PRELUDE = f"""
def _claims_value(expression):
    try:
        return expression()
    except Exception:
        return {REFUSED!r}
"""

RAISE = """
def _claims_raise(module, name, field):
    import dataclasses, functools, importlib

    kind = getattr(importlib.import_module(module), name)
    build = kind.__init__
    fields = [entry.name for entry in dataclasses.fields(kind) if entry.init]

    @functools.wraps(build)
    def raised(self, *values, **named):
        build(self, *values, **named)
        stated = getattr(self, field)
        if isinstance(stated, bool) or not isinstance(stated, (int, float)):
            return
        given = dict(zip(fields, values)) | named
        for value in (stated + 1, stated * 2, stated + 2, stated - 1, stated / 2):
            try:
                return build(self, **given | {field: type(stated)(value)})
            except Exception:
                continue
        build(self, **given)

    kind.__init__ = raised
"""

FIELDS = """
def _claims_fields(module, name):
    import dataclasses, importlib, re

    fields = dataclasses.fields(getattr(importlib.import_module(module), name))
    return [field.name for field in fields if field.init and re.search(r"\\b(int|float)\\b", str(field.type))]
"""


@dataclass(frozen=True)
class Literal:
    """A numeric literal in a block: the span of its text in the block's code."""

    name: str
    block: int
    start: int
    end: int
    value: float


@dataclass(frozen=True)
class Field:
    """A numeric field of a dataclass."""

    name: str  # "Config.layers"
    module: str
    kind: str
    field: str


Input = Field | Literal


@dataclass
class Trace:
    """For each page the inputs that move its claims, one tuple a claim and None where nothing is asked of it."""

    moves: dict[str, list[tuple[str, ...] | None]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    inputs: int = 0

    @property
    def numbers(self) -> int:
        """How many computed numbers were traced."""
        return sum(names is not None for page in self.moves.values() for names in page)


def trace(report: Report, runner: Runner | None) -> Trace:
    """Trace the pages of a report; one that has findings is left out.

    Without a ``runner`` nothing runs, and a page that was not traced before as it stands now is left out as well.
    """
    project = report.project
    cache = Cache(project.root / project.cache / "inputs", project.root, environment_salt(project.preload))
    tracing = _Tracing(cache, runner)
    fields = [entry for name in project.inputs for entry in tracing.fields(name)]
    found = Trace()
    pages = [page for page in report.pages if not page.findings and _asked(page)]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        bases = list(pool.map(tracing.base, pages))
        tasks = []
        for page, base in zip(pages, bases, strict=True):
            inputs: list[Input] = [*_reached(page, fields), *literals(base)]
            tasks.append((page, inputs, [pool.submit(tracing.moved, page, base, entry) for entry in inputs]))
        for page, inputs, answers in tasks:
            moved = [answer.result() for answer in answers]
            if None not in moved:
                _take(found, page, inputs, [names or frozenset() for names in moved])
    found.findings.sort()
    return found


def _asked(page: Checked) -> dict[str, Value]:
    """The expressions that are traced, with their values."""
    pairs = zip(page.page.claims, page.evaluations, strict=True)
    return {claim.expression: found.value for claim, found in pairs if found.value and _computed(claim, found)}


def _take(found: Trace, page: Checked, inputs: list[Input], moved: list[frozenset[str]]) -> None:
    found.inputs += len(inputs)
    moves: list[tuple[str, ...] | None] = []
    found.moves[page.path] = moves
    own = _modules(page)
    waivers = {waiver.text: waiver for waiver in page.page.waivers if waiver.kind == "constant"}
    unused = dict(waivers)
    for claim, evaluation in zip(page.page.claims, page.evaluations, strict=True):
        if not _computed(claim, evaluation):
            moves.append(None)
            continue
        names = dict.fromkeys(entry.name for entry, hit in zip(inputs, moved, strict=True) if claim.expression in hit)
        moves.append(tuple(names))
        if names or names_in(claim.expression) <= own:
            continue
        if claim.literal in waivers:
            unused.pop(claim.literal, None)
            continue
        raised = ", ".join(dict.fromkeys(entry.name for entry in inputs)) or "nothing"
        message = f"no input moves {claim.literal}"
        place = page.page.place(claim.start, claim.end)
        notes = [("expression", claim.expression), ("raised", raised)]
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
    found: dict[tuple[int, int], Literal] = {}
    for block, code in enumerate(codes):
        try:
            body = ast.parse(code).body
        except UNREADABLE:
            continue
        rows = code.split("\n")
        for name, node in ((name, node) for statement in body for name, node in _assigned(statement)):
            for part in _shallow(node):
                value = part.value if isinstance(part, ast.Constant) else None
                if isinstance(part, ast.Constant) and isinstance(value, int | float) and not isinstance(value, bool):
                    start = _offset(rows, part.lineno, part.col_offset)
                    end = _offset(rows, part.end_lineno or part.lineno, part.end_col_offset or 0)
                    found.setdefault((block, start), Literal(name, block, start, end, value))
    return list(found.values())


def _offset(rows: list[str], line: int, column: int) -> int:
    """Where in the code a node stands whose column counts bytes."""
    return sum(len(row) + 1 for row in rows[: line - 1]) + len(rows[line - 1].encode()[:column].decode(errors="ignore"))


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
    def __init__(self, cache: Cache, runner: Runner | None) -> None:
        self.cache, self.runner = cache, runner

    def fields(self, name: str) -> list[Field]:
        """The numeric fields of ``module:Class``. Raises ProjectError for a class that is not there."""
        module, _, kind = name.partition(":")
        asked = Expression(f"_claims_fields({module!r}, {kind!r})", 1)
        result = self._run(Program(f"inputs of {name}", (_code(FIELDS, name),), (asked,)))
        if result is None:
            return []
        value, failure = result.evaluations[0].value, result.evaluations[0].failure
        if value is None:
            reason = failure.message if failure else "nothing was found"
            raise ProjectError(f"tool.claims.inputs: {name}: {reason}")
        return [Field(f"{kind}.{item.text}", module, kind, item.text) for item in value.items]

    def base(self, page: Checked) -> list[str]:
        """The blocks to raise inputs in: what the claims rest on, or all if that gives other values than the page."""
        asked = _asked(page)
        codes = [block.source if block.run else "" for block in page.program.blocks]
        drawing = {block.number for block in page.page.python if block.option("alt")}
        part = sliced(codes, {name for text in asked for name in names_in(text)}, drawing)
        values = self._values(_program(page, PRELUDE, part, "nothing"), asked)
        return part if values == asked else codes

    def moved(self, page: Checked, base: list[str], entry: Input) -> frozenset[str] | None:
        """The expressions whose value is another when this input is raised; None where it is not known."""
        asked = _asked(page)
        best: frozenset[str] | None = None
        fewest = len(asked) + 1
        for program in _raised(page, base, entry):
            values = self._values(program, asked)
            if values is None:
                return None
            refused = sum(value is None or value.text == REFUSED for value in values.values())
            if refused < fewest:
                fewest = refused
                best = frozenset(text for text, value in values.items() if value != asked[text])
            if not refused:
                break
        return best

    def _values(self, program: Program, asked: dict[str, Value]) -> dict[str, Value | None] | None:
        result = self._run(program)
        if result is None:
            return None
        return dict(zip(asked, (found.value for found in result.evaluations), strict=False))

    def _run(self, program: Program) -> Result | None:
        if (known := self.cache.get(program)) or self.runner is None:
            return known
        result = self.runner.run(program)
        self.cache.put(program, result)
        return result


def _raised(page: Checked, base: list[str], entry: Input) -> Iterator[Program]:
    """The page's program with the input raised: by one, and where that may break the page, in other ways."""
    if isinstance(entry, Field):
        call = f"_claims_raise({entry.module!r}, {entry.kind!r}, {entry.field!r})\n"
        yield _program(page, f"{PRELUDE}{RAISE}{call}", base, entry.name)
        return
    for value in (entry.value + 1, entry.value * 2, entry.value - 1):
        source = base[entry.block]
        changed = f"{source[: entry.start]}({value!r}){source[entry.end :]}"
        codes = [*base[: entry.block], changed, *base[entry.block + 1 :]]
        yield _program(page, PRELUDE, codes, f"{entry.name} {entry.block}:{entry.start} {value!r}")


def _program(page: Checked, prelude: str, codes: list[str], name: str) -> Program:
    """A program that goes on after a block has raised, and answers every expression."""
    blocks = [_code(prelude, "inputs")]
    for code in codes:
        if code.strip():
            source = _without_assertions(code)
            source = f"import contextlib\nwith contextlib.suppress(BaseException):\n    exec({source!r})\n"
            blocks.append(_code(source, page.path))
    asked = tuple(Expression(f"_claims_value(lambda: (\n{text}\n))", len(blocks)) for text in _asked(page))
    return Program(f"{page.path} with {name}", tuple(blocks), asked)


def _without_assertions(source: str) -> str:
    try:
        nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assert)]
    except UNREADABLE:
        return source
    rows = source.encode().split(b"\n")
    for node in sorted(nodes, key=lambda node: -node.lineno):
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        rows[first : last + 1] = [rows[first][: node.col_offset] + b"pass" + rows[last][node.end_col_offset :]]
    return b"\n".join(rows).decode()


def _code(source: str, name: str) -> Code:
    return Code(source, name, tuple((name, row) for row in range(1, source.count("\n") + 2)), figures=False)
