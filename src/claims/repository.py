"""Which files of the repository a page depends on: told by what it opens, lists and imports."""

from __future__ import annotations

import contextlib
import os
import sys
import types
from importlib import machinery, util
from pathlib import Path
from typing import Any


class Repository:
    """Which files of the repository a page depends on."""

    def __init__(self, root: Path) -> None:
        self.root = os.path.join(root, "")
        self.seen: set[tuple[str, str]] = set()
        self.reported: set[tuple[str, str]] = set()
        self.modules: set[str] = set()  # whose files are noted

    def note(self, path: Any, suffix: str = "") -> None:
        with contextlib.suppress(Exception):  # whatever a page may hand to `open`, it is for `open` to refuse
            if not isinstance(path, int):
                self.seen.add((os.path.abspath(os.fsdecode(path)), suffix))

    def relative(self, path: str) -> str | None:
        """A path below the root, without what is installed, built or cached there; a .pyc stands for its source."""
        path = os.path.abspath(path)
        if not path.startswith(self.root) or os.path.basename(path).startswith("<"):
            return None
        parts = path[len(self.root) :].split(os.sep)
        if parts[0] == "site" or any(part.startswith(".") or part == "site-packages" for part in parts):
            return None
        if "__pycache__" not in parts:
            return "/".join(parts)
        try:
            return self.relative(util.source_from_cache(path))
        except ValueError:
            return None

    def unreported(self) -> list[str]:
        """The files opened since this was last asked."""
        new = self.seen - self.reported
        self.reported |= new
        found = {(self.relative(path), suffix) for path, suffix in new}
        return sorted(path + suffix for path, suffix in found if path)

    def note_modules(self) -> None:
        """Count modules that were imported before anyone watched, or without opening a file."""
        for name in set(sys.modules) - self.modules:
            self.modules.add(name)
            file = getattr(sys.modules.get(name), "__file__", None)
            if isinstance(file, str) and os.path.isabs(file) and self.relative(file):
                self.note(file)

    def watch_imports(self) -> None:
        """Import what lies in the repository through `FreshLoader`."""
        find = machinery.FileFinder.path_hook(
            (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
            (FreshLoader, machinery.SOURCE_SUFFIXES),
            (machinery.SourcelessFileLoader, machinery.BYTECODE_SUFFIXES),
        )

        def hook(path: str) -> Any:
            if not self.relative(path):
                raise ImportError(path)
            return find(path)

        sys.path_hooks.insert(0, hook)
        for path in list(sys.path_importer_cache):
            if self.relative(path):
                del sys.path_importer_cache[path]


class FreshLoader(machinery.SourceFileLoader):
    """Trusts a .pyc only if it was compiled well after the source was last edited.

    Python compares modification times in whole seconds, and so takes an edit that follows a compilation within the
    same second, and keeps the length, for no edit.
    """

    def get_code(self, fullname: str) -> types.CodeType | None:
        source = self.get_filename(fullname)
        compiled = util.cache_from_source(source)
        with contextlib.suppress(OSError):
            if os.stat(compiled).st_mtime - os.stat(source).st_mtime < 2:
                os.unlink(compiled)
        return super().get_code(fullname)
