"""The Python-Markdown door: ``claims`` in ``markdown_extensions``. It works in MkDocs and in Zensical alike."""

from __future__ import annotations

import re

from markdown import Markdown
from markdown.extensions import Extension
from markdown.postprocessors import Postprocessor
from markdown.preprocessors import Preprocessor

from claims.gate import gate_for
from claims.site.render import fill

PLAIN = re.compile(r'<span class="[nopw]">([^<]*)</span>')  # names, operators, punctuation, spaces, as Pygments marks


class ClaimsExtension(Extension):
    """Replaces a page by its checked rendering before any other extension sees it; ``root`` lies in the project."""

    def __init__(self, **settings: object) -> None:
        self.config = {"root": [".", "a folder inside the project"]}
        super().__init__(**settings)

    def extendMarkdown(self, md: Markdown) -> None:
        tokens: dict[str, str] = {}
        md.preprocessors.register(_Replace(md, str(self.getConfig("root")), tokens), "claims", 1000)
        md.postprocessors.register(_Fill(md, tokens), "claims", -1000)


class _Replace(Preprocessor):
    def __init__(self, md: Markdown, root: str, tokens: dict[str, str]) -> None:
        super().__init__(md)
        self.root, self.tokens = root, tokens

    def run(self, lines: list[str]) -> list[str]:
        rendered = gate_for(self.root).page("\n".join(lines))
        if rendered is None:
            return lines
        self.tokens.update(rendered.html)
        return rendered.markdown.split("\n")


class _Fill(Postprocessor):
    def __init__(self, md: Markdown, tokens: dict[str, str]) -> None:
        super().__init__(md)
        self.tokens = tokens

    def run(self, text: str) -> str:
        bare = PLAIN.sub(r"\1", text)  # they look like code as it is: most of a page's elements, saved
        return fill(bare, self.tokens)


def makeExtension(**settings: object) -> ClaimsExtension:
    return ClaimsExtension(**settings)
