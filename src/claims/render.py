"""A checked page as Markdown for the site.

Text goes in, text comes out: claims become ``<data>``, math becomes MathML, blocks are followed by what they printed and drew. HTML that must
not pass through a Markdown engine's block parser is stood in for by a token, a paragraph of its own, and put back by ``fill`` when the
engine is done.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from hashlib import sha256
from html import escape

from claims import mathml
from claims.check import Checked, Report, binding_place
from claims.equations import shown_tex
from claims.facts import author_line, link
from claims.finding import Finding
from claims.literal import Disagreement, number_of, plain
from claims.page import Block, Citation, Claim, Equation
from claims.session import Value

BIBLIOGRAPHY = "<!-- claims:bibliography -->"
LEDGER = "<!-- claims:ledger -->"
_MARKDOWN = str.maketrans({char: f"&#{ord(char)};" for char in "\\`*_{}[]()|$!~^"} | {"\n": " "})


@dataclass(frozen=True)
class Rendered:
    """Markdown with tokens in it, and the HTML of each token."""

    markdown: str
    html: dict[str, str]


def key(body: str) -> str:
    """Names a page by its body, as a Markdown engine is given it: without front matter."""
    rows = [row.rstrip() for row in body.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    return sha256("\n".join(rows).strip().encode()).hexdigest()


def fill(html: str, tokens: dict[str, str]) -> str:
    """Put the HTML back where its tokens stand."""
    if not tokens:
        return html
    return re.sub(r"<p>(CLAIMS[0-9a-f]{12}N\d+Z)</p>|(CLAIMS[0-9a-f]{12}N\d+Z)", lambda m: tokens[m[1] or m[2]], html)


def render(checked: Checked, report: Report, serving: bool = False) -> Rendered:
    """The page's body. ``serving`` shows what is wrong on the page itself instead of hiding it."""
    return _Renderer(checked, report, serving).body()


class _Renderer:
    def __init__(self, checked: Checked, report: Report, serving: bool) -> None:
        self.checked, self.page, self.report, self.serving = checked, checked.page, report, serving
        self.tokens: dict[str, str] = {}
        self.stem = sha256(f"{self.page.path}\0{self.page.text}".encode()).hexdigest()[:12]
        self.bibliography = next((page.path for page in report.pages if BIBLIOGRAPHY in page.page.text), None)

    def token(self, html: str) -> str:
        name = f"CLAIMS{self.stem}N{len(self.tokens)}Z"
        self.tokens[name] = html
        return name

    def body(self) -> Rendered:
        edits: list[tuple[int, int, str]] = []
        page = self.page
        spans = [block for block in page.python]
        inside = [(block.start, block.end) for block in spans]
        for claim, evaluation, verdict in zip(
            page.claims, self.checked.evaluations, self.checked.verdicts, strict=True
        ):
            if claim.kind == "link" and not _within(claim.outer[0], inside):
                edits.append((*claim.outer, self._claim(claim, evaluation.value, verdict)))
        for citation, verdict in zip(page.citations, self.checked.citations, strict=True):
            if not _within(citation.outer[0], inside):
                edits.append((*citation.outer, self._citation(citation, verdict)))
        edits += [
            (equation.start, equation.end, self._equation(equation))
            for equation in page.equations
            if not _within(equation.start, inside)
        ]
        edits += [(block.start, block.end, self._block(block)) for block in spans]
        for marker, html in ((BIBLIOGRAPHY, bibliography), (LEDGER, ledger)):
            if (at := page.text.find(marker)) >= 0:
                edits.append((at, at + len(marker), html(self.report, page.path)))
        text = _apply(page.text, page.front, edits)
        if self.serving and self.checked.findings:
            text = f"{self.token(_findings_html(self.checked.findings))}\n\n{text}"
        if foot := self._foot():
            text = f"{text.rstrip()}\n\n{self.token(foot)}\n"
        return Rendered(text, self.tokens)

    # --- claims and citations ---

    def _claim(self, claim: Claim, value: Value | None, verdict: Disagreement | None) -> str:
        if value is None:
            return f'<strong class="claim-drift">{claim.literal} ({_attribute(verdict.message if verdict else "no value")})</strong>'
        attributes = {"value": machine(value), "data-expression": claim.expression, "data-exact": value.shown}
        if (place := binding_place(self.page, claim)) and (number := self._block_at(place.line)) is not None:
            attributes["data-block"] = f"#block-{number + 1}"
        drift = " claim-drift" if verdict else ""
        shown = "".join(f' {name}="{_attribute(text)}"' for name, text in attributes.items())
        html = f'<data class="claim{drift}"{shown} tabindex="0">{claim.literal}</data>'
        return (
            html
            if not verdict
            else f'{html} <strong class="claim-drift">(the code gives {_attribute(value.shown)})</strong>'
        )

    def _block_at(self, line: int) -> int | None:
        for block in self.page.python:
            numbers = [self.page.source.lines[row].number for row in range(block.row, block.row + len(block.cuts))]
            if line in numbers:
                return block.number
        return None

    def _citation(self, citation: Citation, verdict: Disagreement | None) -> str:
        source = citation.key.split(".")[0]
        entry = self.report.facts.references.get(source)
        target = (
            f"[{citation.literal}]({self._to(self.bibliography)}#{source})"
            if self.bibliography and entry
            else citation.literal
        )
        fact = self.report.facts.facts.get(citation.key)
        if verdict:
            return f'<strong class="claim-drift">{citation.literal} ({_attribute(verdict.message)})</strong>'
        if fact is None or entry is None:
            return target
        said = f"{author_line(entry)} {entry.fields.get('year', '')}, {fact.where}".strip()
        attributes = {
            "value": machine(fact.value),
            "data-source": said,
            "data-note": fact.note,
            "data-unverified": fact.unverified,
        }
        shown = "".join(f' {name}="{_attribute(text)}"' for name, text in attributes.items() if text)
        mark = '<span class="claim-unverified" title="not verified at the source">?</span>' if fact.unverified else ""
        return f'<data class="claim cite"{shown}>{target}{mark}</data>'

    def _to(self, path: str | None) -> str:
        return posixpath.relpath(path or "", posixpath.dirname(self.page.path))

    # --- math ---

    def _equation(self, equation: Equation) -> str:
        html = mathml.to_mathml(shown_tex(equation.tex), equation.display)
        text = self.page.text
        start = text.rfind("\n", 0, equation.start) + 1
        prefix = text[start : equation.start]
        alone = not prefix.strip(" \t>") and not text[equation.end :].partition("\n")[0].strip()
        if equation.display and alone:
            return f"{self.token(html)}"
        return html

    # --- blocks ---

    def _block(self, block: Block) -> str:
        result = self.checked.block(block)
        rows: list[str] = []
        fence = re.match(r"[ \t>]*(`+)", self.page.text[block.start :]).group(1)
        attributes = [".python", f"#block-{block.number + 1}"]
        attributes += [
            f'{name}="{escape(block.options[name].value)}"' for name in ("title", "hl_lines") if name in block.options
        ]
        code = [f"{fence}{{{' '.join(attributes)}}}", *block.code.split("\n"), fence]
        if "fold" in block.flags:
            title = block.option("title") or "Code"
            rows += [
                "",
                self.token(f'<details class="claims-fold"><summary>{escape(title)}</summary>'),
                "",
                *code,
                "",
                self.token("</details>"),
                "",
            ]
        else:
            rows += code
        if why := block.option("static"):
            rows += ["", self.token(f'<p class="claims-static">Not run: {escape(why)}</p>'), ""]
        if result is not None:
            rows += self._results(block, result)
        return ("\n").join(block.prefix + row if row else block.prefix.rstrip() for row in rows)

    def _results(self, block: Block, result) -> list[str]:
        rows: list[str] = []
        if result.output.strip("\n"):
            rows += ["", self.token(_output(result.output.strip("\n"))), ""]
        if result.status == "raised":
            rows += ["", self.token(_output(result.failure.message, " claims-raised", "Exception")), ""]
        elif result.failure and self.serving:
            trace = "\n".join(f"{file}:{line} in {name}" for file, line, name in result.failure.frames)
            rows += [
                "",
                self.token(_output(f"{trace}\n{result.failure.message}".strip(), " claims-failed", "Failure")),
                "",
            ]
        for index, svg in enumerate(result.figures):
            name = f"figure-{block.number + 1}" + (f"-{index + 1}" if index else "")
            alt = _plain_text(block.option("alt") or "")
            named = _one_line(svg).replace("<svg ", f'<svg aria-label="{escape(alt)}" ', 1)
            drawing = f'<div class="claims-drawing">{named}</div>'
            caption = self._caption(block)
            rows += [
                "",
                self.token(
                    f'<figure class="claims-figure" id="{name}">{drawing}' + ("<figcaption>" if caption else "")
                ),
            ]
            if caption:
                rows += ["", caption, "", self.token("</figcaption></figure>"), ""]
            else:
                rows += ["", self.token("</figure>"), ""]
        return rows

    def _caption(self, block: Block) -> str:
        option = block.options.get("caption")
        if not option:
            return ""
        inside = (option.start, option.start + len(option.value))
        edits = [
            (*claim.outer, self._claim(claim, evaluation.value, verdict))
            for claim, evaluation, verdict in zip(
                self.page.claims, self.checked.evaluations, self.checked.verdicts, strict=True
            )
            if claim.kind == "link" and _within(claim.outer[0], [inside])
        ]
        edits += [
            (*citation.outer, self._citation(citation, verdict))
            for citation, verdict in zip(self.page.citations, self.checked.citations, strict=True)
            if _within(citation.outer[0], [inside])
        ]
        edits += [(e.start, e.end, self._equation(e)) for e in self.page.equations if _within(e.start, [inside])]
        return _apply(self.page.text[: inside[1]], inside[0], edits)

    # --- the foot of the page ---

    def _foot(self) -> str:
        claims = [claim for claim in self.page.claims if claim.kind != "chain" or not claim.optional]
        blocks = [block for block in self.checked.result.blocks if block.status in ("ran", "raised")]
        if not claims and not self.page.citations and not blocks:
            return ""
        summary = (
            f"Numbers on this page: {len(claims)} computed, {len(self.page.citations)} cited; "
            f"{len(blocks)} {'block' if len(blocks) == 1 else 'blocks'} run, {self.checked.figures} {'figure' if self.checked.figures == 1 else 'figures'} drawn"
        )
        rows = [
            f"<tr><td>{escape(_plain_text(claim.literal))}</td><td><code>{escape(claim.expression)}</code></td><td>{escape(evaluation.value.shown)}</td></tr>"
            for claim, evaluation in zip(self.page.claims, self.checked.evaluations, strict=True)
            if evaluation.value is not None
        ]
        for citation in self.page.citations:
            fact = self.report.facts.facts.get(citation.key)
            where = f"{citation.key.split('.')[0]}, {fact.where}" if fact else citation.key
            rows.append(
                f"<tr><td>{escape(_plain_text(citation.literal))}</td><td>{escape(where)}</td><td>{escape(fact.value.shown if fact else '')}</td></tr>"
            )
        head = "<thead><tr><th>On the page</th><th>Expression or source</th><th>Exact value</th></tr></thead>"
        table = (
            f'<div class="claims-table" role="region" aria-label="Numbers on this page" tabindex="0"><table>{head}<tbody>{"".join(rows)}</tbody></table></div>'
            if rows
            else ""
        )
        return f'<details class="claims-ledger"><summary>{summary}</summary>{table}</details>'


# --- generated pages -------------------------------------------------------------------------------------------------


def bibliography(report: Report, path: str) -> str:
    """Every reference, with the facts taken from it and links to the pages that cite it, as Markdown."""
    uses: dict[str, dict[str, None]] = {}
    for page in report.pages:
        for citation in page.page.citations:
            uses.setdefault(citation.key.split(".")[0], {})[page.path] = None
    rows = []
    for name, entry in sorted(
        report.facts.references.items(), key=lambda item: (author_line(item[1]).lower(), item[1].fields.get("year", ""))
    ):
        title = re.sub(r"[{}]", "", entry.fields.get("title", ""))
        where = entry.fields.get("journal") or entry.fields.get("booktitle") or entry.fields.get("howpublished") or ""
        target = link(entry)
        named = f"[{_text(title)}]({target})" if target else _text(title)
        tail = f", {_text(re.sub(r'[{}]', '', where))}" if where else ""
        cited = ", ".join(
            f"[{_title(report, page)}]({posixpath.relpath(page, posixpath.dirname(path))})"
            for page in uses.get(name, {})
        )
        note = f" {_text(entry.fields['annote'])}" if "annote" in entry.fields else ""
        rows.append(
            f'<a id="{name}"></a>**{_text(author_line(entry))}** {entry.fields.get("year", "")}. {named}{tail}.{note} Cited in: {cited or "nowhere"}.'
        )
        for fact in report.facts.facts.values():
            if fact.source == name:
                doubt = f" Not verified: {_text(fact.unverified)}." if fact.unverified else ""
                note = f" ({_text(fact.note)})" if fact.note else ""
                rows.append(f"\n    - {_text(fact.value.shown)} {_text(fact.unit)}: {_text(fact.where)}{note}.{doubt}")
        rows[-1] += "\n"
    return "\n\n".join(rows)


def ledger(report: Report, path: str) -> str:
    """Every claim of the site by page, as Markdown tables."""
    parts = []
    for page in report.pages:
        counted = [(c, e) for c, e in zip(page.page.claims, page.evaluations, strict=True) if e.value is not None]
        if not counted and not page.page.citations:
            continue
        target = posixpath.relpath(page.path, posixpath.dirname(path))
        parts.append(
            f"## [{_title(report, page.path)}]({target})\n\n| on the page | expression or source | exact value |\n|---|---|---|"
        )
        rows = [
            f"| {_text(_plain_text(c.literal))} | <code>{_text(c.expression)}</code> | {_text(e.value.shown)} |"
            for c, e in counted
        ]
        for citation in page.page.citations:
            if fact := report.facts.facts.get(citation.key):
                rows.append(
                    f"| {_text(_plain_text(citation.literal))} | {_text(fact.source)}, {_text(fact.where)} | {_text(fact.value.shown)} |"
                )
        parts[-1] += "\n" + "\n".join(rows)
    return "\n\n".join(parts)


def _title(report: Report, path: str) -> str:
    page = next((page.page for page in report.pages if page.path == path), None)
    if page is None:
        return path
    if isinstance(page.meta.get("title"), str):
        return page.meta["title"]
    found = re.search(r"^#\s+(.+?)\s*(?:\{.*\})?$", page.text[page.front :], re.M)
    return _plain_text(found.group(1)) if found else path


# --- small pieces ----------------------------------------------------------------------------------------------------


def machine(value: Value) -> str:
    """The value for a program: plain digits where it is a number."""
    number = number_of(value)
    if number is None:
        return value.text if value.kind in ("text", "bool") else value.shown
    if number.denominator == 1:
        return str(number.numerator)
    return repr(float(number))


def _attribute(text: str) -> str:
    return escape(text, quote=True).translate(_MARKDOWN)


def _text(text: str) -> str:
    return escape(" ".join(text.split()), quote=False).translate(_MARKDOWN)


def _plain_text(markdown: str) -> str:
    markdown = re.sub(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?:<[^>]*>|[^()]*(?:\([^()]*\)[^()]*)*)\)", r"\1", markdown)
    return plain(re.sub(r"[*`]", "", markdown))


def _one_line(svg: str) -> str:
    return re.sub(r"\n\s*", " ", svg.strip())


def _output(text: str, more: str = "", label: str = "Output") -> str:
    body = escape(text, quote=False).replace("\n", "&#10;")
    return f'<pre class="claims-output{more}" role="group" aria-label="{label}" tabindex="0"><samp>{body}</samp></pre>'


def _findings_html(findings: list[Finding]) -> str:
    rows = "".join(
        f"<li><code>{escape(f'{f.path}:{f.line}:{f.column}')}</code> {escape(f.slug)}: {escape(f.message)}</li>"
        for f in findings
    )
    return f'<div class="claims-findings" role="alert"><strong>{len(findings)} to repair</strong><ol>{rows}</ol></div>'


def _within(at: int, spans: list[tuple[int, int]]) -> bool:
    return any(start <= at < end for start, end in spans)


def _apply(text: str, start: int, edits: list[tuple[int, int, str]]) -> str:
    parts, at = [], start
    for begin, end, new in sorted(edits):
        if begin < at:
            continue
        parts += [text[at:begin], new]
        at = end
    return "".join([*parts, text[at:]])
