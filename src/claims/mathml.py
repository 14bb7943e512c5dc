"""LaTeX to MathML at build time, on one line that Markdown passes through untouched.

The result is phrasing content for inline and for display math alike, so that a formula may stand in a paragraph, a
list item, a table cell, a heading or an admonition without making the HTML around it invalid.
"""

import html
import re

from math_core import LatexError, LatexToMathML

_CONVERTER = LatexToMathML(fancy_error=False)
_TAG = re.compile(r"(<[^<>]*>)")
_THOUSANDS = re.compile(r'(?<=\d)</mn><mo rspace="0">,</mo><mn>(?=\d{3}(?!\d))')
_PUNCTUATION = r"[!-/:-@[-`{-~\n\r\t]"
_UNSAFE_IN_ATTRIBUTE = re.compile(_PUNCTUATION)
_UNSAFE_IN_TEXT = re.compile(rf"{_PUNCTUATION}|(?<!\w)[A-Za-z](?=\w)")  # a word could be an abbreviation


class MathError(ValueError):
    """LaTeX that cannot be converted: what is wrong, and at which character of the formula, counted from 0."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


def to_mathml(latex: str, display: bool) -> str:
    r"""The HTML of one formula: MathML inside a `span`, which also carries the LaTeX in `data-latex` for copying.

    Punctuation and the first letter of each word are written as character references, so that no Markdown syntax
    (`*`, `_`, `|`, brackets, backslashes, braces) and no abbreviation takes hold of them. Thousands written
    `131{,}072` become one number.

    Raises:
        MathError: the LaTeX is empty or math-core refuses it.
    """
    if not latex.strip():
        raise MathError("the formula is empty", 0)
    try:
        mathml = _CONVERTER.convert_with_local_state(latex, displaystyle=display)
    except LatexError as error:
        position, _, message = str(error).partition(": ")
        raise MathError(message.rstrip("."), int(position)) from None
    kind = "math display" if display else "math"
    source = _UNSAFE_IN_ATTRIBUTE.sub(_reference, latex)
    return f'<span class="{kind}" data-latex="{source}">{_guarded(_THOUSANDS.sub(",", mathml))}</span>'


def _guarded(mathml: str) -> str:
    return "".join(
        part if part.startswith("<") else _UNSAFE_IN_TEXT.sub(_reference, html.unescape(part))
        for part in _TAG.split(mathml)
    )


def _reference(match: re.Match[str]) -> str:
    return f"&#{ord(match[0])};"
