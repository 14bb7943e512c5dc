"""A copy of the book, and the gates that a change in it must not pass."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

from changes import Change

from claims.cache import CLOCK_TICK
from claims.check import check
from claims.finding import Finding, show
from claims.project import find
from claims.report import Checked, Report
from claims.session import Runner

ROOT = Path(__file__).parents[2]
ADDRESS = re.compile(r"\]\([^)\s]*\)|https?://\S+")
POISON = """\
def _touched(self, *_, **__):
    raise RuntimeError("this value is used")


class _Poison:
    __slots__ = ()


for _name in '''add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow neg pos abs invert and
rand or ror xor rxor lshift rlshift rshift rrshift lt le gt ge eq ne bool int float complex index hash len iter getitem
contains call round trunc floor ceil str repr format getattr divmod rdivmod matmul rmatmul'''.split():
    setattr(_Poison, f"__{_name}__", _touched)
VALUE = _Poison()
"""


def copied(folder: Path) -> Path:
    """A copy of what git knows or would take, with what the checker keeps; beside it a value that fails on any use."""
    book = folder / "book"
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout.decode()
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (book / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, book / name)
    if (ROOT / ".cache/claims").is_dir():
        shutil.copytree(ROOT / ".cache/claims", book / ".cache/claims")
    (folder / "probe").mkdir()
    (folder / "probe/poison.py").write_text(POISON, "utf-8")
    return book


class Book:
    """The copy, what each of its pages opens and shows, and the gates. Only pages that a change touches run again."""

    def __init__(self, folder: Path) -> None:
        root = copied(folder)
        os.environ["PYTHONPATH"] = os.pathsep.join([str(root / "src"), str(folder / "probe")])
        self.project = find(root)
        self.runner = Runner(root, self.project.preload, self.project.time_limit)
        self.report = self.checked([])
        if self.report.findings:
            raise SystemExit("the book is not clean as it is:\n" + show(self.report.findings[0], root))
        self.shown = {page.path: shows(page) for page in self.report.pages}

    def checked(self, names: list[str]) -> Report:
        return check(self.project, [self.project.root / name for name in names], cold=False, runner=self.runner)

    def dependent(self, change: Change) -> list[str]:
        """The pages that a change may touch: its own, those that open or include the file, those that cite the fact."""
        key = change.fact()[0] if change.kind == "fact" else ""
        return [
            page.path
            for page in self.report.pages
            if (any(citation.key == key for citation in page.page.citations) if key else uses(page, change.path))
        ]

    def noticed(self, change: Change, new: str | None = None) -> tuple[str, list[str]]:
        """Which finding notices a change, or nothing; and which pages then print or draw something else."""
        path = self.project.root / change.path
        path.write_text(change.applied(new), "utf-8")
        time.sleep(4 * CLOCK_TICK)  # a page that begins in the same tick as an edit is not kept
        moved: list[str] = []
        try:
            pages, size = iter(self.dependent(change)), 4
            while names := list(islice(pages, size)):
                report = self.checked(names)
                if report.findings:
                    return placed(report.findings[0]), moved
                moved += [page.path for page in report.pages if shows(page) != self.shown[page.path]]
                size *= 2
            return self._elsewhere(change), moved
        finally:
            path.write_text(change.text, "utf-8")

    def tests_fail(self, change: Change, tests: str) -> bool:
        """Whether tests of the repository notice a change."""
        path = self.project.root / change.path
        path.write_text(change.applied(), "utf-8")
        try:
            said = self._said("pytest", "-x", "-p", "no:cacheprovider", tests, pattern=rf"^(?:FAILED|ERROR) {tests}")
            return said.endswith(tests)  # and not merely that there are no such tests
        finally:
            path.write_text(change.text, "utf-8")

    def _elsewhere(self, change: Change) -> str:
        """What the self-check of the decoder says or, to what a page links, MkDocs."""
        if change.path.startswith("src/"):
            return self._said("decoder", "check", pattern=r"^FAILED .*|^\w*(?:Error|Exception):.*")
        if change.path.endswith(".md") and change.within(ADDRESS):
            return self._said("mkdocs", "build", "--strict", pattern=r"^(?:WARNING|ERROR) .*")
        return ""

    def _said(self, *command: str, pattern: str) -> str:
        environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=self.project.root, env=environment, capture_output=True, text=True
        )
        found = re.search(pattern, done.stdout + done.stderr, re.M)
        return f"python -m {' '.join(command)}: {found[0] if found else 'failed'}" if done.returncode else ""


def uses(page: Checked, path: str) -> bool:
    return path in (page.path, *page.result.files) or any(line.path == path for line in page.page.source.lines)


def shows(page: Checked) -> list[tuple[str, tuple[str, ...]]]:
    """What the blocks of a page print and draw."""
    return [(block.output, block.figures) for block in page.result.blocks]


def placed(finding: Finding) -> str:
    return f"{finding.path}:{finding.line}:{finding.column}: {finding.slug}: {finding.message[:90]}"
