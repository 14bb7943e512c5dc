"""A checked page as a Jupyter notebook to download: its prose in Markdown cells, its blocks in code cells.

Claims and citations become the words that a reader sees, snippets stand in full, and nothing that the page printed or
drew is kept: whoever runs the cells in order gets it again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from claims.equations import shown_tex
from claims.page import Block, Page
from claims.report import Report
from claims.site.generated import marks

SEEDS = {"numpy": "numpy.random.seed(0)", "torch": "torch.manual_seed(0)"}

_CONTAINER = re.compile(r'(?:!!!|\?\?\?\+?|===[!+]?)[ \t]+(?P<kind>[\w -]*?)[ \t]*(?:"(?P<title>.*)")?$')
_ATTRIBUTES = re.compile(r"^(#{1,6} .*?)[ \t]*\{[:#. ][^{}]*\}[ \t]*$", re.M)
_RELATIVE = re.compile(r"(?<!!)\[([^\[\]]*)\]\((?![a-z][a-z+.-]*:|#)[^()\s]*\)")
_ENTITY = re.compile(r"&#(\d+);")
TAB = 4


@dataclass(frozen=True)
class Cell:
    """One cell, of Markdown or code; ``raises`` marks code that ends in an exception, as it should."""

    kind: str
    source: str
    raises: bool = False

    def to_json(self, name: str) -> dict[str, object]:
        """The cell as the notebook format has it."""
        metadata = {"tags": ["raises-exception"]} if self.raises else {}
        lines = self.source.splitlines(keepends=True)
        results: dict[str, object] = {"execution_count": None, "outputs": []} if self.kind == "code" else {}
        return {"cell_type": self.kind, "id": name, "metadata": metadata, "source": lines, **results}


def notebook(page: Page, seeded: Iterable[str] = (), report: Report | None = None) -> list[Cell]:
    """The page as cells; the random numbers of the modules ``seeded`` begin as they did on the page.

    What it gathers from the other pages of a ``report`` stands in place, and without one is left out.
    """
    return _Notebook(page, report).made([module for module in seeded if module in SEEDS])


def as_ipynb(cells: Iterable[Cell]) -> str:
    """The cells as the text of an .ipynb file. See https://nbformat.readthedocs.io/en/latest/format_description.html"""
    made = {
        "cells": [cell.to_json(f"cell-{number}") for number, cell in enumerate(cells, 1)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(made, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def as_percent(cells: Iterable[Cell]) -> str:
    """The cells as a Python file, each behind a ``# %%``."""
    import jupytext  # takes a while, and only labs need it

    return jupytext.writes(jupytext.reads(as_ipynb(cells), fmt="ipynb"), fmt="py:percent")


class _Notebook:
    def __init__(self, page: Page, report: Report | None) -> None:
        self.page, self.report = page, report
        self.cells: list[Cell] = []
        self.open: list[int] = []  # the indents of the admonitions, folds and tabs that hold the current line
        self.edits = sorted(self._edits())

    def made(self, seeded: list[str]) -> list[Cell]:
        at = self.page.front
        for block in self.page.python:
            self._prose(at, block.start)
            if seeded and block.number == 0:
                self._code("\n".join([*(f"import {name}" for name in seeded), "", *(SEEDS[name] for name in seeded)]))
            self._block(block)
            at = block.end
        self._prose(at, len(self.page.text))
        return self.cells

    def _edits(self) -> Iterable[tuple[int, int, str]]:
        page = self.page
        for claim in page.claims:
            if claim.kind == "link":
                yield (*claim.outer, claim.literal)
        for citation in page.citations:
            yield (*citation.outer, citation.literal)
        for equation in page.equations:
            mark = "$$" if equation.display else "$"
            yield equation.start, equation.end, f"{mark}{shown_tex(equation.tex)}{mark}"
        for start, end, make in marks(page):
            yield start, end, _ENTITY.sub(_escaped, make(self.report, page.path)) if self.report else ""

    def _plain(self, start: int, end: int) -> str:
        parts, at = [], start
        for begin, stop, new in self.edits:
            if at <= begin and stop <= end:
                parts += [self.page.text[at:begin], new]
                at = stop
        return "".join([*parts, self.page.text[at:end]])

    def _prose(self, start: int, end: int) -> None:
        """The text from ``start`` to ``end`` as a Markdown cell, without what only this site's Markdown knows."""
        text = "\n".join(self._unwrapped(line) for line in self._plain(start, end).split("\n"))
        self._markdown(_RELATIVE.sub(r"\1", _ATTRIBUTES.sub(r"\1", text)))

    def _unwrapped(self, line: str) -> str:
        """An admonition, a fold or a tab becomes its title in bold, and its lines move out to the left."""
        bare = line.lstrip(" ")
        if not bare:
            return ""
        indent = len(line) - len(bare)
        while self.open and indent <= self.open[-1]:
            self.open.pop()
        moved = line[min(indent, self.open[-1] + TAB) :] if self.open else line
        if not (found := _CONTAINER.match(bare)):
            return moved
        self.open.append(indent)
        title = found["title"] if found["title"] is not None else found["kind"].partition(" ")[0].capitalize()
        return f"**{title}**\n" if title else ""

    def _block(self, block: Block) -> None:
        if not block.runs:
            self._markdown(f"```python\n{block.code}\n```")
            return
        title = block.option("title")
        self._code((f"# {title}\n" if title else "") + block.code, raises=bool(block.option("raises")))
        if caption := block.options.get("caption"):
            self._markdown(f"*{self._plain(caption.start, caption.end)}*")

    def _markdown(self, text: str) -> None:
        if text.strip():
            self.cells.append(Cell("markdown", text.strip("\n")))

    def _code(self, code: str, raises: bool = False) -> None:
        self.cells.append(Cell("code", code.strip("\n"), raises))


def _escaped(entity: re.Match[str]) -> str:
    """A character reference as Markdown's own escape, which reads more easily."""
    return f"\\{chr(int(entity[1]))}"
