"""README.md and CONTRIBUTING.md do what they say: their blocks run, and the commands they name exist."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from pytest_codeblocks import CodeBlock, extract_from_file

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
BLOCKS = [block for page in PAGES for block in extract_from_file(page) if block.syntax == "python"]


def test_blocks_are_found() -> None:
    assert len(BLOCKS) == 1


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"line {block.lineno}")
def test_a_block_runs_and_prints_what_the_page_shows(block: CodeBlock) -> None:
    done = subprocess.run([sys.executable, "-c", block.code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (block.expected_output or "")


def checked(page: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "docs").mkdir(exist_ok=True)
    (folder / "docs" / "page.md").write_text(page, "utf-8")
    (folder / "pyproject.toml").write_text("[tool.claims]\n")
    return subprocess.run([sys.executable, "-m", "claims", "check"], cwd=folder, capture_output=True, text=True)


def test_the_example_of_a_checked_number_is_true(tmp_path: Path) -> None:
    [example] = re.findall(r"^````markdown\n(.*?)^````$", (ROOT / "README.md").read_text("utf-8"), re.M | re.S)
    right = checked(f"# Example\n\n{example}", tmp_path)
    assert right.returncode == 0, right.stdout
    wrong = checked(f"# Example\n\n{example.replace('128 KiB', '131 KiB')}", tmp_path)
    assert wrong.returncode == 1
    assert "docs/page.md:7:89: drift" in wrong.stdout
    assert "131 KiB" in wrong.stdout and "131,072" in wrong.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_make_command_exists(page: Path) -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    named = set(re.findall(r"(?:^\$ |`)make (\w+)", page.read_text("utf-8"), re.M))
    assert named
    assert named - targets == set()


def test_every_dependency_is_justified_and_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [
        *project["dependencies"],
        *(name for group in project["optional-dependencies"].values() for name in group),
    ]
    names = {re.match(r"[\w-]+", name)[0].lower() for name in wanted}
    section = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## Dependencies")[2]
    table = re.findall(r"^\| ([\w, -]+) \|", section, re.M)
    justified = {name for row in table[1:] for name in row.split(", ")}
    pinned = {
        line.partition("==")[0].lower().replace("_", "-") for line in (ROOT / "constraints.txt").read_text().split()
    }
    assert justified == names
    assert names - pinned == set()


def test_the_version_is_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.M)[1] == project["version"]
