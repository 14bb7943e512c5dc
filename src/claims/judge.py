"""A page and its results to findings: what it says against what it gives."""

from __future__ import annotations

from collections.abc import Iterable

from claims.agree import Disagreement, agree
from claims.arithmetic import identical, run_on, symbolic
from claims.equations import shown_tex, unbound_macro
from claims.facts import Facts
from claims.finding import Finding
from claims.fix import rewrite
from claims.lexicon import Lexicon
from claims.mathml import MathError, to_mathml
from claims.page import Block, Citation, Claim, Equation, Loose
from claims.report import Checked
from claims.results import Evaluation, Failure, Value

BLOCK_SLUGS = {"timeout": "block-timeout", "died": "block-died"}
BLOCK_MESSAGES = {"timeout": "the block {}", "died": "the block ended its process: {}", "output": "the block {}"}
WHERE = {"comment": " in a comment", "output": " in typed output", "math": " in a formula"}
HINTS = {
    "prose": "write [number](claim:expression), [number](cite:key.fact), or waive it in the front matter",
    "math": "state it as name = number, as arithmetic, or as \\claim{number}{expression}",
    "comment": "write # = number behind the expression that gives it, or use a name",
    "output": "let a block print it",
}
UNBOUND = Evaluation(None, Failure("unbound", "the page does not define it"))


def judge(checked: Checked, facts: Facts, lexicon: Lexicon) -> None:
    """Compare the page with its results; fills in its verdicts and findings."""
    judging = _Judge(checked, facts, lexicon)
    for problem in checked.page.problems:
        judging.find(problem.start, problem.end, problem.slug, problem.message, problem.hint)
    for equation in checked.page.equations:
        judging.equation(equation)
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
        self.loose: list[Loose] = list(checked.page.loose)
        self.broken = any(block.status in ("failed", "not-run") for block in checked.result.blocks)

    def find(
        self, start: int, end: int, slug: str, message: str, hint: str = "", notes: Iterable[tuple[str, str]] = ()
    ) -> None:
        self.checked.findings.append(Finding.at(self.page.place(start, end), slug, message, hint, notes))

    def equation(self, equation: Equation) -> None:
        if (at := unbound_macro(equation.tex)) is not None:
            start = equation.tex_at + at
            self.find(start, start + 6, "bad-math", "\\claim takes two arguments: \\claim{number}{expression}")
            return
        if found := run_on(shown_tex(equation.tex)):
            start = equation.tex_at + equation.tex.find(found[0])
            message = f"LaTeX leaves {found['rest']} out of {found[0]}"
            self.find(start, start + len(found[0]), "bad-math", message, "write braces around the whole number")
        try:
            to_mathml(shown_tex(equation.tex), equation.display)
        except MathError as error:
            self.find(equation.start, equation.end, "bad-math", error.message)

    # --- blocks ---

    def block(self, block: Block) -> None:
        result = self.checked.block(block)
        if result is None:
            return
        if result.failure and result.status == "failed":
            self._failed(block, result.failure)
        if result.status not in ("ran", "raised"):
            return
        alt = block.option("alt")
        if result.figures and not (alt or "").strip():
            message = "this block draws a figure and has no alt text"
            self.find(*self._fence(block), "figure-without-alt", message, 'add alt="what is seen"')
        if alt and len(result.figures) != 1:
            drawn = len(result.figures) or "none"
            message = f"this block has an alt text for one figure and draws {drawn}"
            self.find(*self._fence(block), "missing-figure", message)

    def _fence(self, block: Block) -> tuple[int, int]:
        line = self.page.text[block.start : self.page.text.find("\n", block.start)]
        return block.start + len(block.prefix), block.start + len(line)

    def _failed(self, block: Block, failure: Failure) -> None:
        notes = [("traceback", f"{file}:{line} in {name}") for file, line, name in failure.frames]
        if failure.line is None or not 0 <= failure.line < len(block.cuts):
            start, end = self._fence(block)
        else:
            row = block.row + failure.line
            begin, text = self.page.source.starts[row], self.page.source.lines[row].text
            start, end = begin + len(text) - len(text.lstrip()), begin + len(text)
        message = BLOCK_MESSAGES.get(failure.kind, "{}").format(failure.message)
        self.find(start, end, BLOCK_SLUGS.get(failure.kind, "block-failed"), message, notes=notes)

    # --- claims ---

    def claims(self) -> None:
        asked = [(expression.text, expression.after) for expression in self.checked.program.expressions]
        given = dict(zip(asked, self.checked.result.evaluations, strict=False))
        for claim in self.page.claims:
            evaluation = given.get((claim.expression, claim.after), UNBOUND)
            self.checked.evaluations.append(evaluation)
            self.checked.verdicts.append(self._claim(claim, evaluation))

    def _claim(self, claim: Claim, evaluation: Evaluation) -> Disagreement | None:
        value, early = evaluation.value, evaluation.early
        if value is None:
            return self._no_value(claim, evaluation.failure)
        if early is not None and _essence(early) != _essence(value):
            message = f"{claim.expression} is {early.brief} here and {value.brief} at the end of the page"
            notes = [("expression", self._bound(claim))]
            self.find(claim.start, claim.end, "ambiguous", message, "give the two values two names", notes)
        verdict = self._agree(claim, value)
        if verdict:
            notes = [("expression", self._bound(claim))]
            if verdict.slug == "drift" and self._repairable(claim, value):
                notes.append(("to accept", f"python -m claims fix {self.page.place(claim.start, claim.end).path}"))
            self.find(claim.start, claim.end, verdict.slug, verdict.message, verdict.hint, notes)
        return verdict

    def _repairable(self, claim: Claim, value: Value) -> bool:
        return claim.kind != "chain" and rewrite(claim.literal, value, self.lexicon.counted) is not None

    def _agree(self, claim: Claim, value: Value) -> Disagreement | None:
        if value.kind == "expr" and claim.kind == "math" and symbolic(claim.literal):
            same = identical(claim.literal, value)
            return None if same else Disagreement("drift", f"the formula is not {value.brief}")
        return agree(claim.literal, value, self.lexicon.counted)

    def _no_value(self, claim: Claim, failure: Failure | None) -> Disagreement | None:
        if claim.optional and (failure is None or failure.kind in ("unbound", "error")):
            if not self.lexicon.bare(claim.literal):
                self.loose.append(Loose(claim.start, claim.end, claim.literal, "math"))
            return None
        failure = failure or Failure("error", "nothing was evaluated")
        slug = "unknown-name" if failure.kind == "unbound" else "bad-expression"
        told = self.broken and failure.kind in ("unbound", "died")  # the block's own finding says why
        if not told:
            self.find(*claim.expression_at, slug, f"{claim.expression}: {failure.message}")
        return Disagreement(slug, failure.message)

    def _bound(self, claim: Claim) -> str:
        found = self.page.binding(claim.expression)
        if found is None:
            return claim.expression
        place, _ = found
        where = f"line {place.line}" if place.path == self.page.path else f"{place.path}:{place.line}"
        return f"{claim.expression}            bound at {where}"

    # --- citations ---

    def citation(self, citation: Citation) -> None:
        verdict = self._cite(citation)
        self.checked.citations.append(verdict)
        if verdict:
            at = citation.key_at if verdict.slug == "unknown-fact" else (citation.start, citation.end)
            self.find(*at, verdict.slug, verdict.message, verdict.hint)

    def _cite(self, citation: Citation) -> Disagreement | None:
        if "." not in citation.key:
            if citation.key not in self.facts.references:
                return Disagreement("unknown-fact", f"{citation.key} is not in {self.facts.bibliography_path}")
            for start, end in self.lexicon.loose(citation.literal):
                at, text = citation.start, citation.literal[start:end]
                self.loose.append(Loose(at + start, at + end, text, "prose"))
            return None
        fact = self.facts.facts.get(citation.key)
        if fact is None:
            return Disagreement("unknown-fact", f"{citation.key} is not in {self.facts.path}")
        verdict = agree(citation.literal, fact.value, self.lexicon.counted)
        if verdict is None:
            return None
        place = f"{fact.source} ({fact.where})" if fact.where else fact.source
        return Disagreement(verdict.slug, verdict.message.replace("the code gives", f"{place} gives"), verdict.hint)

    # --- loose numbers ---

    def numbers(self) -> None:
        waivers = [waiver for waiver in self.page.waivers if waiver.kind == "waive"]
        unused = {waiver.text: waiver for waiver in waivers}
        waived = set(unused)
        for number in self.loose:
            text = number.text.strip()
            if text in waived:
                unused.pop(text, None)
                continue
            message = f"nothing binds {text}{WHERE.get(number.where, '')}"
            self.find(number.start, number.end, "loose-number", message, HINTS[number.where])
        for waiver in unused.values():
            self.find(waiver.start, waiver.end, "unused-waiver", f"no loose {waiver.text} stands on this page")


def _essence(value: Value) -> tuple[object, ...]:
    return value.kind, value.text, value.items
