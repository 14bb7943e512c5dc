"""One check for a whole build, shared by the two doors.

Whatever converts the pages, MkDocs or Zensical, asks the gate for each page. The gate checks the book once, and in a
build it opens only when nothing is wrong.
"""

from __future__ import annotations

import posixpath
import re
import threading
from functools import cache
from pathlib import Path

from claims.check import check
from claims.finding import show_all
from claims.project import Project, find
from claims.report import Checked, Report, summary
from claims.session import Runner
from claims.site.render import Rendered, gathers, key, render

NOTEBOOK = re.compile(r"<!-- claims:notebook (?P<name>\S+) -->")  # shows the percent notebook of that name beside it
BOUND = re.compile(r"\]\(\s*<?(?:claim|cite):|^\s*```python", re.M)


class GateError(RuntimeError):
    """The book may not be published as it is; the message lists the findings."""


class Gate:
    """Holds the report of the last check and the page server, so that a re-check under ``serve`` is quick."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.serving = False
        self.report: Report | None = None
        self._pages: dict[str, int] = {}
        self._gathered: dict[str, Rendered] = {}  # the pages made of others, as they were rendered last
        self._lock = threading.RLock()
        self._runner = Runner(project.root, project.preload, project.time_limit)

    def refresh(self) -> Report:
        """Check all pages again; pages whose text and files are as before come from the cache."""
        with self._lock:
            cold = None if self.report is None else False
            self.report = check(self.project, cold=cold, runner=self._runner, last=self.report)
            self._pages = {key(page.page.source.body): index for index, page in enumerate(self.report.pages)}
            return self.report

    def stale(self) -> list[str]:
        """Check again; the pages that are no longer as they were rendered."""
        with self._lock:
            before = {page.path: page for page in self.report.pages} if self.report else {}
            report = self.refresh()
            return [
                page.path
                for page in report.pages
                if page is not before.get(page.path)
                or (page.path in self._gathered and self._gathered[page.path] != render(page, report, self.serving))
            ]

    def start(self) -> None:
        """Let the page server get ready before a page needs it."""
        self._runner.start()

    def require(self) -> Report:
        """The report of a book in which nothing is wrong. Raises GateError for any other."""
        report = self.report or self.refresh()
        if report.findings:
            shown = "\n".join(show_all(report.findings, self.project.root))
            raise GateError(f"{shown}\n{summary(report)}")
        return report

    def page(self, body: str) -> Rendered | None:
        """The rendered page with this body; None for a text that is no page and claims nothing.

        Raises GateError for an unknown text that holds claims or blocks, and in a build for any finding.
        """
        with self._lock:
            report = self.report or self.refresh()
            if not self.serving:
                self.require()
            name = key(body)
            if name not in self._pages and self.serving and BOUND.search(body):
                report = self.refresh()
            if name in self._pages:
                page = self.shown(report.pages[self._pages[name]])
                rendered = render(page, report, self.serving)
                if self.serving and gathers(page.page):
                    self._gathered[page.path] = rendered
                return rendered
        if BOUND.search(body):
            first = next((line for line in body.splitlines() if line.strip()), "")
            raise GateError(f"a text that was never checked holds claims or blocks: {first[:80]!r}")
        return None

    def checked(self, path: str) -> Checked | None:
        """The page or notebook at ``path``, relative to the root, as it was last checked."""
        pages = self.report.pages if self.report else []
        return next((page for page in pages if page.page.path == path), None)

    def shown(self, page: Checked) -> Checked:
        """The page, or the notebook that it stands for."""
        if not (found := NOTEBOOK.search(page.page.text)):
            return page
        path = posixpath.join(posixpath.dirname(page.page.path), found["name"])
        if notebook := self.checked(path):
            return notebook
        raise GateError(f"{page.page.path}: it stands for the notebook {path}, which is not among those checked")

    def close(self) -> None:
        """Stop the page server."""
        self._runner.close()


def gate_for(root: Path | str = ".") -> Gate:
    """The gate of the project that ``root`` lies in, one in a process."""
    return _gate(Path(root).resolve())


@cache
def _gate(folder: Path) -> Gate:
    project = find(folder)
    return Gate(project) if project.root == folder else _gate(project.root)
