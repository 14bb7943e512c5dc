"""The promise: one number changed, in the text or in the code, and neither the check nor the build goes through."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from claims.check import check
from claims.project import find

pytestmark = pytest.mark.slow

CHAPTER = "docs/decisions/heads-and-cache.md"
CHANGES = {
    "KiB": (
        CHAPTER,
        "[128 KiB](claim:per_token)",
        "[131 KiB](claim:per_token)",
        ["131 KiB (134,144 bytes)", "128 KiB"],
    ),
    "bytes": (CHAPTER, "[4,096](claim:per_layer)", "[4,097](claim:per_layer)", ["4,097", "4,096"]),
    "unit": (CHAPTER, "[128 KiB](claim:per_token)", "[128 KB](claim:per_token)", ["KB is neither", "1,000 bytes"]),
    "kv_heads": (CHAPTER, "heads=32, kv_heads=8, head", "heads=32, kv_heads=4, head", ["131,072", "65,536"]),
    "formula": ("src/decoder/budget.py", "(1 - a) * 2 * K * h", "(1 - a) * 3 * K * h", ["36,864", "55,296"]),
}  # what is changed, and what the message must name


def run(book: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(book / "src"), "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=book, env=environment, capture_output=True, text=True, timeout=600
    )


def check_and_build(book: Path) -> list[subprocess.CompletedProcess[str]]:
    return [run(book, "claims", "check"), run(book, "mkdocs", "build", "--strict")]


@pytest.fixture(scope="module")
def sound(book: Path) -> Path:
    """The copy, of which it is known that it passes as it is."""
    checked, built = check_and_build(book)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert built.returncode == 0, built.stdout + built.stderr
    assert 'value="131072"' in (book / "site" / "decisions/heads-and-cache/index.html").read_text("utf-8")
    return book


@pytest.mark.parametrize("change", CHANGES)
def test_one_change_stops_the_check_and_the_build(sound: Path, edit, change: str) -> None:
    name, old, new, values = CHANGES[change]
    edit(name, old, new)
    text = (sound / CHAPTER).read_text("utf-8")
    for done in check_and_build(sound):
        said = done.stdout + done.stderr
        assert done.returncode == 1, said
        found = re.findall(rf"^(?:ERROR +- +)?{CHAPTER}:(\d+):\d+: (?:drift|bad-literal): (.*)$", said, re.M)
        assert any(all(value in message for value in values) for _, message in found), said
        if name == CHAPTER and new.startswith("["):
            assert str(text[: text.index(new)].count("\n") + 1) in [line for line, _ in found]


def cached(book: Path) -> dict[str, bool]:
    report = check(find(book), cold=False)
    assert report.findings == []
    return {page.path: page.cached for page in report.pages}


def test_only_what_an_edit_concerns_runs_again(sound: Path, edit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(sound / "src"))
    monkeypatch.chdir(sound)
    assert run(sound, "claims", "check").returncode == 0
    assert cached(sound) == {"docs/decisions/heads-and-cache.md": True, "docs/index.md": True}
    edit("src/decoder/attention.py", '"""', '"""\n')  # the chapter imports it, the first page does not
    assert cached(sound) == {"docs/decisions/heads-and-cache.md": False, "docs/index.md": True}
    assert cached(sound) == {"docs/decisions/heads-and-cache.md": True, "docs/index.md": True}
    edit("src/decoder/budget.py", '"""', '"""\n')
    assert cached(sound) == {"docs/decisions/heads-and-cache.md": False, "docs/index.md": False}
