"""The site, built once for all tests that look at it, and a browser to read it with where there is one."""

import functools
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from filelock import FileLock
from playwright.sync_api import Browser, sync_playwright

from claims.site import paper

ROOT = Path(__file__).parents[2]
SOURCES = ["mkdocs.yml", "pyproject.toml", "constraints.txt", "docs", "snippets", "src"]
ENVIRONMENT = {"NO_MKDOCS_2_WARNING": "1", "SITE_URL": "", "SOURCE_DATE_EPOCH": "0"}
ELSEWHERE = {"PYTHONHASHSEED": "7", "TZ": "Pacific/Kiritimati", "LC_ALL": "C", "COLUMNS": "40"}
CHROMIUM_OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One temporary folder for all worker processes of this run."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session")
def site(shared_folder: Path) -> Path:
    """The folder that `mkdocs build --strict` makes."""
    return built_once(shared_folder / "site", build_with_mkdocs)


@pytest.fixture(scope="session")
def site_elsewhere(shared_folder: Path) -> Path:
    """The same from a copy at another path, without a cache, on another day, in another order of sets."""

    def build(target: Path) -> None:
        project = copied(shared_folder / "a longer path" / "to the book")
        environment = ELSEWHERE | {"PYTHONPATH": str(project / "src")}
        run(["decoder", "assets"], project, **environment)
        run(["mkdocs", "build", "--strict", "--site-dir", str(target)], project, **environment)

    return built_once(shared_folder / "site-elsewhere", build)


@pytest.fixture(scope="session")
def zensical_site(shared_folder: Path) -> Path:
    """The folder that Zensical makes from the same mkdocs.yml."""

    def build(target: Path) -> None:
        project = copied(shared_folder / "zensical")
        own = {"PYTHONPATH": str(project / "src")}
        run(["decoder", "assets"], project, **own)
        run(["zensical", "build"], project, **own)
        (project / "site").rename(target)

    return built_once(shared_folder / "zensical-site", build)


@pytest.fixture(scope="session")
def finished_site(shared_folder: Path, zensical_site: Path) -> Path:
    """What Zensical makes, with what plugins that it does not run would have added."""

    def build(target: Path) -> None:
        shutil.copytree(zensical_site, target)
        project = shared_folder / "zensical"
        run(["claims", "finish", str(target)], project, PYTHONPATH=str(project / "src"))

    return built_once(shared_folder / "finished-site", build)


@pytest.fixture(scope="session")
def offline_site(shared_folder: Path) -> Path:
    """The folder that `make offline` makes."""

    def build(target: Path) -> None:
        run(["decoder", "assets"], ROOT)
        mkdocs = ["mkdocs", "build", "--strict", "--site-dir", str(target)]
        run(mkdocs, ROOT, DIRECTORY_URLS="false")
        run(["claims", "offline", str(target)], ROOT)

    return built_once(shared_folder / "offline-site", build)


def build_with_mkdocs(target: Path) -> None:
    run(["decoder", "assets"], ROOT)
    run(["mkdocs", "build", "--strict", "--site-dir", str(target)], ROOT)


def copied(project: Path) -> Path:
    """A copy of what a site is built from."""
    project.mkdir(parents=True, exist_ok=True)
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name,
                project / name,
                dirs_exist_ok=True,
                ignore=shutil.ignore_patterns("__pycache__", "generated"),
            )
        else:
            shutil.copy(ROOT / name, project)
    return project


def built_once(target: Path, build: Callable[[Path], None]) -> Path:
    with FileLock(f"{target}.lock"):
        if not target.exists():
            unfinished = target.with_name(f"{target.name}-unfinished")
            build(unfinished)
            unfinished.rename(target)
    return target


def run(module_and_arguments: list[str], folder: Path, **more: str) -> None:
    command = [sys.executable, "-m", *module_and_arguments]
    done = subprocess.run(command, cwd=folder, env=os.environ | ENVIRONMENT | more, capture_output=True, text=True)
    if done.returncode:
        pytest.fail(f"{' '.join(module_and_arguments)} failed:\n{done.stdout}{done.stderr}", pytrace=False)


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """The address of a server that serves the site on this machine, ending in a slash."""
    with served(site) as address:
        yield address


@pytest.fixture(scope="session")
def finished_address(finished_site: Path) -> Iterator[str]:
    with served(finished_site) as address:
        yield address


@contextmanager
def served(folder: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    try:
        chromium = paper.browser()
    except paper.PaperError:
        pytest.skip("no Chromium on this machine: the site was not tried in a browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_OPTIONS)
        yield browser
        browser.close()
