"""Planted pages: the checker says of each what its `expected.txt` says. To add one, see tests/cases/README.md."""

import os
from pathlib import Path

import pytest

from claims.check import check
from claims.finding import SLUGS, show_all
from claims.inputs.trace import trace
from claims.project import Project
from claims.report import summary
from claims.session import Runner

ROOT = Path(__file__).parent.parent / "cases"
CASES = sorted(folder.name for folder in ROOT.iterdir() if folder.is_dir())


@pytest.fixture(scope="module")
def runner():
    with Runner(ROOT, ("matplotlib.pyplot",), time_limit=2) as runner:
        yield runner


def outcome(case, runner, cache):
    project = Project(
        ROOT, docs=case, facts=f"{case}/facts.toml", bibliography=f"{case}/references.bib", cache=str(cache)
    )
    report = check(project, cold=True, runner=runner)
    findings = [*report.findings, *trace(report, runner).findings] if case == "constant" else report.findings
    return "\n".join([*show_all(findings, ROOT), summary(report)]) + "\n"


@pytest.mark.parametrize("case", CASES)
def test_case(case, runner, tmp_path):
    shown = outcome(case, runner, tmp_path)
    expected = ROOT / case / "expected.txt"
    if os.environ.get("ACCEPT"):
        expected.write_text(shown, encoding="utf-8")
    assert shown == expected.read_text(encoding="utf-8")


def test_every_slug_has_a_case():
    shown = "".join((ROOT / case / "expected.txt").read_text(encoding="utf-8") for case in CASES)
    assert [slug for slug in SLUGS if f": {slug}: " not in shown] == []
