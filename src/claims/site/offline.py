"""A built site that works from a folder, opened as files: search and tools without a server.

A browser loads neither modules, nor workers, nor JSON from ``file:``. So modules become one plain script, the search
index becomes a script, and the search worker runs in an empty frame. The site must have been built with
``use_directory_urls: false``, so that each link names a file.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from claims.site.policy import with_policy

MODULE = re.compile(r'<script\b(?=[^>]*\btype="?module"?)[^>]*\bsrc="?(?P<src>[^">\s]+)"?[^>]*>\s*</script>\s*')
IMPORT = re.compile(r'^import (?P<names>\{[^}]*\}) from "(?P<path>[^"]+)";$', re.M)
DYNAMIC = re.compile(r'\bimport\("(?P<path>[^"]+)"\)')
EXPORT = re.compile(r"^export (?P<kind>(?:async )?function|const|class) (?P<name>\w+)", re.M)
BUNDLE = re.compile(r'<script src="?[^">]*assets/javascripts/bundle\.')
PRELOAD = re.compile(r'<link rel="?preload"?[^>]*\bcrossorigin\b[^>]*>\s*')  # files have no origin to share
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')

WORKER = """\
// A Worker for pages opened as files: its script runs in an empty frame of the page.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      inside.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      const script = frame.contentDocument.createElement("script");
      script.src = new URL(address, document.baseURI).href;
      script.onload = () => {
        this.inside = inside;
        for (const data of this.waiting) this.postMessage(data);
      };
      frame.contentDocument.head.append(script);
    }
    postMessage(data) {
      if (!this.inside) this.waiting.push(data);
      else this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data }));
    }
    terminate() {}
  };
}
"""


class OfflineError(ValueError):
    """A site that cannot be made to work as files."""


def install(site: Path) -> int:
    """Make a built site work as files; the number of its pages is returned. Raises OfflineError, naming the reason."""
    index = site / "search" / "search_index.json"
    if index.is_file():
        text = json.dumps(json.loads(index.read_text(encoding="utf-8")), ensure_ascii=False, separators=(",", ":"))
        _write(index.with_suffix(".js"), f"var __index = {text};\n")
    _write(site / "assets" / "offline-worker.js", WORKER)
    pages = sorted(site.rglob("*.html"))
    entries: list[str] = []
    for page in pages:
        html = page.read_text(encoding="utf-8")
        folder = page.parent.relative_to(site).as_posix()
        for found in MODULE.finditer(html):
            entry = posixpath.normpath(posixpath.join(folder, found["src"]).lstrip("/"))
            if entry not in entries:
                entries.append(entry)
        _write(page, _page(html, posixpath.relpath(".", folder)))
    _write(site / "assets" / "offline.js", bundle(site, entries))
    return len(pages)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def _page(html: str, root: str) -> str:
    """One page with the two plain scripts in place of its modules, and a policy that lets files load."""
    first = MODULE.search(html)
    if first is None:
        return html
    html = html[: first.start()] + f'<script src="{root}/assets/offline.js"></script>' + html[first.end() :]
    html = PRELOAD.sub("", MODULE.sub("", html))
    if at := BUNDLE.search(html):
        html = html[: at.start()] + f'<script src="{root}/assets/offline-worker.js"></script>' + html[at.start() :]
    return with_policy(POLICY.sub("", html), own="'self' file:") if POLICY.search(html) else html


def bundle(site: Path, entries: list[str]) -> str:
    """One script of these modules and all that they import, each run once, after what it needs."""
    parts = ["const modules = {};"]
    for path in _in_order(site, entries):
        parts.append(_as_function(path, _read(site, path)))
    return "\n".join(["(() => {", *parts, "})();", ""])


def _read(site: Path, path: str) -> str:
    try:
        return (site / path).read_text(encoding="utf-8")
    except OSError as error:
        raise OfflineError(f"{path}: {error.strerror}") from None


def _in_order(site: Path, entries: list[str]) -> list[str]:
    done: list[str] = []
    open_: list[str] = []

    def visit(path: str) -> None:
        if path in done:
            return
        if path in open_:
            raise OfflineError(f"{path}: imports itself by way of {' and '.join(open_[open_.index(path) + 1 :])}")
        open_.append(path)
        for needed in _imports(path, _read(site, path)):
            visit(needed)
        done.append(open_.pop())

    for entry in entries:
        visit(entry)
    return done


def _imports(path: str, text: str) -> Iterator[str]:
    for found in [*IMPORT.finditer(text), *DYNAMIC.finditer(text)]:
        yield _target(path, found["path"])


def _target(path: str, imported: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), imported))


def _as_function(path: str, text: str) -> str:
    """The module as a function that is called at once; what it exports is kept under its path."""
    names = [found["name"] for found in EXPORT.finditer(text)]
    text = IMPORT.sub(lambda found: _destructured(path, found), text)
    text = DYNAMIC.sub(lambda found: f'Promise.resolve(modules["{_target(path, found["path"])}"])', text)
    text = EXPORT.sub(r"\g<kind> \g<name>", text)
    if left := re.search(r"^(?:import|export)\b.*", text, re.M):
        raise OfflineError(f"{path}: {left[0][:60]}: only named imports and exports can be bundled")
    return f'modules["{path}"] = (() => {{\n{text}\nreturn {{ {", ".join(names)} }};\n}})();'


def _destructured(path: str, found: re.Match[str]) -> str:
    names = re.sub(r"\bas\b", ":", found["names"])
    return f'const {names} = modules["{_target(path, found["path"])}"];'
