"""The blocks of every page, found by pytest-codeblocks and run without our checker: it must have run as many."""

import io
import json
import os
import re
import subprocess
import sys

import pytest
from pytest_codeblocks import extract_from_buffer

from claims import source
from claims.parse import read
from claims.project import find

pytestmark = pytest.mark.slow

PROJECT = find()
FENCE = re.compile(r"^([ \t]*`{3,})python([^\n`]*)$", re.M)
DRIVER = """\
import json, linecache, os, sys, traceback
import matplotlib.pyplot, sympy, torch

def run(blocks):
    '''How many blocks did what they should, and what the first other one raised.'''
    page = type(sys)("__main__")
    sys.modules["__main__"] = page
    for number, (code, raises) in enumerate(blocks):
        try:
            name = f"<block {number + 1}>"
            linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
            exec(compile(code, name, "exec", dont_inherit=True), page.__dict__)
            error = f"{raises} was not raised" if raises else None
        except Exception as raised:
            known = [kind.__name__ for kind in type(raised).__mro__]
            error = None if raises in known else traceback.format_exc()
        matplotlib.pyplot.close("all")
        if error:
            return number, f"block {number + 1}: {error}"
    return len(blocks), None

torch.set_num_threads(1)
pages = json.load(sys.stdin)
running, done = {}, {}

def collect():
    path = running.pop(os.wait()[0])
    done[path] = json.load(open(f"{sys.argv[1]}/{path.replace('/', '+')}"))

for path, blocks in pages.items():
    if len(running) == int(sys.argv[2]):
        collect()
    pid = os.fork()
    if pid == 0:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        torch.manual_seed(0)
        answer = run(blocks)
        with open(f"{sys.argv[1]}/{path.replace('/', '+')}", "w") as file:
            json.dump(answer, file)
        os._exit(0)
    running[pid] = path
while running:
    collect()
json.dump(done, sys.stdout)
"""


def blocks(path: str) -> list[tuple[str, str | None]]:
    """The page's blocks that run, each with the exception that it must raise, as pytest-codeblocks finds them."""
    text = source.read(PROJECT.root, path).text
    infos = [info for _, info in FENCE.findall(text)]
    found = [
        block for block in extract_from_buffer(io.StringIO(FENCE.sub(r"\1python", text))) if block.syntax == "python"
    ]
    assert len(found) == len(infos), path
    raised = [re.search(r'\braises="(\w+)"', info) for info in infos]
    return [
        (block.code, name and name[1])
        for block, info, name in zip(found, infos, raised, strict=True)
        if ' static="' not in info
    ]


def ours(path: str) -> int:
    """How many blocks of the page our checker runs."""
    return sum(block.runs for block in read(PROJECT.root, path, PROJECT.words).python)


PAGES = [path for path in PROJECT.pages() if blocks(path)]


def test_all_blocks_run_outside_the_checker(tmp_path) -> None:
    pages = {path: blocks(path) for path in PAGES}
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(tmp_path), str(os.cpu_count() or 1)],
        input=json.dumps(pages),
        env=os.environ | {"MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"},
        cwd=PROJECT.root,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    assert {path: error for path, (_, error) in answers.items() if error} == {}
    assert {path: ran for path, (ran, _) in answers.items()} == {path: ours(path) for path in PAGES}


def test_a_block_that_fails_is_seen(tmp_path) -> None:
    pages = {"a/b.md": [["x = 1\nprint(x)", None], ["1 / 0", "ArithmeticError"], ["x + y", None], ["z = 1", None]]}
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(tmp_path), "1"], input=json.dumps(pages), capture_output=True, text=True
    )
    ran, error = json.loads(done.stdout)["a/b.md"]
    assert ran == 2 and "block 3" in error and "name 'y' is not defined" in error
