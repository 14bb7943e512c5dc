"""The labs: each runs, each of its deliberate faults trips the checks that it names and no other, and says so."""

import os
import runpy
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from decoder.mutation import failures

os.environ["MPLBACKEND"] = "Agg"  # a lab that draws must not open a window
ROOT = Path(__file__).parents[2]
LABS = {path.stem: path for path in sorted((ROOT / "docs/labs").glob("*.py"))}
FAULTS = {  # how many each lab makes
    "feed-forward": 6,
    "flexible-attention": 6,
    "gradient-norms": 5,
    "second-decoder": 5,
    "self-check": 9,
    "serial-or-parallel": 4,
    "tying": 6,
}


@cache
def lab(name: str) -> dict:
    """The names that a lab leaves behind when its cells have run in order."""
    return runpy.run_path(str(LABS[name]))


@cache
def printed(name: str) -> str:
    """What a lab prints, in a process of its own."""
    done = subprocess.run([sys.executable, LABS[name]], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_there_is_a_page_for_every_lab_and_nothing_is_left_out():
    pages = {path.stem for path in (ROOT / "docs/labs").glob("*.md")}
    assert pages == {"index", *LABS}
    assert {name: len(lab(name)["MUTATIONS"]) for name in LABS} == FAULTS


@pytest.mark.parametrize("name", LABS)
def test_the_unbroken_part_fails_nothing(name):
    assert failures(lab(name)["CHECKS"], lab(name)["SUBJECT"]) == {}


@pytest.mark.parametrize(("name", "fault"), [(name, i) for name, count in FAULTS.items() for i in range(count)])
def test_a_fault_breaks_the_checks_that_it_names_and_the_page_says_how(name, fault):
    checks = lab(name)["CHECKS"]
    title, (broken, named) = list(lab(name)["MUTATIONS"].items())[fault]
    found = failures(checks, broken)
    assert set(found) == named, title
    shown = printed(name).partition(f"\n{title}\n")[2].splitlines()
    assert shown, f"{title} is not on the page"
    for check, message in found.items():
        at = shown.index(f"    {check}")
        assert shown[at + 1] == f"        {message}"
    assert failures(checks, lab(name)["SUBJECT"]) == {}, "the fault outlived its test"


@pytest.mark.parametrize("name", LABS)
def test_every_check_can_fail(name):
    named = set().union(*(breaks for _, breaks in lab(name)["MUTATIONS"].values()))
    assert named == set(lab(name)["CHECKS"])
