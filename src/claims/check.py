"""Pages to findings: parse each page, run it, compare what it says with what it gives.

``check`` is the one door: the command line, the Markdown extension, the MkDocs plugin and the tests call it.
"""

from __future__ import annotations

import ast
import builtins
import os
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from claims import facts as recorded
from claims import literal
from claims.cache import Cache, environment_salt
from claims.equations import identical, shown_tex, symbolic, unbound_macro
from claims.facts import Facts
from claims.finding import Finding
from claims.lexicon import Lexicon
from claims.literal import Disagreement
from claims.mathml import MathError, to_mathml
from claims.page import Block, Citation, Claim, Loose, Page, parse, read
from claims.project import Project
from claims.session import BlockResult, Code, Evaluation, Expression, Failure, Program, Result, Runner, Value
from claims.source import Place, from_text


@dataclass
class Checked:
    """A page with what running it gave. ``evaluations`` and ``verdicts`` run beside ``page.claims``."""

    page: Page
    program: Program
    result: Result
    evaluations: list[Evaluation] = field(default_factory=list)
    verdicts: list[Disagreement | None] = field(default_factory=list)
    citations: list[Disagreement | None] = field(default_factory=list)  # beside page.citations
    findings: list[Finding] = field(default_factory=list)
    cached: bool = False

    @property
    def path(self) -> str:
        return self.page.path

    def block(self, block: Block) -> BlockResult | None:
        return self.result.blocks[block.number] if 0 <= block.number < len(self.result.blocks) else None

    @property
    def figures(self) -> int:
        return sum(len(block.figures) for block in self.result.blocks)


@dataclass
class Report:
    """All pages of one run, all findings, sorted."""

    project: Project
    facts: Facts
    pages: list[Checked]
    findings: list[Finding]

    @property
    def counts(self) -> dict[str, int]:
        pages = self.pages
        return {
            "pages": len(pages),
            "claims": sum(len(page.page.claims) for page in pages),
            "citations": sum(len(page.page.citations) for page in pages),
            "blocks": sum(len(page.page.python) for page in pages),
            "figures": sum(page.figures for page in pages),
            "waived": sum(len(page.page.waivers) for page in pages),
        }

    def to_json(self) -> dict[str, object]:
        return {"findings": [finding.to_json() for finding in self.findings], "counts": self.counts}


def check(
    project: Project,
    paths: Iterable[str | Path] = (),
    *,
    cold: bool | None = None,
    runner: Runner | None = None,
    progress: Callable[[Checked], None] | None = None,
) -> Report:
    """Check the pages at ``paths``, or all pages.

    ``cold`` ignores the cache (by default where the variable CI is ``true``). What no page uses is reported only when all pages are checked.
    Raises ProjectError when the project cannot be checked at all.
    """
    names = project.pages(paths)
    lexicon = project.words
    facts = recorded.load(project.root, project.facts, project.bibliography)
    cold = os.environ.get("CI", "").lower() == "true" if cold is None else cold
    cache = Cache(project.root / project.cache, project.root, environment_salt(project.preload))
    own = runner is None
    with Runner(project.root, project.preload, project.time_limit) if own else nullcontext(runner) as running:

        def one(name: str) -> Checked:
            checked = _run(read(project.root, name, lexicon), running, None if cold else cache, cache)
            judge(checked, facts, lexicon)
            if progress:
                progress(checked)
            return checked

        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            pages = list(pool.map(one, names))
    findings = [finding for page in pages for finding in page.findings]
    findings += [Finding(t.path, t.line, 1, 1, t.slug, t.message) for t in facts.troubles]
    if not list(paths):
        findings += _unused(pages, facts)
    return Report(project, facts, pages, sorted(set(findings)))


def check_text(text: str, path: str, root: Path, runner: Runner, facts: Facts, lexicon: Lexicon) -> Checked:
    """Check a page that is not on disk: ``text`` as if it stood at ``path``."""
    checked = _run(parse(from_text(root, path, text), lexicon), runner, None, None)
    judge(checked, facts, lexicon)
    return checked


# --- running ---------------------------------------------------------------------------------------------------------


def program(page: Page) -> Program:
    """What has to run for this page."""
    defined = _defined(page)
    lines = page.source.lines
    blocks = tuple(
        Code(
            block.code,
            page.path,
            tuple((lines[row].path, lines[row].number) for row in range(block.row, block.row + len(block.cuts))),
            run=block.runs,
            raises=block.option("raises"),
        )
        for block in page.python
    )
    expressions = {(claim.expression, claim.after): None for claim in page.claims if _evaluable(claim, defined)}
    return Program(page.path, blocks, tuple(Expression(text, after) for text, after in expressions))


def _evaluable(claim: Claim, defined: set[str] | None) -> bool:
    return not claim.optional or defined is None or names_in(claim.expression) <= defined


@lru_cache(maxsize=65536)
def names_in(expression: str) -> frozenset[str]:
    """The names an expression reads."""
    try:
        return frozenset(
            node.id for node in ast.walk(ast.parse(expression.strip(), mode="eval")) if isinstance(node, ast.Name)
        )
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()


def _defined(page: Page) -> set[str] | None:
    """The names that the page's blocks may define; None where a star import hides them."""
    names = set(dir(builtins))
    for block in page.python:
        bound = bindings(block.code)
        if "*" in bound:
            return None
        names |= set(bound)
    return names


@lru_cache(maxsize=1024)
def bindings(code: str) -> dict[str, int]:
    """The names a block binds at its top level or below, each with the row of its last binding."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    bound: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound[node.id] = max(bound.get(node.id, 0), node.lineno - 1)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            bound[node.name] = max(bound.get(node.name, 0), node.lineno - 1)
        elif isinstance(node, ast.alias):
            name = (node.asname or node.name).split(".")[0]
            bound[name] = max(bound.get(name, 0), node.lineno - 1)
    return bound


def _run(page: Page, runner: Runner, cache: Cache | None, store: Cache | None) -> Checked:
    wanted = program(page)
    if not wanted.blocks and not wanted.expressions:
        return Checked(page, wanted, Result((), ()))
    if cache and (known := cache.get(wanted)):
        return Checked(page, wanted, known, cached=True)
    result = runner.run(wanted)
    if store:
        store.put(wanted, result)
    return Checked(page, wanted, result)


# --- judging ---------------------------------------------------------------------------------------------------------


def judge(checked: Checked, facts: Facts, lexicon: Lexicon) -> None:
    """Compare the page with its results; fills the verdicts and findings."""
    judging = _Judge(checked, facts, lexicon)
    for problem in checked.page.problems:
        judging.find(problem.start, problem.end, problem.slug, problem.message, problem.hint)
    for equation in checked.page.equations:
        if (at := unbound_macro(equation.tex)) is not None:
            start = equation.tex_at + at
            judging.find(start, start + 6, "bad-math", "\\claim takes two arguments: \\claim{number}{expression}")
            continue
        try:
            to_mathml(shown_tex(equation.tex), equation.display)
        except MathError as error:
            judging.find(equation.start, equation.end, "bad-math", error.message)
    for block in checked.page.python:
        judging.block(block)
    judging.claims()
    for citation in checked.page.citations:
        judging.citation(citation)
    judging.numbers()
    checked.findings.sort()


class _Judge:
    def __init__(self, checked: Checked, facts: Facts, lexicon: Lexicon) -> None:
        self.checked, self.page, self.facts, self.lexicon = checked, checked.page, facts, lexicon
        self.nouns = lexicon.counted
        self.unbound: list[Claim] = []
        self.broken = any(block.status in ("failed", "not-run") for block in checked.result.blocks)

    def find(
        self, start: int, end: int, slug: str, message: str, hint: str = "", notes: Iterable[tuple[str, str]] = ()
    ) -> None:
        self.checked.findings.append(Finding.at(self.page.place(start, end), slug, message, hint, notes))

    # --- blocks ---

    def block(self, block: Block) -> None:
        result = self.checked.block(block)
        if result is None:
            return
        if result.failure and result.status == "failed":
            self._failed(block, result.failure)
        if block.language != "python" or result.status not in ("ran", "raised"):
            return
        fence = self._fence(block)
        if result.figures and not (block.option("alt") or "").strip():
            self.find(
                *fence, "figure-without-alt", "this block draws a figure and has no alt text", 'add alt="what is seen"'
            )
        if block.option("alt") and len(result.figures) != 1:
            drawn = "none" if not result.figures else str(len(result.figures))
            self.find(*fence, "missing-figure", f"this block has an alt text for one figure and draws {drawn}")

    def _fence(self, block: Block) -> tuple[int, int]:
        line = self.page.text[block.start : self.page.text.find("\n", block.start)]
        return block.start + len(block.prefix), block.start + len(line)

    def _failed(self, block: Block, failure: Failure) -> None:
        slug = {"timeout": "block-timeout", "died": "block-died"}.get(failure.kind, "block-failed")
        notes = [("traceback", f"{file}:{line} in {name}") for file, line, name in failure.frames]
        if failure.line is None or failure.line >= len(block.cuts):
            start, end = self._fence(block)
        else:
            row = block.row + failure.line
            begin = self.page.source.starts[row]
            text = self.page.source.lines[row].text
            start, end = begin + len(text) - len(text.lstrip()), begin + len(text)
        message = failure.message if failure.kind != "timeout" else f"{failure.message}"
        self.find(start, end, slug, message, notes=notes)

    # --- claims ---

    def claims(self) -> None:
        given = {
            (e.text, e.after): found
            for e, found in zip(self.checked.program.expressions, self.checked.result.evaluations, strict=False)
        }
        missing = Evaluation(None, Failure("unbound", "the page does not define it"))
        for claim in self.page.claims:
            evaluation = given.get((claim.expression, claim.after), missing)
            self.checked.evaluations.append(evaluation)
            self.checked.verdicts.append(self._claim(claim, evaluation))

    def _claim(self, claim: Claim, evaluation: Evaluation) -> Disagreement | None:
        if evaluation.value is None:
            return self._no_value(claim, evaluation.failure)
        early = evaluation.early
        if early is not None and (early.kind, early.text, early.items) != (
            evaluation.value.kind,
            evaluation.value.text,
            evaluation.value.items,
        ):
            message = f"{claim.expression} is {early.shown} here and {evaluation.value.shown} at the end of the page"
            self.find(claim.start, claim.end, "ambiguous", message, "give the two values two names", self._bound(claim))
        verdict = self._agree(claim, evaluation.value)
        if verdict:
            notes = [("expression", claim.expression + self._bound_at(claim))]
            if verdict.slug == "drift" and claim.kind != "chain":
                notes.append(("to accept", f"python -m claims fix {self.page.place(claim.start, claim.end).path}"))
            self.find(claim.start, claim.end, verdict.slug, verdict.message, verdict.hint, notes)
        return verdict

    def _agree(self, claim: Claim, value: Value) -> Disagreement | None:
        if value.kind == "expr":
            if claim.kind == "math" and symbolic(claim.literal):
                same = identical(claim.literal, value)
                return None if same else Disagreement("drift", f"the formula is not {value.shown}")
        return literal.agree(claim.literal, value, self.nouns)

    def _no_value(self, claim: Claim, failure: Failure | None) -> Disagreement | None:
        if claim.optional and (failure is None or failure.kind in ("unbound", "error")):
            self.unbound.append(claim)
            return None
        if failure is not None and failure.kind == "unbound":
            if not self.broken:
                self.find(*claim.expression_at, "unknown-name", f"{claim.expression}: {failure.message}")
            return Disagreement("unknown-name", failure.message)
        message = failure.message if failure else "nothing was evaluated"
        if not (self.broken and failure is not None and failure.kind == "died"):
            self.find(*claim.expression_at, "bad-expression", f"{claim.expression}: {message}")
        return Disagreement("bad-expression", message)

    def _bound_at(self, claim: Claim) -> str:
        place = binding_place(self.page, claim)
        if place is None:
            return ""
        same = place.path == self.page.path
        return f"            bound at line {place.line}" if same else f"            bound at {place.path}:{place.line}"

    def _bound(self, claim: Claim) -> list[tuple[str, str]]:
        return [("expression", claim.expression + self._bound_at(claim))]

    # --- citations ---

    def citation(self, citation: Citation) -> None:
        self.checked.citations.append(verdict := self._cite(citation))
        if verdict:
            at = (citation.start, citation.end) if verdict.slug != "unknown-fact" else citation.key_at
            self.find(*at, verdict.slug, verdict.message, verdict.hint)

    def _cite(self, citation: Citation) -> Disagreement | None:
        if "." not in citation.key:
            if citation.key not in self.facts.references:
                return Disagreement("unknown-fact", f"{citation.key} is not in {self.facts.bibliography_path}")
            for start, end in self.lexicon.loose(citation.literal):
                at = citation.start
                self.page.loose.append(Loose(at + start, at + end, citation.literal[start:end], "prose"))
            return None
        fact = self.facts.facts.get(citation.key)
        if fact is None:
            return Disagreement("unknown-fact", f"{citation.key} is not in {self.facts.path}")
        verdict = literal.agree(citation.literal, fact.value, self.nouns)
        if verdict is None:
            return None
        message = verdict.message.replace("the code gives", f"{fact.source} ({fact.where}) gives")
        return Disagreement(verdict.slug, message, verdict.hint)

    # --- loose numbers ---

    def numbers(self) -> None:
        loose = list(self.page.loose)
        loose += [
            Loose(claim.start, claim.end, claim.literal, "math")
            for claim in self.unbound
            if not self.lexicon.bare(claim.literal)
        ]
        waived = {waiver.text: waiver for waiver in self.page.waivers}
        used: set[str] = set()
        for number in loose:
            text = number.text.strip()
            if text in waived:
                used.add(text)
                continue
            where = {"comment": " in a comment", "output": " in typed output", "math": " in a formula"}.get(
                number.where, ""
            )
            self.find(
                number.start, number.end, "loose-number", f"nothing binds {text}{where}", _LOOSE_HINT[number.where]
            )
        for waiver in self.page.waivers:
            if waiver.text not in used:
                self.find(waiver.start, waiver.end, "unused-waiver", f"no loose {waiver.text} stands on this page")


_LOOSE_HINT = {
    "prose": "write [number](claim:expression), [number](cite:key.fact), or waive it in the front matter",
    "math": "state it as name = number, as arithmetic, or as \\claim{number}{expression}",
    "comment": "write # = number behind the expression that gives it, or use a name",
    "output": "let a block print it",
}


def binding_place(page: Page, claim: Claim) -> Place | None:
    """Where a name of the claim's expression was last bound on the page."""
    names = names_in(claim.expression)
    best: Place | None = None
    for block in page.python:
        for name, row in bindings(block.code).items():
            if name in names and row < len(block.cuts):
                begin = page.source.starts[block.row + row]
                best = page.source.place(begin, begin + 1)
    return best


def _unused(pages: list[Checked], facts: Facts) -> list[Finding]:
    cited = {citation.key for page in pages for citation in page.page.citations}
    sources = {key.split(".")[0] for key in cited}
    found = [
        Finding(facts.path, fact.line, 1, 1, "unused-fact", f"no page cites {key}")
        for key, fact in facts.facts.items()
        if key not in cited
    ]
    return found + [
        Finding(facts.bibliography_path, facts.reference_lines.get(key, 1), 1, 1, "unused-fact", f"no page cites {key}")
        for key in facts.references
        if key not in sources
    ]


def summary(report: Report) -> str:
    """One line: what was checked, and how many findings there are."""
    counts = report.counts
    parts = [
        f"{counts[name]:,} {_plural(name, counts[name])}"
        for name in ("pages", "claims", "citations", "blocks", "figures")
    ]
    waived = f", {counts['waived']:,} waived" if counts["waived"] else ""
    number = len(report.findings)
    return f"{', '.join(parts)} checked{waived}; {number:,} {_plural('findings', number)}"


def _plural(word: str, count: int) -> str:
    return re.sub(r"s$", "", word) if count == 1 else word
