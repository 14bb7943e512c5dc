import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time

import pytest

from claims.cache import CLOCK_TICK
from claims.check import check
from claims.project import find

BAD = "```python\nx = 12\n```\n\nOf [13](claim:x) and [14](claim:x).\n"
GOOD = "```python\nx = 12\n```\n\nOf [12](claim:x).\n"


def claims(*arguments, **more):
    environment = {**os.environ, **more.pop("env", {})}
    return subprocess.run(
        [sys.executable, "-m", "claims", *arguments], capture_output=True, text=True, env=environment, **more
    )


def test_all_findings_of_all_pages_in_one_run(project):
    project(a=BAD, b=BAD, c=GOOD)
    run = claims("check")
    assert run.returncode == 1
    assert [line.split(" ")[0] for line in run.stdout.splitlines() if ": drift: " in line] == [
        "docs/a.md:5:5:",
        "docs/a.md:5:23:",
        "docs/b.md:5:5:",
        "docs/b.md:5:23:",
    ]
    assert run.stdout.splitlines()[-1] == "3 pages, 5 claims, 0 citations, 3 blocks, 0 figures checked; 4 findings"
    assert run.stderr == ""


def test_json(project):
    root = project(a=BAD)
    data = json.loads(claims("check", "--json").stdout)
    assert data["counts"] == {"pages": 1, "claims": 2, "citations": 0, "blocks": 1, "figures": 0, "waived": 0}
    assert data["findings"][0] == {
        "path": "docs/a.md",
        "line": 5,
        "column": 5,
        "end_column": 7,
        "slug": "drift",
        "message": "the text says 13, the code gives 12",
        "hint": "",
    }
    inside = json.loads(claims("check", "--json", "a.md", cwd=root / "docs").stdout)
    assert inside["findings"][0]["path"] == "a.md"


def test_exit_codes(project):
    project(a=GOOD)
    assert claims("check").returncode == 0
    for arguments in (["check", "none.md"], ["check", "/"], ["check", "--nonsense"], ["nonsense"]):
        run = claims(*arguments)
        assert run.returncode == 2 and "Traceback" not in run.stderr


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("doc = 'x'", "tool.claims.doc: unknown"),
        ("docs = 3", "tool.claims.docs: must be a string, got 3"),
        ("time_limit = 0", "must be a number above 0"),
        ("preload = 'torch'", "must be a list of strings"),
        ("docs = [", "pyproject.toml"),
        ("lexicon = 'none.toml'", "none.toml"),
    ],
)
def test_what_cannot_be_checked_is_one_line(project, settings, message):
    project(settings, a=GOOD)
    run = claims("check")
    assert run.returncode == 2 and message in run.stderr and run.stderr.count("\n") == 1


def test_no_project(tmp_path):
    run = claims("check", cwd=tmp_path)
    assert run.returncode == 2
    assert run.stderr == f"claims: no pyproject.toml with a [tool.claims] table at {tmp_path} or above it\n"


def test_list_shows_every_claim(project):
    project(a=GOOD)
    assert claims("list").stdout.splitlines()[0] == "docs/a.md:5:5: 12 = x = 12"


def test_pages_without_a_change_are_not_run_again(project):
    root = project(a=GOOD, b="```python\ny = 3\n```\n")
    (root / "docs" / "notes.txt").write_text("no page")
    time.sleep(4 * CLOCK_TICK)  # a page that begins in the same tick as an edit is not kept
    first = check(find(root))
    again = check(find(root))
    assert [page.cached for page in first.pages] == [False, False]
    assert [page.cached for page in again.pages] == [True, True]
    (root / "docs" / "a.md").write_text(GOOD + "\nMore words.\n")
    assert [page.cached for page in check(find(root)).pages] == [True, True]  # words run nothing
    (root / "docs" / "a.md").write_text(GOOD.replace("x = 12", "x = 13"))
    assert [page.cached for page in check(find(root)).pages] == [False, True]
    assert [page.cached for page in check(find(root), cold=True).pages] == [False, False]


def test_a_page_as_it_was_is_the_same_object_again(project):
    reads, cited = "```python\ny = open('sizes.txt').read()\n```\n", "Of [2.5](cite:lind2031.loss).\n"
    settings = 'facts = "f.toml"\nbibliography = "b.bib"\nlexicon = "words.toml"'
    root = project(settings, a=GOOD, b=reads, c=cited)
    (root / "words.toml").write_text("")
    (root / "sizes.txt").write_text("3")
    (root / "b.bib").write_text("@misc{lind2031, title={Loss}}\n")
    (root / "f.toml").write_text('[lind2031.loss]\nvalue = 2.5\nwhere = "Table 1"\n')
    time.sleep(4 * CLOCK_TICK)
    last = check(find(root))
    assert last.findings == []

    def kept():
        report = check(find(root), last=last)
        return [page is before for page, before in zip(report.pages, last.pages, strict=True)], report.findings

    assert kept() == ([True, True, True], [])
    (root / "docs" / "a.md").write_text(GOOD.replace("[12]", "[13]"))
    (root / "sizes.txt").write_text("4")
    same, findings = kept()
    assert same == [False, False, True] and [finding.slug for finding in findings] == ["drift"]
    (root / "f.toml").write_text('[lind2031.loss]\nvalue = 2.6\nwhere = "Table 1"\n')
    same, findings = kept()
    assert same == [False, False, False] and [finding.slug for finding in findings] == ["drift", "drift"]
    (root / "f.toml").write_text('[lind2031.loss]\nvalue = 2.5\nwhere = "Table 1"\n')
    (root / "words.toml").write_text('names = ["sizes? 7"]\n')
    assert kept()[0] == [False, False, False]


def test_ci_runs_cold(project, monkeypatch):
    root = project(a=GOOD)
    check(find(root))
    monkeypatch.setenv("CI", "true")
    assert [page.cached for page in check(find(root)).pages] == [False]
    assert [page.cached for page in check(find(root)).pages] == [False]


def test_what_the_same_build_computed_is_taken_in_ci_too(project, monkeypatch):
    root = project(a=GOOD)
    check(find(root))
    monkeypatch.setenv("CI", "true")
    for build in ("1764423000-1", "1764423000-2"):
        monkeypatch.setenv("CLAIMS_BUILD", build)
        assert [page.cached for page in check(find(root)).pages] == [False]
        assert [page.cached for page in check(find(root)).pages] == [True]
        assert [page.cached for page in check(find(root), cold=True).pages] == [False]


@pytest.mark.parametrize("harm", ["damaged", "a file", "read-only", "full"])
def test_a_cache_that_is_of_no_use_changes_nothing(project, harm):
    root = project(a=GOOD, b=BAD)
    assert claims("check").returncode == 1
    cache = root / ".cache" / "claims"
    if harm == "damaged":
        for entry in cache.iterdir():
            entry.write_bytes(entry.read_bytes()[:-20] + b"\xff")
    elif harm == "a file":
        for entry in cache.iterdir():
            entry.unlink()
        cache.rmdir()
        cache.write_text("in the way")
    elif harm == "read-only":
        cache.chmod(stat.S_IRUSR | stat.S_IXUSR)
    else:
        for entry in cache.iterdir():
            entry.unlink()
        cache.rmdir()
        cache.symlink_to("/dev/full/none")
    run = claims("check")
    cache.chmod(stat.S_IRWXU) if harm == "read-only" else None
    assert run.returncode == 1 and run.stderr == ""
    assert run.stdout.splitlines()[-1].endswith("; 2 findings")


def test_two_checks_at_once(project):
    root = project(**{f"page{i}": GOOD.replace("12", str(20 + i)) for i in range(4)})
    command = [sys.executable, "-m", "claims", "check"]
    both = [subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [run.communicate()[0].splitlines()[-1].endswith("; 0 findings") for run in both] == [True, True]


def test_ctrl_c_ends_in_one_line_and_leaves_no_process(project):
    mark = f"mark-{os.getpid()}-{time.time_ns()}"
    root = project(a=f"```python\nimport pathlib, time\n\npathlib.Path('{mark}').touch()\ntime.sleep(100)\n```\n")
    run = subprocess.Popen(
        [sys.executable, "-m", "claims", "check"],
        cwd=root,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background shell hands on "ignore"
    )
    while not (root / mark).exists():
        assert run.poll() is None
        time.sleep(0.05)
    run.send_signal(signal.SIGINT)
    assert run.communicate(timeout=60)[1] == "claims: interrupted\n"
    assert run.returncode == 2
    deadline = time.monotonic() + 30
    while alive(root) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert alive(root) == []


def alive(root):
    """Processes that work in a folder."""
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{process}/cwd") == str(root) and int(process) != os.getpid():
                found.append(process)
        except OSError:
            pass
    return found


def test_output_in_a_narrow_encoding(project):
    project(a="[≈ 13](claim:12) é 漢\n")
    run = claims("check", env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert run.returncode == 1 and "Traceback" not in run.stderr


@pytest.mark.parametrize("arguments", [["check"], ["check", "--json"], ["list"]])
def test_a_report_for_which_there_is_no_room_is_one_line(project, arguments):
    project(a=GOOD)
    with open("/dev/full", "w") as full:
        run = subprocess.run(
            [sys.executable, "-m", "claims", *arguments], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert (run.returncode, run.stderr) == (2, "claims: [Errno 28] No space left on device\n")


def test_a_reader_who_has_enough_is_no_fault(project):
    project(a=BAD * 2000)
    command = f"{sys.executable} -m claims check | head -1"
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert run.stdout.startswith("docs/a.md:5:5: drift: ") and run.stderr == ""


def test_a_full_disk_changes_no_finding(project):
    """Neither the cache nor a temporary file nor compiled Python finds room."""
    project(a=GOOD, b=BAD)
    limit = f"ulimit -f 0; trap '' XFSZ; {sys.executable} -m claims check"  # no file may grow, a pipe may
    run = subprocess.run(["bash", "-c", limit], capture_output=True, text=True)
    assert run.returncode == 1 and run.stderr == ""
    assert run.stdout.splitlines()[-1] == "2 pages, 3 claims, 0 citations, 2 blocks, 0 figures checked; 2 findings"


def test_a_tree_that_cannot_be_written_is_checked_all_the_same(project, small_disk):
    root = project(a=GOOD, b=BAD)
    for name in ("pyproject.toml", "docs"):
        shutil.move(root / name, small_disk / name)
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    run = claims("check", cwd=small_disk)
    assert run.returncode == 1 and run.stderr == ""
    assert run.stdout.splitlines()[-1].endswith("; 2 findings")


@pytest.mark.parametrize("days", [-1, 0, 1])
def test_an_edit_is_seen_whatever_the_clock_says(project, days):
    """A file may be newer than now, where the clock was set back or the file comes from elsewhere."""
    root = project(
        a="```python\nimport sys\n\nsys.path.insert(0, 'src')\nimport sizes\n```\n\n[64](claim:sizes.WIDTH)\n"
    )
    (root / "src").mkdir()
    source = root / "src" / "sizes.py"
    for width in (64, 96, 64, 32):
        source.write_text(f"WIDTH = {width}\n")
        moment = time.time() + days * 86_400 + width / 1000
        os.utime(source, (moment, moment))
        findings = check(find(root)).findings
        assert [finding.slug for finding in findings] == ([] if width == 64 else ["drift"])
