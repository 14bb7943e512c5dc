"""What a check brings back: each page with its results and verdicts, and all findings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from claims.agree import Disagreement
from claims.facts import Facts
from claims.finding import Finding
from claims.glossary import Glossary
from claims.page import Block, Page
from claims.project import Project
from claims.results import BlockResult, Evaluation, Program, Result


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
    glossary: Glossary = field(default_factory=Glossary)
    _marked: dict[str, str | None] = field(default_factory=dict, init=False, repr=False, compare=False)

    def page_with(self, marker: str) -> str | None:
        """The first page whose text holds a marker."""
        if marker not in self._marked:
            self._marked[marker] = next((page.path for page in self.pages if marker in page.page.text), None)
        return self._marked[marker]

    @property
    def counts(self) -> dict[str, int]:
        return {
            "pages": len(self.pages),
            "claims": sum(len(page.page.claims) for page in self.pages),
            "citations": sum(len(page.page.citations) for page in self.pages),
            "blocks": sum(len(page.page.python) for page in self.pages),
            "figures": sum(page.figures for page in self.pages),
            "waived": sum(each.kind == "waive" for page in self.pages for each in page.page.waivers),
        }

    def to_json(self, relative: Callable[[str], str] = str) -> dict[str, object]:
        findings = [finding.to_json() | {"path": relative(finding.path)} for finding in self.findings]
        return {"findings": findings, "counts": self.counts}


def summary(report: Report) -> str:
    """One line: what was checked, and how many findings there are."""
    counts = report.counts
    parts = [_count(counts[name], name) for name in ("pages", "claims", "citations", "blocks", "figures")]
    waived = f", {counts['waived']:,} waived" if counts["waived"] else ""
    return f"{', '.join(parts)} checked{waived}; {_count(len(report.findings), 'findings')}"


def _count(number: int, plural: str) -> str:
    return f"{number:,} {plural.removesuffix('s') if number == 1 else plural}"
