"""What the cache keeps, what makes it forget, and that nothing breaks it."""

import os
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from claims import cache as module
from claims.cache import KEPT, Cache, environment_salt
from claims.results import BlockResult, Code, Evaluation, Expression, Failure, Program, Result, Value
from claims.session import Runner

PROGRAM = Program(
    "docs/heads.md",
    (Code("print('é')", "docs/heads.md", (("docs/heads.md", 7),)),),
    (Expression("heads", 1),),
)
RESULT = Result(
    blocks=(BlockResult("ran", "é\n", ("<svg/>",)), BlockResult("raised", failure=Failure("error", "E", 0, (), "E"))),
    evaluations=(Evaluation(Value("tuple", "(12,)", (Value("int", "12", shown="12"),), "(12,)")),),
    files=("data/", "src/heads.py"),
    cacheable=True,
    seconds=0.25,
    started=4_000_000_000.0,  # long after any file here was written
)


@pytest.fixture
def root(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "heads.py").write_text("HEADS = 12\n")
    (tmp_path / "data").mkdir()
    return tmp_path


@pytest.fixture
def cache(root):
    return Cache(root / ".cache", root, "salt")


def entries(cache):
    return sorted(cache.folder.iterdir())


def test_a_result_comes_back_as_it_was(cache):
    assert cache.get(PROGRAM) is None
    assert cache.put(PROGRAM, RESULT)
    assert cache.get(PROGRAM) == RESULT
    assert [entry.suffix for entry in entries(cache)] == [".json"]


@pytest.mark.parametrize(
    "other",
    [
        replace(PROGRAM, path="docs/other.md"),
        replace(PROGRAM, blocks=(replace(PROGRAM.blocks[0], source="print('è')"),)),
        replace(PROGRAM, blocks=(replace(PROGRAM.blocks[0], lines=(("docs/heads.md", 8),)),)),
        replace(PROGRAM, blocks=(replace(PROGRAM.blocks[0], raises="ValueError"),)),
        replace(PROGRAM, expressions=(Expression("heads", 0),)),
        replace(PROGRAM, expressions=()),
    ],
)
def test_another_program_is_another_entry(cache, other):
    cache.put(PROGRAM, RESULT)
    assert cache.get(other) is None


def test_another_salt_is_another_cache(cache, root):
    cache.put(PROGRAM, RESULT)
    assert Cache(cache.folder, root, "pepper").get(PROGRAM) is None


def test_a_build_may_trust_itself_alone(cache, root):
    first, own, other = (Cache(cache.folder, root, "salt", build, own=True) for build in ("1", "1", "2"))
    cache.put(PROGRAM, RESULT)
    assert own.get(PROGRAM) is None
    first.put(PROGRAM, RESULT)
    assert own.get(PROGRAM) == RESULT and other.get(PROGRAM) is None
    assert cache.get(PROGRAM) == RESULT


def test_an_edit_is_noticed_even_if_size_and_time_stay(cache, root):
    cache.put(PROGRAM, RESULT)
    source = root / "src" / "heads.py"
    before = source.stat()
    source.write_text("HEADS = 16\n")
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert cache.get(PROGRAM) is None
    source.write_text("HEADS = 12\n")
    assert cache.get(PROGRAM) == RESULT


def test_a_file_that_goes_and_one_that_comes_are_noticed(cache, root):
    result = replace(RESULT, files=("src/heads.py", "src/later.py"))
    cache.put(PROGRAM, result)
    (root / "src" / "later.py").write_text("")
    assert cache.get(PROGRAM) is None
    (root / "src" / "later.py").unlink()
    assert cache.get(PROGRAM) == result
    (root / "src" / "heads.py").unlink()
    assert cache.get(PROGRAM) is None


def test_a_new_name_in_a_listed_folder_is_noticed(cache, root):
    cache.put(PROGRAM, RESULT)
    (root / "data" / ".hidden").write_text("")
    assert cache.get(PROGRAM) == RESULT
    (root / "data" / "new.txt").write_text("")
    assert cache.get(PROGRAM) is None


@pytest.mark.parametrize(
    "result",
    [
        replace(RESULT, cacheable=False),
        replace(RESULT, blocks=(BlockResult("failed", failure=Failure("error", "E")),)),
        replace(RESULT, blocks=(BlockResult("not-run"),)),
        replace(RESULT, evaluations=(Evaluation(None, Failure("unbound", "x")),)),
        replace(RESULT, started=0.0),  # src/heads.py was touched after the page began
    ],
)
def test_what_cannot_be_trusted_is_not_kept(cache, result):
    assert not cache.put(PROGRAM, result)
    assert not cache.folder.exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: data[:-1],
        lambda data: data + b"\n",
        lambda data: data.replace(b'"12"', b'"16"', 1),
        lambda data: b"0" * 64 + data[64:],
        lambda data: b"\x80\xff" + data,
        lambda data: b"[]",
        lambda data: b"null\nnull",
        lambda data: data.partition(b"\n")[2],
    ],
)
def test_a_damaged_entry_is_no_entry_and_is_replaced(cache, damage):
    cache.put(PROGRAM, RESULT)
    (entry,) = entries(cache)
    damaged = damage(entry.read_bytes())
    assert damaged != entry.read_bytes()
    entry.write_bytes(damaged)
    assert cache.get(PROGRAM) is None
    assert cache.put(PROGRAM, RESULT)
    assert cache.get(PROGRAM) == RESULT


@pytest.mark.parametrize("content", ["null", "{}", "[1]", '{"files": 3}', '{"files": {}, "result": {"blocks": [7]}}'])
def test_a_sound_entry_of_another_shape_is_no_entry(cache, content):
    cache.put(PROGRAM, RESULT)
    (entry,) = entries(cache)
    entry.write_text(f"{module._sha256(cache._key(PROGRAM), content)}\n{content}")
    assert cache.get(PROGRAM) is None


def test_an_entry_under_the_name_of_another_is_no_entry(cache):
    other = replace(PROGRAM, expressions=())
    cache.put(PROGRAM, RESULT)
    cache.put(other, replace(RESULT, evaluations=()))
    first, second = entries(cache)
    first.write_bytes(second.read_bytes())
    assert sum(cache.get(program) is None for program in (PROGRAM, other)) == 1


def test_a_folder_that_cannot_be_is_an_empty_cache(root):
    (root / "file").write_text("")
    cache = Cache(root / "file" / "cache", root, "salt")
    assert not cache.put(PROGRAM, RESULT)
    assert cache.get(PROGRAM) is None


def test_an_entry_that_is_a_folder_is_no_entry(cache):
    cache.put(PROGRAM, RESULT)
    (entry,) = entries(cache)
    entry.unlink()
    entry.mkdir()
    assert cache.get(PROGRAM) is None
    assert not cache.put(PROGRAM, RESULT)
    assert entries(cache) == [entry]


def test_a_full_disk_leaves_nothing_behind(cache, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert not cache.put(PROGRAM, RESULT)
    assert entries(cache) == []


def test_old_entries_of_a_page_are_pruned_and_other_pages_kept(cache):
    other = replace(PROGRAM, path="docs/other.md")
    cache.put(other, RESULT)
    programs = [replace(PROGRAM, expressions=(Expression(str(n), 1),)) for n in range(KEPT + 3)]
    for age, program in enumerate(programs):
        cache.put(program, RESULT)
        os.utime(cache._path(program, cache._key(program)), (1000 + age, 1000 + age))
    cache.put(PROGRAM, RESULT)
    kept = [program for program in programs if cache.get(program)]
    assert kept == programs[-(KEPT - 1) :]
    assert cache.get(PROGRAM) and cache.get(other)


def test_what_a_killed_build_left_goes_in_the_end(cache):
    cache.put(PROGRAM, RESULT)
    fresh, stale = cache.folder / ".fresh.json.tmp", cache.folder / ".stale.json.tmp"
    for path in (fresh, stale):
        path.write_text("half an ent")
    os.utime(stale, (1000, 1000))
    cache.put(PROGRAM, RESULT)
    assert fresh.exists() and not stale.exists()


def test_builds_at_the_same_time_do_not_disturb_each_other(cache):
    programs = [replace(PROGRAM, expressions=(Expression(str(n % 3), 1),)) for n in range(60)]
    with ThreadPoolExecutor(8) as pool:
        kept = list(pool.map(lambda program: cache.put(program, RESULT), programs))
        found = list(pool.map(cache.get, programs))
    assert all(kept)
    assert found == [RESULT] * 60


def test_the_salt_is_stable_and_knows_what_is_preloaded():
    assert environment_salt(("torch",)) == environment_salt(("torch",))
    assert environment_salt(("torch",)) != environment_salt(())
    assert re.fullmatch("[0-9a-f]{64}", environment_salt())


def test_the_salt_knows_what_is_installed(tmp_path, monkeypatch):
    before = environment_salt()
    (tmp_path / "torch-9.9.9.dist-info").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    assert environment_salt() != before


def test_the_salt_knows_the_source_of_the_checker(tmp_path, monkeypatch):
    (tmp_path / "cache.py").write_text("1\n")
    monkeypatch.setattr(module, "__file__", str(tmp_path / "cache.py"))
    before = environment_salt()
    (tmp_path / "cache.py").write_text("2\n")
    assert environment_salt() != before


def test_a_page_that_waited_for_the_server_began_when_its_own_process_did(root, tmp_path_factory, monkeypatch):
    slow = tmp_path_factory.mktemp("elsewhere")
    (slow / "slow.py").write_text("import time\ntime.sleep(1)\n")
    monkeypatch.setenv("PYTHONPATH", str(slow))
    page = replace(PROGRAM, blocks=(Code("open('data/new.txt')", PROGRAM.path, ((PROGRAM.path, 1),)),), expressions=())
    with Runner(root, ("slow",)) as runner:
        (root / "data" / "new.txt").write_text("as the page will see it")
        result = runner.run(page)
    assert result.files == ("data/new.txt",)
    assert Cache(root / ".cache", root, environment_salt()).put(page, result)


def test_an_edit_of_an_imported_module_runs_the_page_again(root):
    source = "import sys\nsys.path.insert(0, 'src')\nimport heads\nprint(heads.HEADS)"
    page = replace(PROGRAM, blocks=(Code(source, PROGRAM.path, tuple((PROGRAM.path, n) for n in range(4))),))
    page = replace(page, expressions=(Expression("heads.HEADS", 1),))
    other = replace(page, path="docs/other.md", blocks=(replace(page.blocks[0], source="heads = 1"),), expressions=())
    os.utime(root / "src" / "heads.py", (1_700_000_000, 1_700_000_000))
    cache = Cache(root / ".cache", root, environment_salt())
    with Runner(root) as runner:
        first, second = runner.run(page), runner.run(other)
        # As a build would see it that begins well after the last edit.
        assert cache.put(page, replace(first, started=first.started + 1))
        assert cache.put(other, second)
        assert cache.get(page).blocks[0].output == "12\n"
        (root / "src" / "heads.py").write_text("HEADS = 16\n")
        assert cache.get(page) is None
        assert cache.get(other) == second
        assert runner.run(page).evaluations[0].value.text == "16"
