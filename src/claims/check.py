"""Pages to findings: parse each page, run it, judge it.

``check`` is the one door: the command line, the Markdown extension, the MkDocs plugin and the tests call it.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

from claims import facts as recorded
from claims import glossary as terms
from claims.cache import Cache, environment_salt
from claims.code import bindings, names_in
from claims.facts import Facts
from claims.finding import Finding
from claims.judge import judge
from claims.lexicon import Lexicon
from claims.page import Claim, Page
from claims.parse import read
from claims.project import Project
from claims.report import Checked, Report, summary
from claims.results import Code, Expression, Program, Result
from claims.session import Runner

__all__ = ["Checked", "Report", "check", "check_text", "program", "summary"]


def check(
    project: Project,
    paths: Iterable[str | Path] = (),
    *,
    cold: bool | None = None,
    runner: Runner | None = None,
    progress: Callable[[Checked], None] | None = None,
    last: Report | None = None,
) -> Report:
    """Check the pages at ``paths``, or all pages. A page that is as it was in ``last`` is the same object in both.

    ``cold`` ignores the cache. By default it is ignored where the variable CI is ``true``, but for what was computed
    in the same build, if the variable CLAIMS_BUILD names one: it holds a word that no two builds share. What no page
    uses is reported only when all pages are checked. Raises ProjectError when the project cannot be checked at all.
    """
    paths = list(paths)
    names = project.pages(paths)
    lexicon = project.words
    last = last if last and last.project == project else None
    facts = recorded.load(project.root, project.facts, project.bibliography, last.facts if last else None)
    glossary = terms.load(project.root, project.glossary, lexicon)
    build, fresh = os.environ.get("CLAIMS_BUILD", ""), cold is None and os.environ.get("CI", "").lower() == "true"
    cold = fresh and not build if cold is None else cold
    folder, salt = project.root / project.cache, environment_salt(project.preload)
    cache = Cache(folder, project.root, salt, build, own=fresh)
    same = last and (last.facts, last.project.words) == (facts, lexicon)
    known = {page.path: page for page in last.pages} if last and same else {}
    opened = Runner(project.root, project.preload, project.time_limit) if runner is None else nullcontext(runner)
    with opened as running, ThreadPoolExecutor(os.cpu_count() or 1) as pool:

        def one(name: str) -> Checked:
            before = known.get(name)
            page = read(project.root, name, lexicon, last=before.page if before else None)
            checked = _run(page, running, None if cold else cache, cache)
            if before and (before.page, before.result) == (checked.page, checked.result):
                checked = before
            else:
                judge(checked, facts, lexicon)
            if progress:
                progress(checked)
            return checked

        if cold or not cache.folder.is_dir():
            running.start()
        try:
            pages = list(pool.map(one, names))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            running.close()
            raise
    findings = [finding for page in pages for finding in page.findings]
    findings += [Finding(t.path, t.line, 1, 1, t.slug, t.message) for t in [*facts.troubles, *glossary.troubles]]
    if not paths:
        findings += _unused(pages, facts)
    return Report(project, facts, pages, sorted(set(findings)), glossary)


def check_text(text: str, path: str, root: Path, runner: Runner, facts: Facts, lexicon: Lexicon) -> Checked:
    """Check a page that is not on disk: ``text`` as if it stood at ``path``."""
    checked = _run(read(root, path, lexicon, text), runner, None, None)
    judge(checked, facts, lexicon)
    return checked


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


def program(page: Page) -> Program:
    """What has to run for this page."""
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
    defined = _defined(page)
    expressions = {(claim.expression, claim.after): None for claim in page.claims if _evaluable(claim, defined)}
    return Program(page.path, blocks, tuple(Expression(text, after) for text, after in expressions))


def _evaluable(claim: Claim, defined: frozenset[str] | None) -> bool:
    return not claim.optional or defined is None or names_in(claim.expression) <= defined


def _defined(page: Page) -> frozenset[str] | None:
    """The names that the page's blocks may define; None where a star import hides them."""
    names = frozenset(dir(builtins)).union(*(bindings(block.code) for block in page.python))
    return None if "*" in names else names


def _unused(pages: list[Checked], facts: Facts) -> list[Finding]:
    cited = {citation.key for page in pages for citation in page.page.citations}
    sources = {key.split(".")[0] for key in cited}
    lines = {(facts.path, key): fact.line for key, fact in facts.facts.items() if key not in cited}
    for key in facts.references:
        if key not in sources:
            lines[facts.bibliography_path, key] = facts.reference_lines.get(key, 1)
    return [Finding(path, line, 1, 1, "unused-fact", f"no page cites {key}") for (path, key), line in lines.items()]
