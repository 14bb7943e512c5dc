"""A checked page as Markdown for the site.

Text goes in, text comes out: claims become ``<data>``, math becomes MathML, blocks are followed by what they printed
and drew. HTML that must not pass through a Markdown engine's block parser is stood in for by a token, a paragraph of
its own, and put back by ``fill`` when the engine is done.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_right
from dataclasses import dataclass
from hashlib import sha256
from html import escape

from claims import mathml
from claims.agree import Disagreement, number_of
from claims.equations import shown_tex
from claims.facts import author_line
from claims.finding import Finding
from claims.glossary import GLOSSARY, Term
from claims.inline import Span
from claims.page import Block, Citation, Claim, Equation, Page
from claims.report import Checked, Report
from claims.results import BlockResult, Evaluation, Value
from claims.site.generated import BIBLIOGRAPHY, marks, plain_text, unmarked

Edit = tuple[int, int, str]

_TITLE = re.compile(r"\s*#[ \t].*(?:\n|$)")
_TOKEN = re.compile(r"<p>(CLAIMS[0-9a-f]{12}N\d+Z)</p>|(CLAIMS[0-9a-f]{12}N\d+Z)")


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
    return _TOKEN.sub(lambda found: tokens.get(found[1] or found[2], found[0]), html) if tokens else html


def gathers(page: Page) -> bool:
    """Whether a page shows what stands on other pages."""
    return any(marks(page))


def render(checked: Checked, report: Report, serving: bool = False) -> Rendered:
    """The page's body. ``serving`` shows what is wrong on the page itself."""
    return _Renderer(checked, report, serving).body()


class _Renderer:
    def __init__(self, checked: Checked, report: Report, serving: bool) -> None:
        self.checked, self.page, self.report, self.serving = checked, checked.page, report, serving
        self.tokens: dict[str, str] = {}
        self.stem = sha256(f"{self.page.path}\0{self.page.text}".encode()).hexdigest()[:12]
        self.bibliography = report.page_with(BIBLIOGRAPHY)
        self.glossary = report.page_with(GLOSSARY)

    def token(self, html: str) -> str:
        name = f"CLAIMS{self.stem}N{len(self.tokens)}Z"
        self.tokens[name] = html
        return name

    def body(self) -> Rendered:
        page = self.page
        blocks = [(block.start, block.end) for block in page.python]
        edits = [edit for edit in self._inline() if not _within(edit[0], blocks)]
        edits += [(block.start, block.end, self._block(block)) for block in page.python]
        if self.glossary and self.glossary != page.path:
            edits += [self._term(self.glossary, *use) for use in self.report.glossary.first_uses(page)]
        edits += [(start, end, make(self.report, page.path)) for start, end, make in marks(page)]
        text = _apply(page.text, page.front, edits)
        if self.serving and self.checked.findings:
            at = found.end() if (found := _TITLE.match(text)) else 0  # the title stays first, or the page would lose it
            text = f"{text[:at]}\n{self.token(_findings_html(self.checked.findings))}\n\n{text[at:]}"
        if foot := self._foot():
            text = f"{text.rstrip()}\n\n{self.token(foot)}\n"
        return Rendered(text, self.tokens)

    # --- claims, citations, math ---

    def _inline(self) -> list[Edit]:
        """What stands in running text, in the order of the page."""
        edits = [
            (*claim.outer, self._claim(claim, evaluation, verdict))
            for claim, evaluation, verdict in self._claims()
            if claim.kind == "link"
        ]
        for citation, verdict in zip(self.page.citations, self.checked.citations, strict=True):
            edits.append((*citation.outer, self._citation(citation, verdict)))
        edits += [(equation.start, equation.end, self._equation(equation)) for equation in self.page.equations]
        return sorted(edits)

    def _claims(self) -> list[tuple[Claim, Evaluation, Disagreement | None]]:
        return list(zip(self.page.claims, self.checked.evaluations, self.checked.verdicts, strict=True))

    def _claim(self, claim: Claim, evaluation: Evaluation, verdict: Disagreement | None) -> str:
        value = evaluation.value
        if value is None:
            return _wrong(claim.literal, verdict.message if verdict else "no value")
        attributes = {"value": machine(value), "data-expression": claim.expression, "data-exact": value.brief}
        if bound := self.page.binding(claim.expression):
            attributes["data-block"] = f"#block-{bound[1].number + 1}"
        html = f'<data class="claim{" claim-drift" if verdict else ""}"{_attributes(attributes)} tabindex="0">'
        html += f"{claim.literal}</data>"
        if verdict:
            html += f' <strong class="claim-drift">(the code gives {_attribute(value.brief)})</strong>'
        return html

    def _citation(self, citation: Citation, verdict: Disagreement | None) -> str:
        if verdict:
            return _wrong(citation.literal, verdict.message)
        source = citation.key.split(".")[0]
        entry = self.report.facts.references.get(source)
        fact = self.report.facts.facts.get(citation.key)
        text = citation.literal
        if self.bibliography and entry:
            text = f"[{text}]({self._to(self.bibliography)}#{source})"
        if fact is None or entry is None:
            return text
        attributes = {
            "value": machine(fact.value),
            "data-source": f"{author_line(entry)} {entry.fields.get('year', '')}, {fact.where}".strip(),
            "data-note": fact.note,
            "data-unverified": fact.unverified,
        }
        mark = '<span class="claim-unverified" title="not verified at the source">?</span>' if fact.unverified else ""
        return f'<data class="claim cite"{_attributes(attributes)}>{text}{mark}</data>'

    def _to(self, path: str) -> str:
        return posixpath.relpath(path, posixpath.dirname(self.page.path))

    def _equation(self, equation: Equation) -> str:
        try:
            html = mathml.to_mathml(shown_tex(equation.tex), equation.display)
        except mathml.MathError as error:  # a finding, so this is seen under serve only
            return _wrong(f"<code>{_attribute(equation.tex)}</code>", error.message)
        text = self.page.text
        before = text[text.rfind("\n", 0, equation.start) + 1 : equation.start]
        after = text[equation.end :][: max(0, text.find("\n", equation.end) - equation.end)]
        alone = not before.strip(" \t>") and not after.strip()
        return self.token(html) if equation.display and alone else html

    def _term(self, glossary: str, start: int, end: int, term: Term) -> Edit:
        target = f"{self._to(glossary)}#{term.anchor}"
        return start, end, f'[{self.page.text[start:end]}]({target} "{_attribute(term.meaning)}"){{.term}}'

    # --- blocks ---

    def _block(self, block: Block) -> str:
        fence = "`" * max(3, max((len(ticks) for ticks in re.findall(r"`+", block.code)), default=0) + 1)
        attributes = [".python", f"#block-{block.number + 1}"]
        if lines := block.option("hl_lines"):
            attributes.append(f'hl_lines="{escape(lines)}"')
        title = plain_text(block.option("title") or "")
        if title and "fold" not in block.flags:
            attributes.append(f"title={_quoted(title)}")
        rows = [f"{fence}{{{' '.join(attributes)}}}", *block.code.split("\n"), fence]
        if "fold" in block.flags:
            summary = f'<details class="claims-fold"><summary>{escape(title or "Code")}</summary>'
            rows = [*self._alone(summary), *rows, *self._alone("</details>")]
        if why := block.option("static"):
            rows += self._alone(f'<p class="claims-static">Not run: {escape(plain_text(why))}</p>')
        if result := self.checked.block(block):
            rows += self._results(block, result)
        return "\n".join(block.prefix + row if row else block.prefix.rstrip() for row in rows)

    def _alone(self, html: str) -> list[str]:
        return ["", self.token(html), ""]

    def _results(self, block: Block, result: BlockResult) -> list[str]:
        rows: list[str] = []
        if printed := result.output.strip("\n"):
            rows += self._alone(printed if "html" in block.flags else _output(printed))
        if result.failure and result.status == "raised":
            rows += self._alone(_output(result.failure.message, " claims-raised", "Exception"))
        elif result.failure and self.serving:
            trace = [f"{file}:{line} in {name}" for file, line, name in result.failure.frames]
            rows += self._alone(_output("\n".join([*trace, result.failure.message]), " claims-failed", "Failure"))
        for index, svg in enumerate(result.figures):
            rows += self._figure(block, svg, f"figure-{block.number + 1}" + (f"-{index + 1}" if index else ""))
        return rows

    def _figure(self, block: Block, svg: str, name: str) -> list[str]:
        alt = escape(plain_text(block.option("alt") or ""))
        drawing = re.sub(r"\n\s*", " ", svg.strip()).replace("<svg ", f'<svg aria-label="{alt}" ', 1)
        html = f'<figure class="claims-figure" id="{name}"><div class="claims-drawing">{drawing}</div>'
        caption = self._caption(block)
        if not caption:
            return self._alone(f"{html}</figure>")
        return [*self._alone(f"{html}<figcaption>"), caption, *self._alone("</figcaption></figure>")]

    def _caption(self, block: Block) -> str:
        if "caption" not in block.options:
            return ""
        option = block.options["caption"]
        edits = [edit for edit in self._inline() if option.start <= edit[0] < option.end]
        return _apply(self.page.text[: option.end], option.start, edits)

    # --- the foot of the page ---

    def _foot(self) -> str:
        claims = [(claim, evaluation.value) for claim, evaluation, _ in self._claims() if evaluation.value]
        run = sum(block.status in ("ran", "raised") for block in self.checked.result.blocks)
        if not claims and not self.page.citations and not run:
            return ""
        rows = [_row(claim.literal, f"<code>{escape(claim.expression)}</code>", value.brief) for claim, value in claims]
        for citation in self.page.citations:
            fact = self.report.facts.facts.get(citation.key)
            where = f"{fact.source}, {fact.where}" if fact else citation.key
            rows.append(_row(citation.literal, escape(where), fact.value.brief if fact else ""))
        head = "<thead><tr><th>On the page</th><th>Expression or source</th><th>Exact value</th></tr></thead>"
        table = f"<table>{head}<tbody>{''.join(rows)}</tbody></table>"
        region = '<div class="claims-table" role="region" aria-label="Numbers on this page" tabindex="0">'
        summary = (
            f"Numbers on this page: {len(claims)} computed, {len(self.page.citations)} cited; "
            f"{_count(run, 'block')} run, {_count(self.checked.figures, 'figure')} drawn"
        )
        body = f"{region}{table}</div>" if rows else ""
        return f'<details class="claims-ledger"><summary>{summary}</summary>{body}</details>'


# --- small pieces ----------------------------------------------------------------------------------------------------


def machine(value: Value) -> str:
    """The value for a program: plain digits where it is a number."""
    number = number_of(value)
    if number is None:
        return value.brief
    if number.denominator == 1:
        return str(number.numerator)
    return repr(float(number))


def _row(literal: str, origin: str, value: str) -> str:
    return f"<tr><td>{escape(plain_text(literal))}</td><td>{origin}</td><td>{escape(value)}</td></tr>"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _wrong(text: str, message: str) -> str:
    return f'<strong class="claim-drift">{text} ({_attribute(message)})</strong>'


def _attribute(text: str) -> str:
    return unmarked(escape(text, quote=True))


def _quoted(text: str) -> str:
    """An option of a fence: the engine knows no escapes there, and makes HTML of it by itself."""
    return f"'{text}'" if '"' in text and "'" not in text else f'"{text.replace(chr(34), "”")}"'


def _attributes(attributes: dict[str, str]) -> str:
    return "".join(f' {name}="{_attribute(text)}"' for name, text in attributes.items() if text)


def _output(text: str, more: str = "", label: str = "Output") -> str:
    body = escape(text, quote=False).replace("\n", "&#10;")
    return f'<pre class="claims-output{more}" role="group" aria-label="{label}" tabindex="0"><samp>{body}</samp></pre>'


def _findings_html(findings: list[Finding]) -> str:
    rows = "".join(
        f"<li><code>{escape(f'{f.path}:{f.line}:{f.column}')}</code> {escape(f.slug)}: {escape(f.message)}</li>"
        for f in findings
    )
    return f'<div class="claims-findings" role="alert"><strong>{len(findings)} to repair</strong><ol>{rows}</ol></div>'


def _within(at: int, spans: list[Span]) -> bool:
    """Whether an offset lies in one of the spans, which are sorted and apart."""
    index = bisect_right(spans, (at, len(spans) and spans[-1][1])) - 1
    return index >= 0 and spans[index][0] <= at < spans[index][1]


def _apply(text: str, start: int, edits: list[Edit]) -> str:
    parts, at = [], start
    for begin, end, new in sorted(edits):
        if begin >= at:
            parts += [text[at:begin], new]
            at = end
    return "".join([*parts, text[at:]])
