"""Mutation testing: change one place of a module, run the tests that concern it, and expect one of them to fail.

    python tests/mutation/mutants.py                      every subject of mutation.toml
    python tests/mutation/mutants.py budget literal       those whose path holds a word
    python tests/mutation/mutants.py --sample 50 budget   a seeded sample

Cosmic Ray makes the mutants. They run in a copy of the repository, one at a time, each in a process forked from this
one, which has imported the heavy libraries and nothing of the project. A mutant that survives must be explained in
mutation.toml; an explanation that no survivor needs is a fault too.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads(Path(__file__).with_name("mutation.toml").read_text("utf-8"))


@dataclass(frozen=True)
class Mutant:
    """One change: where it stands, the line as it was and as it is, and the whole text with it."""

    path: str
    line: int
    operator: str
    old: str
    new: str
    text: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(f"{self.path}\n{self.text}".encode()).hexdigest()

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.operator}\n    - {self.old}\n    + {self.new}"


def mutants(path: str, text: str) -> Iterator[Mutant]:
    """All mutants of a module, but for what is never evaluated: annotations, and what the settings leave out."""
    from cosmic_ray.ast import ast_nodes, get_ast  # which only `make mutants` installs
    from cosmic_ray.plugins import get_operator, operator_names

    tree, quiet = get_ast(text), annotations(text)
    wanted = re.compile("|".join(SETTINGS["operators"]))
    seen = {text}
    for name in operator_names():
        short = name.removeprefix("core/")
        if not wanted.fullmatch(short):
            continue
        operator = get_operator(name)()
        places = [place for node in ast_nodes(tree) for place in operator.mutation_positions(node)]
        for occurrence, (start, _) in enumerate(places):
            if any(first <= start < last for first, last in quiet):
                continue
            changed = mutated(text, operator, occurrence)
            if changed in seen or not compiles(changed):
                continue
            seen.add(changed)
            old, new = difference(text, changed)
            yield Mutant(path, start[0], short, old, new, changed)


def mutated(text: str, operator: object, occurrence: int) -> str:
    """The text with one mutation, or as it is where Cosmic Ray knows none."""
    from cosmic_ray.mutating import mutate_code

    try:
        return mutate_code(text, operator, occurrence) or text
    except AttributeError:  # the exception replacer cannot take an exception with a dot in its name
        return text


def annotations(text: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where a module that postpones the evaluation of annotations has them, as positions from and up to."""
    tree = ast.parse(text)
    if "from __future__ import annotations" not in text:
        return []
    found: list[ast.expr | None] = []
    for node in ast.walk(tree):
        found += [getattr(node, "annotation", None), getattr(node, "returns", None)]
    return [((n.lineno, n.col_offset), (n.end_lineno or 0, n.end_col_offset or 0)) for n in found if n is not None]


def compiles(text: str) -> bool:
    try:
        compile(text, "mutant", "exec")
    except SyntaxError:
        return False
    return True


def difference(old: str, new: str) -> tuple[str, str]:
    """The lines that differ, stripped."""
    before, after = old.split("\n"), new.split("\n")
    while before and after and before[0] == after[0]:
        del before[0], after[0]
    while before and after and before[-1] == after[-1]:
        del before[-1], after[-1]
    return " ".join(filter(None, map(str.strip, before))), " ".join(filter(None, map(str.strip, after)))


class Killed:
    """Mutants known to be noticed, kept in a file if one is given, so that a second run tries only the others."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.digests = set(path.read_text("ascii").split()) if path and path.exists() else set()

    def __contains__(self, mutant: Mutant) -> bool:
        return mutant.digest in self.digests

    def add(self, mutant: Mutant) -> None:
        self.digests.add(mutant.digest)
        if self.path:
            with self.path.open("a", encoding="ascii") as file:
                file.write(f"{mutant.digest}\n")


# --- running --------------------------------------------------------------------------------------------------------


def copied(folder: Path) -> Path:
    """A copy of what is in the repository and what git does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def prepare(copy: Path) -> None:
    """Import what the tests need, but for the project itself, which each run then imports from the copy."""
    os.chdir(copy)
    os.environ |= {"PYTHONPATH": str(copy / "src"), "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    sys.path[:0] = [str(copy / "src")]
    for name in SETTINGS["preload"]:
        importlib.import_module(name)
    hypothesis.settings.register_profile("mutants", deadline=None, derandomize=True, database=None)
    hypothesis.settings.load_profile("mutants")


class QuickestFirst:
    """Runs the tests in the order of the time that each took in the first run, which this keeps in a file."""

    def __init__(self, path: Path) -> None:
        self.path, self.taken = path, {}
        self.seconds = json.loads(path.read_text("utf-8")) if path.exists() else {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: self.seconds.get(item.nodeid, 0))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.taken[report.nodeid] = self.taken.get(report.nodeid, 0) + report.duration

    def pytest_sessionfinish(self) -> None:
        if not self.seconds:
            self.path.write_text(json.dumps(self.taken), "utf-8")


def tests_pass(tests: list[str], limit: float, log: Path) -> bool:
    """Whether the tests pass in a process of their own; one that takes too long does not."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(output, 1)
            os.dup2(output, 2)
            code = int(pytest.main(["-x", "-p", "no:cacheprovider", *tests], [QuickestFirst(log.with_suffix(".json"))]))
        except BaseException:
            code = 99
        os._exit(code)
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.02)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return False


def survivors(copy: Path, subject: dict, sample: int, killed: Killed) -> tuple[list[Mutant], int]:
    """The mutants of one module that no test notices, and how many were tried."""
    path, tests, log = subject["module"], subject["tests"], copy / "pytest.log"
    module = copy / path
    text = module.read_text("utf-8")
    all_mutants = list(mutants(path, text))
    chosen = random.Random(path).sample(all_mutants, min(sample, len(all_mutants))) if sample else all_mutants
    if not (limit := baseline(tests, log)):
        raise SystemExit(f"{path}: its tests fail as it is:\n{log.read_text('utf-8')}")
    found = []
    for number, mutant in enumerate(chosen, 1):
        if mutant in killed:
            continue
        shutil.rmtree(module.parent / "__pycache__", ignore_errors=True)
        module.write_text(mutant.text, "utf-8")
        if tests_pass(tests, limit, log):
            found.append(mutant)
            print(f"{number} of {len(chosen)} survived: {mutant}", flush=True)
        else:
            killed.add(mutant)
    module.write_text(text, "utf-8")
    shutil.rmtree(module.parent / "__pycache__", ignore_errors=True)
    return found, len(chosen)


def baseline(tests: list[str], log: Path) -> float:
    """How long a mutant may take; 0 where the tests fail without one."""
    log.with_suffix(".json").unlink(missing_ok=True)
    begun = time.monotonic()
    return 30 + 10 * (time.monotonic() - begun) if tests_pass(tests, 3600, log) else 0


class Explanations:
    """Why survivors are no faults, as mutation.toml says; it knows which of its entries were needed."""

    def __init__(self, entries: list[dict]) -> None:
        self.entries = [(each["module"], each["old"], new) for each in entries for new in each["new"]]
        self.needed: set[tuple[str, str, str]] = set()

    def cover(self, mutant: Mutant) -> bool:
        found = [
            (module, old, new)
            for module, old, new in self.entries
            if module == mutant.path and old in mutant.old and mutant.old.replace(old, new) == mutant.new
        ]
        self.needed |= set(found)
        return bool(found)

    def idle(self, modules: set[str]) -> list[tuple[str, str, str]]:
        return [entry for entry in self.entries if entry[0] in modules and entry not in self.needed]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*", help="only subjects whose path holds one of them")
    parser.add_argument("--sample", type=int, default=0, help="so many mutants of each module; all by default")
    parser.add_argument("--again", type=Path, help="a file of mutants killed earlier, which are not run again")
    given = parser.parse_args()
    subjects = [s for s in SETTINGS["subject"] if not given.words or any(word in s["module"] for word in given.words)]
    killed, explanations, rows = Killed(given.again), Explanations(SETTINGS["equivalent"]), []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = copied(Path(folder))
        prepare(copy)
        for subject in subjects:
            left, tried = survivors(copy, subject, given.sample, killed)
            bare = [mutant for mutant in left if not explanations.cover(mutant)]
            rows.append((subject["module"], tried, tried - len(left), len(left) - len(bare), len(bare)))
            print("".join(f"unexplained: {mutant}\n" for mutant in bare) + shown(*rows[-1]), flush=True)
    idle = [] if given.sample else explanations.idle({module for module, *_ in rows})
    for module, old, new in idle:
        print(f"{module}: no survivor needs the explanation of {old!r} -> {new!r}")
    print("\n".join(shown(*row) for row in rows))
    return 1 if idle or any(row[-1] for row in rows) else 0


def shown(module: str, tried: int, killed: int, equivalent: int, left: int) -> str:
    score = killed / (tried - equivalent) if tried > equivalent else 1
    return f"{module:<32} {tried:>5} mutants {killed:>5} killed {equivalent:>4} equivalent {left:>4} left  {score:.1%}"


if __name__ == "__main__":
    raise SystemExit(main())
