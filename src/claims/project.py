"""Where a project keeps its pages, facts and words, as ``[tool.claims]`` in pyproject.toml says."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path

from claims import lexicon
from claims.lexicon import Lexicon


class ProjectError(ValueError):
    """The project cannot be checked at all; the message is one line."""


@dataclass(frozen=True)
class Project:
    """The settings, with their defaults. Paths are relative to ``root``.

    ``facts`` and ``bibliography`` may be missing where nothing is cited, ``glossary`` where no term is explained.
    ``moves`` is written by ``prove --inputs``. ``preload`` are modules that pages share, imported once. ``inputs``
    names the dataclasses (``module:Class``) whose fields are the inputs of the book's numbers.
    """

    root: Path
    docs: str = "docs"
    notebooks: tuple[str, ...] = ()
    facts: str = "docs/reference/facts.toml"
    bibliography: str = "docs/reference/references.bib"
    glossary: str = "docs/reference/glossary.toml"
    moves: str = "docs/reference/moves.json"
    lexicon: str = ""
    preload: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    time_limit: float = 60.0
    cache: str = ".cache/claims"

    @cached_property
    def words(self) -> Lexicon:
        """The lexicon, built-in and own. Raises ProjectError for a broken file."""
        try:
            return lexicon.load(self.root / self.lexicon if self.lexicon else None)
        except lexicon.LexiconError as error:
            raise ProjectError(str(error)) from None

    def pages(self, paths: Iterable[str | Path] = ()) -> list[str]:
        """The pages at ``paths`` (files or folders), or all of them, sorted, relative to the root.

        A page that has a notebook of its name beside it brings that too, for which it stands. Raises ProjectError for
        a path that does not exist, is no page, or lies outside the root.
        """
        wanted = [Path(path).absolute() for path in paths] or [self.root / self.docs]
        found: set[str] = set()
        for path in wanted:
            if not path.exists():
                raise ProjectError(f"{os.path.relpath(path)}: there is no such file or folder")
            real = path if path.is_relative_to(self.root) else path.resolve()
            if not real.is_relative_to(self.root):
                raise ProjectError(f"{path}: not inside {self.root}")
            found |= self._page(real) if real.is_file() else self._below(real)
        return sorted(found)

    def _page(self, path: Path) -> set[str]:
        notebook = path.with_suffix(".py")
        found = {notebook} & self._notebooks() | ({path} if path.suffix == ".md" else set())
        if path not in found:
            raise ProjectError(f"{os.path.relpath(path)}: no page; pages end in .md, or are named as notebooks")
        return {page.relative_to(self.root).as_posix() for page in found}

    def _notebooks(self) -> set[Path]:
        return {path for pattern in self.notebooks for path in self.root.glob(pattern)}

    def _below(self, folder: Path) -> set[str]:
        pages: set[str] = set()
        for base, folders, files in os.walk(folder):
            folders[:] = [name for name in folders if not name.startswith(".")]
            pages |= {(Path(base) / name).relative_to(self.root).as_posix() for name in files if name.endswith(".md")}
        inside = (path for path in self._notebooks() if path.is_relative_to(folder))
        return pages | {path.relative_to(self.root).as_posix() for path in inside}


def find(start: Path | None = None) -> Project:
    """The project that ``start`` (the working directory) lies in: the nearest pyproject.toml with ``[tool.claims]``.

    Raises ProjectError if there is none, or for a setting that is unknown or of the wrong type.
    """
    start = (start or Path.cwd()).resolve()
    for folder in [start, *start.parents]:
        path = folder / "pyproject.toml"
        if not path.is_file():
            continue
        try:
            settings = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {}).get("claims")
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise ProjectError(f"{path}: {error}") from None
        if settings is not None:
            return _project(folder, settings, path)
    raise ProjectError(f"no pyproject.toml with a [tool.claims] table at {start} or above it")


def _project(root: Path, settings: dict, path: Path) -> Project:
    defaults = {field.name: field.default for field in fields(Project) if field.name != "root"}
    for key, value in settings.items():
        if key not in defaults:
            raise ProjectError(f"{path}: tool.claims.{key}: unknown; known are {', '.join(sorted(defaults))}")
        kind = type(defaults[key])
        good = (
            isinstance(value, list) and all(isinstance(item, str) for item in value) if kind is tuple
            else isinstance(value, int | float) and not isinstance(value, bool) and value > 0 if kind is float
            else isinstance(value, str)
        )  # fmt: skip
        if not good:
            name = {tuple: "a list of strings", float: "a number above 0", str: "a string"}[kind]
            raise ProjectError(f"{path}: tool.claims.{key}: must be {name}, got {value!r}")
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()}
    return Project(root, **given)  # type: ignore[arg-type]
