"""Why a change that no gate notices may be right: rules, not a list of changes."""

from __future__ import annotations

import re
import tokenize
import tomllib
from pathlib import PurePosixPath

from book import ROOT, Book
from changes import Change

from claims.inline import PROSE_OPTIONS
from claims.page import Page
from claims.parse import read

EQUIVALENT = tomllib.loads((ROOT / "tests/mutation/mutation.toml").read_text("utf-8"))["equivalent"]
TESTED_BY = {"released": "families", "notation": "budget"}  # modules without tests of that name
HIDDEN = re.compile(r"<!--.*?-->", re.S)
STATIC = re.compile(r"^(?P<fence>`{3,})\w+ [^\n]*\bstatic=.*?^(?P=fence)$", re.M | re.S)
OUTSIDE = re.compile(r"\]\(https?://[^)\s]*\)|https?://\S+")
SAID = re.compile(r'"(?:source|why|note)": "[^"]*$|"unverified": \[[^\]]*"[^"]*$')
SEEDED = re.compile(r"\b(?:manual_seed|seed|default_rng|Random)\b[^#]*$")


def beforehand(change: Change) -> str:
    """Why a change cannot matter, by the place where it stands."""
    if change.kind == "fact" and (field := change.fact()[1]) != "value":
        return f"a fact's {field}: where its number stands, or what it is" if field else "a comment on a fact"
    if change.token() == tokenize.COMMENT and change.path.startswith(("src/", "snippets/")):
        return "a comment"
    if change.path.startswith("src/") and change.token() == tokenize.STRING:
        return "words: a docstring, a message or a source"
    if change.path.endswith("released.json") and SAID.search(change.before):
        return "words: a source or a remark"
    if change.path.endswith(".md"):
        return _on_a_page(change)
    return ""


def _on_a_page(change: Change) -> str:
    if change.within(HIDDEN):
        return "a comment on a page"
    if change.within(STATIC):
        return "a block that is shown and not run"
    return "an address outside the book" if change.within(OUTSIDE) else ""


def afterwards(book: Book, change: Change, moved: list[str]) -> str:
    """Why a change that no gate noticed may be right; empty if it may not."""
    if change.path.startswith("src/"):
        return _in_the_code(book, change)
    if change.path.endswith(".md") and not change.program()[0]:
        return _in_the_words(book, change)
    if SEEDED.search(change.before):
        return "a seed: what the page says holds for another one too"
    if moved:
        return f"what is printed or drawn there moves with it, and no sentence quotes it ({', '.join(moved)})"
    return "the page prints and draws the same"


def _in_the_code(book: Book, change: Change) -> str:
    for entry in EQUIVALENT:
        found = change.within(re.compile(re.escape(entry["old"]))) if entry["module"] == change.path else None
        if found and (entry.get("any") or change.applied()[found.start() :].startswith(tuple(entry["new"]))):
            return entry["why"]
    if book.tests_fail(change, tests := tests_of(change.path)):
        return f"no number of a page depends on it; {tests} fails"
    if change.path.endswith(".json"):
        other = "0.5" if set(change.old) & set(".e") else str(3 * int(change.old) + 1)
        return "" if book.noticed(change, other)[0] else "no page uses the value: a quite different one passes too"
    if change.token() == tokenize.NUMBER and not book.noticed(change, '__import__("poison").VALUE')[0]:
        return "no page uses the value: one that fails on any use passes too"
    return ""


def tests_of(path: str) -> str:
    """The tests of a module, which lie as the modules do."""
    module = PurePosixPath(path).relative_to("src/decoder")
    return f"tests/decoder/{module.with_name(f'test_{TESTED_BY.get(module.stem, module.stem)}.py')}"


def _in_the_words(book: Book, change: Change) -> str:
    page = read(book.project.root, change.path, book.project.words)
    if any(waiver.text == change.old for waiver in page.waivers):
        return "a waived number"
    at = _on_the_page(page, change)
    if at < page.front:
        return "front matter"
    bound = [*page.claims, *page.citations, *page.equations]
    spans = [*_opaque(page, at), *((each.start, each.end) for each in bound)]
    if any(each.start <= at < each.end and each.literal[0] in "<≤>≥" for each in page.claims):
        return "a bound, which the value keeps still"
    bare = book.project.words.bare
    if any(each.start <= at < each.end for each in page.equations) and bare(change.old) and bare(change.new):
        return "a bare small number in a formula"
    if book.tests_fail(change, "tests/test_names.py"):
        return "no model has this name; tests/test_names.py fails"
    if any(start <= at < end for start, end in spans):
        return ""
    return "structure: a name, a date, a version, a step, or a bare small number"


def _opaque(page: Page, at: int) -> list[tuple[int, int]]:
    """What is not running text; the words of a block's option are, though the block is not."""
    options = [option for block in page.blocks for name, option in block.options.items() if name in PROSE_OPTIONS]
    around = [option for option in options if option.start <= at < option.end]
    return [span for span in page.opaque if not any(span[0] < option.start < span[1] for option in around)]


def _on_the_page(page: Page, change: Change) -> int:
    """Where a change stands in the text of the page, which has its snippets in place."""
    lines = page.source.lines
    row = next(row for row, line in enumerate(lines) if (line.path, line.number) == (change.path, change.line))
    return page.source.starts[row] + len(change.before)
