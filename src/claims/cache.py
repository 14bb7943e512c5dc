"""Keeps the results of pages by content: what ran, what it ran on, and every file that it opened.

An entry is one file, named after its page and its program: a line with a SHA-256, then JSON. Anything else is no entry.
A cache that cannot be read or written is an empty one; nothing here raises.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from claims import whole_file
from claims.results import Program, Result

KEPT = 4  # entries for each page
HOUR = 3600.0
CLOCK_TICK = 0.05  # seconds by which a file system's clock may lag behind


def environment_salt(preload: Iterable[str] = ()) -> str:
    """A digest of what a page runs on: Python, every installed distribution, the preloaded modules, this package."""
    installed = {entry.name for folder in sys.path for entry in Path(folder).glob("*.dist-info")}
    package = Path(__file__).parent
    sources = [[path.relative_to(package).as_posix(), _digest(path)] for path in sorted(package.rglob("*.py"))]
    return _sha256(sys.version, platform.system(), platform.machine(), sorted(installed), list(preload), sources)


class Cache:
    """Results of pages below `root`, kept in `folder`; `salt` stands for everything that is not in the repository.

    `build` names the build that results are computed in. With `own`, results of no other build are taken.
    """

    def __init__(self, folder: Path, root: Path, salt: str, build: str = "", own: bool = False) -> None:
        self.folder, self.root, self.salt, self.build, self.own = folder, root, salt, build, own

    def get(self, program: Program) -> Result | None:
        """The result of the same program, if every file that it opened is as it was."""
        try:
            key = self._key(program)
            checksum, _, entry = self._path(program, key).read_text("ascii").partition("\n")
            if checksum != _sha256(key, entry):
                return None
            data = json.loads(entry)
            if self.own and data["build"] != self.build:
                return None
            if any(self._state(name) != state for name, state in data["files"].items()):
                return None
            return Result.from_json(data["result"])
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return None

    def put(self, program: Program, result: Result) -> bool:
        """Keep a result; False if it is not to be trusted again or cannot be written."""
        if not (result.cacheable and result.clean):
            return False
        if any(self._changed_since(name, result.started) for name in result.files):
            return False
        key = self._key(program)
        files = {name: self._state(name) for name in result.files}
        entry = json.dumps({"build": self.build, "files": files, "result": result.to_json()})
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            whole_file.write(self._path(program, key), f"{_sha256(key, entry)}\n{entry}".encode("ascii"))
            self._prune(program)
        except OSError:
            return False
        return True

    def fingerprint(self, program: Program, names: Iterable[str]) -> str:
        """A digest of a program and of files that it opened, the same on every machine."""
        package = os.path.relpath(Path(__file__).parent, self.root).replace(os.sep, "/") + "/"
        return _sha256(program.to_json(), [[name, self._state(name)] for name in names if not name.startswith(package)])

    def _key(self, program: Program) -> str:
        return _sha256(self.salt, program.to_json())

    def _path(self, program: Program, key: str) -> Path:
        return self.folder / f"{self._page(program)}-{key}.json"

    def _page(self, program: Program) -> str:
        return _sha256(program.path)[:16]

    def _state(self, name: str) -> str | None:
        """The digest of a file, or of the names in a folder; None if there is nothing to read."""
        path = self.root / name
        try:
            if name.endswith("/"):
                return _sha256(
                    sorted(entry for entry in os.listdir(path) if not entry.startswith((".", "__pycache__")))
                )
            return _digest(path)
        except OSError:
            return None

    def _changed_since(self, name: str, moment: float) -> bool:
        """Whether a file was touched after the page began, so that what the page saw may not be what is there now."""
        try:
            stat = os.stat(self.root / name)
        except OSError:
            return False
        return max(stat.st_mtime, stat.st_ctime) >= moment - CLOCK_TICK

    def _prune(self, program: Program) -> None:
        """Remove all but the newest entries of a page, and what a killed build left; others may be doing the same."""
        entries = sorted(self.folder.glob(f"{self._page(program)}-*.json"), key=_age)
        abandoned = [path for path in self.folder.glob(f"*{whole_file.UNFINISHED}") if _age(path) > HOUR]
        for path in entries[KEPT:] + abandoned:
            path.unlink(missing_ok=True)


def _age(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _sha256(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
