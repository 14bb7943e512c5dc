"""The MkDocs door: the gate stands before the build; under ``serve`` findings are printed and the server lives on.

It also offers every page that runs code as a notebook, and has mkdocs-jupyter, where that is configured, execute the
percent notebooks. What readers see of those is the checked rendering, as on any other page.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from jinja2 import Environment
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.livereload import LiveReloadServer
from mkdocs.plugins import BasePlugin, event_priority, get_plugin_logger
from mkdocs.structure.files import Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

from claims.check import summary
from claims.finding import show
from claims.gate import Gate, GateError, gate_for
from claims.mkdocs_serving import Built, Rebuild
from claims.project import ProjectError
from claims.site import fonts, policy, publish
from claims.site.notebook import as_ipynb, as_percent, notebook
from claims.site.plain import Entry, as_markdown, listing

log = get_plugin_logger("claims")

COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # of a terminal, which Jupyter puts into its tracebacks


class ClaimsPlugin(BasePlugin):
    """Checks the book before anything is written. The Markdown extension, which must be configured too, renders it."""

    gate: Gate
    whole = False  # whether the site is written and nothing has gone wrong since

    def on_startup(self, *, command: Literal["build", "gh-deploy", "serve"], dirty: bool) -> None:
        self.serving = command == "serve"

    def on_config(self, config: MkDocsConfig) -> MkDocsConfig:
        if "claims" not in config.markdown_extensions:
            raise PluginError(
                "claims: add claims to markdown_extensions, or the pages would show their claims unchecked"
            )
        try:
            self.gate = gate_for(config.config_file_path.rpartition("/")[0] or ".")
        except ProjectError as error:
            raise PluginError(f"claims: {error}") from None
        self.gate.serving = getattr(self, "serving", False)
        if not self.gate.serving:
            self.target = Path(config.site_dir)
            try:
                self.unfinished = publish.begin(self.target)
            except OSError as error:
                raise PluginError(f"claims: the site is built beside its place, which fails: {error}") from None
            config.site_dir = str(self.unfinished)
            self.configuration = config
        return config

    def on_pre_build(self, *, config: MkDocsConfig) -> None:
        self.downloads: dict[str, str] = {}  # where under the site, and the text
        try:
            self.gate.refresh()
            if not self.gate.serving:
                self.gate.require()
        except (GateError, ProjectError) as error:
            raise PluginError(str(error)) from None
        self._tell()

    def _tell(self) -> None:
        assert self.gate.report
        for finding in self.gate.report.findings:
            log.info("\n%s", show(finding, self.gate.project.root))
        log.info(summary(self.gate.report))

    # --- percent notebooks ---

    @event_priority(-100)  # after mkdocs-jupyter, which from then on goes by the path of a page's source
    def on_files(self, files: Files, *, config: MkDocsConfig) -> Files:
        """Let the page that stands for a notebook have the notebook as its source, and be the only page of the two."""
        assert self.gate.report
        for path in [page.page.path for page in self.gate.report.pages if page.page.path.endswith(".py")]:
            name = posixpath.relpath(path, self.gate.project.docs)
            page = files.get_file_from_path(name.removesuffix(".py") + ".md")
            marker = f"<!-- claims:notebook {posixpath.basename(path)} -->"
            if page is None or marker not in page.content_string:
                raise PluginError(f"claims: {path} needs a page of its name, ending in .md, that holds {marker}")
            page.abs_src_path = str(self.gate.project.root / path)
            if source := files.get_file_from_path(name):
                files.remove(source)
        self.files = files
        return files

    @event_priority(-100)  # after mkdocs-jupyter
    def on_pre_page(self, page: Page, *, config: MkDocsConfig, files: Files) -> Page:
        """Have mkdocs-jupyter execute a notebook in a build, but show the checked rendering."""
        if not _is_notebook(page):
            return page
        execute = page.render

        def render(config: MkDocsConfig, files: Files) -> None:
            if not self.gate.serving:
                from nbclient.exceptions import CellExecutionError  # takes a while, and mkdocs-jupyter has it by now

                try:
                    execute(config, files)
                except CellExecutionError as error:
                    told = COLOURS.sub("", str(error))
                    raise PluginError(f"claims: {page.file.abs_src_path}: Jupyter cannot run it\n{told}") from None
            Page.render(page, config, files)

        page.render = render  # type: ignore[method-assign]
        return page

    def on_page_read_source(self, *, page: Page, config: MkDocsConfig) -> str | None:
        if not _is_notebook(page):
            return None
        return (Path(config.docs_dir) / page.file.src_uri).read_text(encoding="utf-8")

    # --- downloads ---

    def on_page_content(self, html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
        """Offer a page that runs code as a notebook, and a notebook as a Python file too."""
        project, report = self.gate.project, self.gate.report
        checked = self.gate.checked(os.path.relpath(page.file.abs_src_path or "", project.root).replace(os.sep, "/"))
        if checked is None or report is None:
            return html
        self.downloads[f"{page.file.dest_uri}.md"] = as_markdown(checked, report)
        if not any(block.runs for block in checked.page.python):
            return html
        made = notebook(checked.page, project.preload)
        stem = posixpath.splitext(posixpath.basename(page.file.src_uri))[0]
        texts = {f"{stem}.ipynb": as_ipynb(made)} | ({f"{stem}.py": as_percent(made)} if _is_notebook(page) else {})
        folder = posixpath.dirname(page.file.dest_uri)
        self.downloads |= {posixpath.join(folder, name): text for name, text in texts.items()}
        words = {".ipynb": "Download as notebook", ".py": "as Python file"}
        links = [f'<a href="{name}" download>{words[posixpath.splitext(name)[1]]}</a>' for name in texts]
        return f'{html}\n<p class="claims-downloads" data-search-exclude>{", ".join(links)}</p>'

    def on_nav(self, nav: Navigation, *, config: MkDocsConfig, files: Files) -> Navigation:
        self.nav = nav
        return nav

    def _listing(self, config: MkDocsConfig) -> str:
        """``llms.txt``, in the order of the navigation."""
        entries = [
            Entry(
                next((str(each.title) for each in reversed(list(page.ancestors))), ""),
                str(page.title),
                f"{config.site_url or ''}{page.file.dest_uri}.md",
                str(page.meta.get("description", "")),
            )
            for page in self.nav.pages
            if f"{page.file.dest_uri}.md" in self.downloads
        ]
        return listing(config.site_name, config.site_description or "", entries)

    def on_env(self, env: Environment, *, config: MkDocsConfig, files: Files) -> Environment:
        self.env = env
        return env

    @event_priority(-100)  # when the site is written
    def on_post_build(self, *, config: MkDocsConfig) -> None:
        self.downloads["llms.txt"] = self._listing(config)
        self._write(config)
        if self.gate.serving:
            self.built = Built(config, self.files, self.nav, self.env)
        else:  # the server puts a script of its own into each page
            policy.install(self.unfinished)
            self.whole = True

    def _write(self, config: MkDocsConfig) -> None:
        """What is made of the finished pages."""
        fonts.install(Path(config.site_dir))
        for name, text in self.downloads.items():
            (Path(config.site_dir) / name).write_text(text, encoding="utf-8")

    # --- the author's loop ---

    @event_priority(-100)  # other plugins know the server's own builder
    def on_serve(
        self, server: LiveReloadServer, *, config: MkDocsConfig, builder: Callable[[], None]
    ) -> LiveReloadServer:
        if self.gate.serving:
            self.gate.start()
            server.builder = Rebuild([*server._watched_paths, *config.watch], self._again, builder)
        return server

    def _again(self, changed: set[str]) -> bool:
        """Make changed pages again, and what is made of them; False if the whole site has to be built."""
        pages = self.built.pages()
        if not changed <= pages.keys():
            return False
        stale = changed | {os.path.join(self.gate.project.root, path) for path in self.gate.stale()}
        self.downloads = {}
        if not stale <= pages.keys() or not self.built.make([pages[path] for path in sorted(stale)]):
            return False
        self._write(self.built.config)
        self._tell()
        return True

    def on_build_error(self, *, error: Exception) -> None:
        """Publish nothing, even if only the warnings of a strict build are in the way; a full disk is no crash."""
        self.whole = False
        if isinstance(error, OSError) and hasattr(self, "unfinished"):
            raise PluginError(f"claims: the site cannot be written: {error}") from None

    def on_shutdown(self) -> None:
        """Publish the site, if it is whole: MkDocs counts its warnings after the last event of a build."""
        if hasattr(self, "gate"):
            self.gate.close()
        if not hasattr(self, "unfinished"):
            return
        try:
            if self.whole:
                publish.finish(self.unfinished, self.target)
                self.configuration.site_dir = str(self.target)
        except OSError as error:
            raise PluginError(f"claims: the site cannot take its place: {error}") from None
        finally:
            publish.give_up(self.unfinished)


def _is_notebook(page: Page) -> bool:
    return (page.file.abs_src_path or "").endswith(".py")
