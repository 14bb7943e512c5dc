"""MkDocs: the files that the site offers beside its pages."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig

from decoder.onefile import one_file


def on_post_build(config: MkDocsConfig) -> None:
    Path(config.site_dir, "architecture.py").write_text(one_file(), encoding="utf-8")
