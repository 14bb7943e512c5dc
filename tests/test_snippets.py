"""Each program under snippets/ runs by itself, and each file there is shown or read by some page."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SNIPPETS = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("snippets/[!.]*/*"))
PROGRAMS = [name for name in SNIPPETS if name.endswith(".py")]

RUN_EACH = """
import contextlib, json, runpy, sys
from matplotlib import pyplot
failures = {}
for name in sys.argv[1:]:
    with contextlib.redirect_stdout(sys.stderr):
        try:
            runpy.run_path(name, run_name="__main__")
        except BaseException as error:
            failures[name] = f"{type(error).__name__}: {error}"
    pyplot.close("all")
print(json.dumps(failures))
"""


def failures(programs, folder=ROOT):
    """Run each program in a fresh namespace: what went wrong, by name."""
    command = [sys.executable, "-c", RUN_EACH, *programs]
    environment = {"MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1", "PATH": ""}
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def test_each_program_runs_by_itself():
    assert len(PROGRAMS) >= 25
    assert failures(PROGRAMS) == {}


def test_a_program_that_needs_its_page_is_found(tmp_path):
    (tmp_path / "whole.py").write_text("there = 1\nprint(there)\n")
    (tmp_path / "needy.py").write_text("print(there)\n")
    (tmp_path / "quits.py").write_text("raise SystemExit(0)\n")
    found = failures(["whole.py", "needy.py", "quits.py"], tmp_path)
    assert found == {"needy.py": "NameError: name 'there' is not defined", "quits.py": "SystemExit: 0"}


def test_every_file_is_used_by_a_page():
    pages = "\n".join(path.read_text("utf-8") for path in sorted((ROOT / "docs").rglob("*.md")))
    assert [name for name in SNIPPETS if f'"{name}"' not in pages] == []
