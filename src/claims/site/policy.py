"""A Content-Security-Policy in every page of a built site: its own scripts run, nothing else does.

Inline scripts are allowed by the hash of their text, so that what is put into a page afterwards stays inert. The policy
stands in a ``<meta>`` element, because a static host need not send headers.
"""

from __future__ import annotations

import base64
import re
from hashlib import sha256
from html import escape
from pathlib import Path

SCRIPT = re.compile(r"<script\b(?P<attributes>[^>]*)>(?P<text>.*?)</script>", re.DOTALL | re.IGNORECASE)
RUNS = re.compile(
    r"""\btype\s*=\s*["']?(?:module|importmap|(?:text|application)/javascript)\b|^(?!.*\btype\s*=)""", re.I
)
SOURCE = re.compile(r"\bsrc\s*=", re.IGNORECASE)
HEAD = re.compile(r"<head\b[^>]*>\s*(?:<meta charset=[^>]*>)?", re.IGNORECASE)

OWN = "'self'"
# Styles may be inline: figures and formulas carry theirs, and a style can start nothing.
RULES = (
    "default-src 'none'",
    "script-src {own}{hashes}",
    "style-src {own} 'unsafe-inline'",
    "img-src {own} data:",
    "font-src {own}",
    "connect-src {own}",
    "worker-src {own}",
    "base-uri 'none'",
    "form-action 'none'",
)


def policy(html: str, own: str = OWN) -> str:
    """The policy that lets this page's own inline scripts run; ``own`` is where its files are."""
    hashes = {
        base64.b64encode(sha256(script["text"].encode()).digest()).decode()
        for script in SCRIPT.finditer(html)
        if not SOURCE.search(script["attributes"]) and RUNS.search(script["attributes"].strip())
    }
    listed = "".join(f" 'sha256-{each}'" for each in sorted(hashes))
    return "; ".join(rule.format(own=own, hashes=listed) for rule in RULES)


def with_policy(html: str, own: str = OWN) -> str:
    """The page with its policy at the start of its head. A page without a head, or with a policy, is left alone."""
    head = HEAD.search(html)
    if head is None or "Content-Security-Policy" in html[: head.end() + 200]:
        return html
    meta = f'<meta http-equiv="Content-Security-Policy" content="{escape(policy(html, own))}">'
    return f"{html[: head.end()]}{meta}{html[head.end() :]}"


def install(site: Path) -> None:
    """Put a policy into every page of a built site."""
    for page in sorted(site.rglob("*.html")):
        html = page.read_text(encoding="utf-8")
        page.write_text(with_policy(html), encoding="utf-8", newline="")
