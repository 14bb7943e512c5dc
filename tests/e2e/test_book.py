"""The whole book at once: it holds no less than it did, it is clean, and no claim in it is one that cannot fail."""

import pytest

from claims.check import check
from claims.finding import show_all
from claims.project import find
from claims.prove import prove
from claims.report import Report

pytestmark = pytest.mark.slow

# The book only grows: less than this means that something is no longer checked. Raise them with the book.
FLOORS = {"pages": 50, "claims": 2_300, "citations": 530, "blocks": 400, "figures": 45}


@pytest.fixture(scope="module")
def report() -> Report:
    return check(find(), cold=False)


def test_the_book_is_clean(report: Report) -> None:
    assert "\n".join(show_all(report.findings, report.project.root)) == ""


@pytest.mark.parametrize("name", FLOORS)
def test_nothing_was_lost(report: Report, name: str) -> None:
    assert report.counts[name] >= FLOORS[name]


def test_every_changed_number_is_found(report: Report) -> None:
    proof = prove(report)
    assert [(survivor.place, survivor.old, survivor.new) for survivor in proof.survivors] == []
    assert proof.claims >= FLOORS["claims"] and proof.mutants > 3 * proof.claims
