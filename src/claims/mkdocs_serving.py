"""The author's loop: under ``mkdocs serve`` an edit of pages makes those pages again, not the whole site.

A whole build follows when anything else has changed, or what others see of a page: its title, its front matter, its
anchors. The search index is left for the next whole build.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import jinja2
from mkdocs.commands.build import _build_page, _populate_page
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files, InclusionLevel
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

State = dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Built:
    """What a whole build leaves behind, from which a page can be made again."""

    config: MkDocsConfig
    files: Files
    nav: Navigation
    env: jinja2.Environment

    def pages(self) -> dict[str, Page]:
        """All pages by the absolute path of their source."""
        files = self.files.documentation_pages(inclusion=InclusionLevel.is_in_serve)
        return {os.path.abspath(file.abs_src_path): file.page for file in files if file.abs_src_path and file.page}

    def make(self, pages: list[Page]) -> bool:
        """Make pages again; False, with nothing written, if other pages would have to change too."""
        for page in pages:
            before = _seen(page)
            _populate_page(page, self.config, self.files)
            if _seen(page) != before:
                return False
        self.config.plugins.on_env(self.env, config=self.config, files=Files([page.file for page in pages]))
        listed = self.files.documentation_pages(inclusion=InclusionLevel.is_in_serve)
        for page in pages:
            excluded = page.file.inclusion.is_excluded()
            _build_page(page, self.config, listed, self.nav, self.env, excluded=excluded)
            page.validate_anchor_links(files=self.files, log_level=self.config.validation.links.anchors)
        return True


def _seen(page: Page) -> tuple[object, ...]:
    """What other pages may show of a page or link to."""
    return page.title, page.meta, page.present_anchor_ids


class Rebuild:
    """Stands in for the server's builder: ``again`` is asked to make edited pages, ``whole`` builds the site."""

    def __init__(self, watched: Iterable[str], again: Callable[[set[str]], bool], whole: Callable[[], None]) -> None:
        self.watched, self.again, self.whole = watched, again, whole
        self.state = state(watched)
        self.sound = True  # whether the last build went well

    def __call__(self) -> None:
        before, self.state = self.state, state(self.watched)
        changed = {path for path in before.keys() | self.state.keys() if before.get(path) != self.state.get(path)}
        if not changed:
            return
        sound, self.sound = self.sound, False
        if not (sound and before.keys() == self.state.keys() and self.again(changed)):
            self.whole()
        self.sound = True


def state(watched: Iterable[str]) -> State:
    """The files below some paths, but for bytecode and what editors leave, with what an edit changes of each."""
    found = [path for path in watched if os.path.isfile(path)]
    for path in watched:
        for folder, folders, files in os.walk(path):
            folders[:] = [name for name in folders if name != "__pycache__"]
            found += [os.path.join(folder, name) for name in files if name[0] != "." and name[-1] != "~"]
    return {path: stat for path in found if (stat := _stat(path))}


def _stat(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
