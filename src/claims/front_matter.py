"""The YAML at the top of a page, and the waivers in it.

::

    claims:
      waive:
        "4,096": the table of a paper is quoted as it stands
      constant:
        "256": a limit of float16, whatever the configuration
"""

from __future__ import annotations

import yaml

from claims import source
from claims.page import Page, Waiver

KINDS = ("waive", "constant")


def read(page: Page) -> None:
    """Fill in ``page.front``, ``page.meta`` and ``page.waivers``."""
    found = source.FRONT_MATTER.match(page.text)
    if not found:
        return
    page.front = found.end()
    body, at = found["yaml"] or "", max(0, found.start("yaml"))
    try:
        meta = yaml.safe_load(body) or {}
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date such as 2026-13-45
        mark = getattr(error, "problem_mark", None)
        start = at + (mark.index if mark else 0)
        problem = getattr(error, "problem", None) or str(error)
        page.problem("bad-front-matter", start, start + 1, f"the front matter is not YAML: {problem}")
        return
    if not isinstance(meta, dict):
        page.problem("bad-front-matter", at, at + 1, "the front matter must be a mapping of names to values")
        return
    page.meta = meta
    if settings := meta.get("claims"):
        _waivers(page, settings, body, at)


def _waivers(page: Page, settings: object, body: str, at: int) -> None:
    rule = "claims: holds only waive: and constant:, each a mapping of a number as written to the reason"
    if not isinstance(settings, dict) or not set(settings) <= set(KINDS):
        page.problem("bad-front-matter", *_find(body, at, "claims"), rule)
        return
    for kind, waivers in settings.items():
        if not isinstance(waivers, dict):
            page.problem("bad-front-matter", *_find(body, at, kind), rule)
            continue
        for text, reason in waivers.items():
            start, end = _find(body, at, str(text), max(0, body.find(kind)))
            if isinstance(reason, str) and len(reason.split()) >= 3:
                page.waivers.append(Waiver(kind, str(text), reason, start, end))
            else:
                page.problem("bad-front-matter", start, end, f"the waiver of {text} needs a reason in words")


def _find(body: str, at: int, text: str, after: int = 0) -> tuple[int, int]:
    start = at + max(0, body.find(text, after))
    return start, start + len(text)
