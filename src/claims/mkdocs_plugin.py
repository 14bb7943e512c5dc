"""The MkDocs door: the gate stands before the build, and under ``serve`` findings are printed while the server lives on."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import BasePlugin, get_plugin_logger

from claims import fonts
from claims.check import summary
from claims.finding import show
from claims.gate import Gate, GateError, gate_for
from claims.project import ProjectError

log = get_plugin_logger("claims")


class ClaimsPlugin(BasePlugin):
    """Checks the book before anything is written. The rendering is the Markdown extension's, which must be configured too."""

    gate: Gate

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
        return config

    def on_pre_build(self, *, config: MkDocsConfig) -> None:
        try:
            report = self.gate.refresh()
            if not self.gate.serving:
                self.gate.require()
        except (GateError, ProjectError) as error:
            raise PluginError(str(error)) from None
        for finding in report.findings:
            log.info("\n%s", show(finding, self.gate.project.root))
        log.info(summary(report))

    def on_post_build(self, *, config: MkDocsConfig) -> None:
        fonts.install(Path(config.site_dir))

    def on_shutdown(self) -> None:
        if hasattr(self, "gate"):
            self.gate.close()
