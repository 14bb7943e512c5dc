"""The book for programs that read: each page as plain Markdown, and ``llms.txt``, which lists them.

Claims and citations are the words that a reader sees, blocks stand with what they printed, and what only this site's
Markdown knows is gone. See https://llmstxt.org for the form of the list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from claims.report import Checked, Report
from claims.site.notebook import notebook

LINE = re.compile(r"- \[(?P<title>.+)\]\((?P<address>[^()\s]+)\)(?:: (?P<description>.*))?")


@dataclass(frozen=True)
class Entry:
    """A line of the list. ``section`` is the page's place in the navigation, empty at its top."""

    section: str
    title: str
    address: str
    description: str


@dataclass(frozen=True)
class Listing:
    """The list: what the site is, then its pages in the order of the navigation."""

    title: str
    description: str
    entries: tuple[Entry, ...]


def as_markdown(checked: Checked, report: Report) -> str:
    """A checked page of a report as Markdown that any reader understands."""
    blocks = iter(block for block in checked.page.python if block.runs)
    parts = []
    for cell in notebook(checked.page, report=report):
        if cell.kind == "markdown":
            parts.append(cell.source)
            continue
        parts.append(_fenced("python", cell.source))
        block = next(blocks)
        if (result := checked.block(block)) is None:
            continue
        if printed := result.output.strip("\n"):
            parts.append(printed if "html" in block.flags else _fenced("text", printed))
        if result.failure:
            parts.append(_fenced("text", result.failure.message))
    return "\n\n".join(parts) + "\n"


def _fenced(language: str, text: str) -> str:
    ticks = "```" if "```" not in text else "````"
    return f"{ticks}{language}\n{text}\n{ticks}"


def listing(title: str, description: str, entries: Iterable[Entry]) -> str:
    """The text of ``llms.txt``: what the site is, then its pages by section."""
    lines, section = [f"# {title}", "", f"> {description}"], None
    for entry in entries:
        if entry.section != section:
            section = entry.section
            lines += ["", f"## {section or title}", ""]
        about = f": {entry.description}" if entry.description else ""
        lines.append(f"- [{entry.title}]({entry.address}){about}")
    return "\n".join([*lines, ""])


def read_listing(text: str) -> Listing:
    """What ``listing`` wrote. Raises ValueError for a text that is no such list."""
    title, description, section = "", "", ""
    entries = []
    for line in text.splitlines():
        if line.startswith("# "):
            title = line[2:]
        elif line.startswith("> "):
            description = line[2:]
        elif line.startswith("## "):
            section = line[3:] if line[3:] != title else ""
        elif found := LINE.fullmatch(line):
            entries.append(Entry(section, found["title"], found["address"], found["description"] or ""))
        elif line.strip():
            raise ValueError(f"not a line of a list of pages: {line[:80]}")
    return Listing(title, description, tuple(entries))
