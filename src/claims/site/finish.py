"""What the MkDocs plugin adds to a built site, for an engine without such plugins: ``python -m claims finish SITE``.

The math font, each page beside itself as plain Markdown, ``llms.txt``, and the Content-Security-Policy. The engine must
have written each page of the navigation to the place where MkDocs would.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from claims.gate import Gate
from claims.site import fonts, policy
from claims.site.generated import title
from claims.site.plain import Entry, as_markdown, listing


class FinishError(ValueError):
    """A site that is not the one that the configuration describes; the message says where they part."""


class _Loader(yaml.SafeLoader):
    """YAML with MkDocs' ``!ENV [NAME, default]``; what other tags stand for is of no use here."""


def _env(loader: yaml.SafeLoader, node: yaml.Node) -> Any:
    names = loader.construct_sequence(node) if isinstance(node, yaml.SequenceNode) else [loader.construct_object(node)]
    *names, default = names if len(names) > 1 else [*names, None]
    return next((os.environ[name] for name in names if name in os.environ), default)


_Loader.add_constructor("!ENV", _env)
_Loader.add_multi_constructor("", lambda loader, suffix, node: None)


def finish(site: Path, gate: Gate) -> int:
    """Add what is missing to a built site; the number of pages written as Markdown is returned.

    Raises FinishError for a site without a page of the navigation, GateError where the book has findings.
    """
    settings = _settings(gate.project.root / "mkdocs.yml")
    report = gate.require()
    entries = []
    for section, name, source in _pages(settings["nav"]):
        page = gate.checked(posixpath.join(gate.project.docs, source))
        if page is None:
            raise FinishError(f"mkdocs.yml: the navigation names {source}, which is no page")
        target = _target(site, source)
        text = as_markdown(gate.shown(page), report)
        (site / f"{target}.md").write_text(text, encoding="utf-8", newline="\n")
        address = f"{settings.get('site_url') or ''}{target}.md"
        entries.append(Entry(section, name or title(page), address, str(page.page.meta.get("description", ""))))
    index = listing(settings["site_name"], settings.get("site_description") or "", entries)
    (site / "llms.txt").write_text(index, encoding="utf-8", newline="\n")
    fonts.install(site)
    policy.install(site)
    return len(entries)


def _settings(path: Path) -> dict[str, Any]:
    try:
        settings = yaml.load(path.read_text(encoding="utf-8"), _Loader)
    except (OSError, yaml.YAMLError) as error:
        raise FinishError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if not isinstance(settings, dict) or not {"site_name", "nav"} <= set(settings):
        raise FinishError(f"{path}: it needs site_name and nav")
    return settings


def _pages(nav: list[Any], section: str = "") -> Iterator[tuple[str, str, str]]:
    """Of each page in the navigation: its outermost section, the title given there, its path under docs."""
    for entry in nav:
        name, value = next(iter(entry.items())) if isinstance(entry, dict) else ("", entry)
        if isinstance(value, list):
            yield from _pages(value, section or name)
        else:
            yield section, name, value


def _target(site: Path, source: str) -> str:
    """Where the page of this source lies in the site."""
    stem = source.removesuffix(".md")
    named = stem == "index" or stem.endswith("/index")
    places = [f"{stem}.html"] if named else [f"{stem}/index.html", f"{stem}.html"]
    if found := next((place for place in places if (site / place).is_file()), None):
        return found
    raise FinishError(f"{site}: {source} was not built: there is no {' and no '.join(places)}")
