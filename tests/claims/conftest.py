import subprocess
from pathlib import Path

import pytest

from claims import lexicon
from claims.check import check_text
from claims.facts import Facts
from claims.parse import read
from claims.session import Runner

ROOT = Path(__file__).parents[2]
LEXICON = lexicon.load()


@pytest.fixture(scope="session")
def page():
    """Parse a text as a page of the book, or read the page at a path."""
    return lambda text=None, path="page.md", root=ROOT: read(root, path, LEXICON, text)


@pytest.fixture(scope="session")
def runner(tmp_path_factory):
    with Runner(tmp_path_factory.mktemp("root"), ("matplotlib.pyplot",), time_limit=20) as runner:
        yield runner


@pytest.fixture
def checked(runner):
    """Check a text as a page, with a runner that all tests share."""
    return lambda text, facts=None: check_text(text, "page.md", runner.root, runner, facts or Facts(), LEXICON)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Make a small project of the files given, and be in it."""

    def make(settings="", **files):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "pyproject.toml").write_text(f"[tool.claims]\n{settings}", encoding="utf-8")
        (tmp_path / "docs").mkdir(exist_ok=True)
        for name, text in files.items():
            data = text if isinstance(text, bytes) else text.encode("utf-8")
            (tmp_path / "docs" / f"{name}.md").write_bytes(data)
        return tmp_path

    return make


@pytest.fixture
def small_disk(tmp_path):
    """A file system of one megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"a disk of its own needs the right to mount one: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", folder], check=True)
