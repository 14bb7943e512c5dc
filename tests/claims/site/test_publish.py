"""A build that is killed, that fails or that meets another leaves the last whole site, and the next one is right."""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from claims.site.publish import ABANDONED, begin, finish

MKDOCS = """
site_name: Book
plugins: [search, claims]
hooks: [trouble.py]
markdown_extensions: [claims, pymdownx.superfences]
"""
TROUBLE = """
import os, resource, signal

TROUBLE = os.environ.get("TROUBLE", "")
pages = 0

def strike(moment):
    if TROUBLE == moment:
        os.kill(os.getpid(), signal.SIGKILL)

def on_files(files, config):
    strike("files")
    if TROUBLE == "full":
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 14, 1 << 14))  # files end where a full disk would end them

def on_post_page(output, page, config):
    global pages
    pages += 1
    strike(f"page {pages}")

def on_post_build(config):
    strike("end")
"""
TEXT = "# Page {n}\n\n```python\nn = {n}\n```\n\n[{n}](claim:n)\n"
PAGES = {"index": "# Book\n"} | {f"p{n}": TEXT.format(n=n) for n in range(5)}
KILLED = -signal.SIGKILL


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def book(project) -> Path:
    root = project(**PAGES)
    (root / "mkdocs.yml").write_text(MKDOCS)
    (root / "trouble.py").write_text(TROUBLE)
    return root


def start(book: Path, trouble: str = "") -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "mkdocs", "build", "--strict"],  # with --quiet it would not be strict
        cwd=book,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1", "SOURCE_DATE_EPOCH": "0", "TROUBLE": trouble},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def build(book: Path, trouble: str = "") -> int:
    process = start(book, trouble)
    process.communicate()
    return process.returncode


def told(book: Path, trouble: str = "") -> tuple[int, list[str]]:
    """How a build ended, and what it said but for how far it was."""
    process = start(book, trouble)
    said = process.communicate()[0].splitlines()
    return process.returncode, [line for line in said if line and not line.startswith("INFO")]


def left(book: Path) -> list[str]:
    return [path.name for path in book.glob("site-*")]


@pytest.mark.slow
def test_a_killed_build_leaves_no_half(book: Path) -> None:
    moments = ["files", f"page {random.Random(1).randint(2, 6)}", "end"]
    assert [build(book, moment) for moment in moments] == [KILLED] * 3
    assert not (book / "site").exists()
    assert build(book) == 0
    whole = contents(book / "site")
    assert {"index.html", "p4/index.html", "search/search_index.json", "sitemap.xml"} <= set(whole)

    assert [build(book, moment) for moment in moments] == [KILLED] * 3
    assert contents(book / "site") == whole
    (book / "docs/p4.md").unlink()
    assert build(book) == 0
    assert "p4/index.html" not in contents(book / "site")


@pytest.mark.slow
def test_a_full_disk_leaves_the_last_site(book: Path) -> None:
    assert build(book) == 0
    whole = contents(book / "site")
    code, (said,) = told(book, "full")
    assert code == 1
    assert re.fullmatch(r"Error: claims: the site cannot be written: \[Errno 27\] File too large.*", said)
    assert contents(book / "site") == whole
    assert left(book) == []


@pytest.mark.slow
def test_a_disk_that_is_too_small_for_the_site(small_disk: Path, book: Path) -> None:
    shutil.copytree(book, small_disk, dirs_exist_ok=True, ignore=shutil.ignore_patterns("disk"))
    code, (said,) = told(small_disk)
    assert code == 1
    assert said.startswith("Error: claims: the site cannot be written: [Errno 28] No space left on device")
    assert not (small_disk / "site").exists() and left(small_disk) == []


@pytest.mark.slow
def test_a_disk_that_cannot_be_written(small_disk: Path, book: Path) -> None:
    shutil.copytree(book, small_disk, dirs_exist_ok=True, ignore=shutil.ignore_patterns("disk"))
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    code, said = told(small_disk)
    assert code == 1 and said[1:] == ["Aborted with a BuildError!"]
    assert said[0].startswith(
        "ERROR   -  claims: the site is built beside its place, which fails: [Errno 30] Read-only file system"
    )


@pytest.mark.slow
def test_a_place_that_cannot_be_taken(small_disk: Path, book: Path) -> None:
    """The target is where a disk is mounted, as it is where a container writes its site."""
    (book / "mkdocs.yml").write_text(MKDOCS + "site_dir: disk\n")
    (small_disk / "index.html").write_text("as it was")
    code, (said,) = told(book)
    assert code == 1
    assert said.startswith("Error: claims: the site cannot take its place: [Errno 16] Device or resource busy")
    assert contents(small_disk) == {"index.html": b"as it was"}
    assert list(book.glob("disk-*")) == []


@pytest.mark.slow
def test_warnings_of_a_strict_build_leave_the_last_site(book: Path) -> None:
    assert build(book) == 0
    whole = contents(book / "site")
    (book / "docs/p3.md").write_text(PAGES["p3"] + "\n[to nowhere](nowhere.md)\n")
    code, said = told(book)
    assert code == 1 and said[-1] == "Aborted with 1 warnings in strict mode!"
    assert contents(book / "site") == whole
    assert left(book) == []


@pytest.mark.slow
def test_builds_killed_at_any_moment_leave_a_whole_site(book: Path) -> None:
    assert build(book) == 0
    old = contents(book / "site")
    (book / "docs/p0.md").write_text(PAGES["p0"].replace("# Page", "# The page"))
    begun = time.monotonic()
    assert build(book) == 0
    seconds = time.monotonic() - begun
    whole = [old, contents(book / "site")]
    assert old != whole[1]
    for moment in moments(5):
        killed_after(book, moment * seconds)
        assert contents(book / "site") in whole
    assert build(book) == 0
    assert contents(book / "site") == whole[1]


def moments(number: int) -> list[float]:
    return [random.Random(f"moment {index}").random() for index in range(number)]


def killed_after(book: Path, seconds: float) -> None:
    process = start(book)
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    process.kill()
    process.communicate()


@pytest.mark.slow
def test_a_failed_check_leaves_the_last_site(book: Path) -> None:
    assert build(book) == 0
    whole = contents(book / "site")
    (book / "docs/p3.md").write_text(PAGES["p3"].replace("[3]", "[4]"))
    assert build(book) == 1
    assert contents(book / "site") == whole
    assert left(book) == []


@pytest.mark.slow
def test_two_builds_at_once(book: Path) -> None:
    assert build(book) == 0
    whole = contents(book / "site")
    builds = [start(book) for _ in range(3)]
    for each in builds:
        said = each.communicate()[0].splitlines()
        assert each.returncode == 0 and all(line.startswith("INFO") for line in said), said
    assert contents(book / "site") == whole
    assert left(book) == []


def test_what_is_finished_takes_the_place(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "site"
    for text in ("old", "new"):
        site = begin(target)
        (site / "index.html").write_text(text)
        assert not target.exists() or contents(target) == {"index.html": b"old"}
        finish(site, target)
    assert contents(tmp_path) == {"deep/site/index.html": b"new"}
    assert list(tmp_path.glob("deep/*")) == [target]


def test_the_last_of_two_stays(tmp_path: Path) -> None:
    target = tmp_path / "site"
    first, second = begin(target), begin(target)
    (first / "first").touch()
    (second / "second").touch()
    finish(first, target)
    finish(second, target)
    assert list(contents(tmp_path)) == ["site/second"]


def test_another_that_finishes_meanwhile_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "site"
    site, other = begin(target), begin(target)
    (site / "mine").touch()
    (other / "theirs").touch()
    rename = Path.rename

    def meanwhile(path: Path, to: Path) -> Path:
        if path == site and other.exists():
            rename(other, target)
        return rename(path, to)

    monkeypatch.setattr(Path, "rename", meanwhile)
    finish(site, target)
    assert set(contents(target)) == {"mine"}


def test_what_cannot_take_the_place_says_so(tmp_path: Path) -> None:
    target = tmp_path / "site"
    target.mkdir()
    (target / "old").touch()
    site = begin(target)
    site.rmdir()
    with pytest.raises(FileNotFoundError):
        finish(site, target)
    assert set(contents(target)) == {"old"}


def test_what_was_left_behind_long_ago_is_removed(tmp_path: Path) -> None:
    old, recent = begin(tmp_path / "site").parent, begin(tmp_path / "site").parent
    past = time.time() - ABANDONED - 1
    os.utime(old, (past, past))
    begin(tmp_path / "site")
    assert not old.exists() and recent.exists()
