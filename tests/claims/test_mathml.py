"""Formulas survive Markdown unchanged, wherever they stand, and bad LaTeX is refused at its place."""

import xml.etree.ElementTree as ET

import markdown
import pytest

from claims.mathml import MathError, to_mathml

FORMULAS = [
    r"\frac{a}{b} + \tfrac1d + \dfrac{1}{2}",
    r"\sqrt{\tfrac1d\sum_i x_i^2 + \epsilon} + \sqrt[3]{x}",
    r"\operatorname{diag}(\gamma) \odot \operatorname*{argmax}_x f",
    r"\lVert x \rVert \le \langle q, k \rangle",
    r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}",
    r"\begin{aligned} a &= b * c \\ &= d \end{aligned}",
    r"f(x) = \begin{cases} x & \text{if } x > 0 \\ 0 & \text{otherwise} \end{cases}",
    r"\mathbb{R}^{d} \to \mathcal{L}, \mathbf{W}_Q, \mathtt{kv\_heads}",
    r"131{,}072\;\text{KiB} \cdot 2 \times 10^{-3}",
    r"\hat y, \bar x, \tilde x, \overline{xy}, \underbrace{2 \cdot 8}_{n}",
    r"\left\lfloor \frac{a}{b} \right\rfloor = \{x_i\}_{i=1}^{n} | [a] [b](c)",
    r"* a * b * c_d `e` \text{*e* ~f~ <b> :smile: ==g== --} \#",
    r"\{ .claims \}",
]
PLACES = {
    "paragraph": ("before {} after", "p"),
    "alone": ("{}", "p"),
    "heading": ("## Of {}", "h2"),
    "list": ("- item\n\n    {}", "li"),
    "table": ("| a | b |\n|---|---|\n| {} | c |", "td"),
    "admonition": ('!!! note "Title"\n    {}', "div"),
    "footnote": ("text[^1]\n\n[^1]: note {}", "li"),
}
EXTENSIONS = ["abbr", "admonition", "attr_list", "def_list", "footnotes", "md_in_html", "tables", "toc"]
EXTENSIONS += ["pymdownx.details", "pymdownx.inlinehilite", "pymdownx.superfences", "pymdownx.tabbed"]


@pytest.mark.parametrize("display", [False, True])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("latex", FORMULAS)
def test_markdown_leaves_a_formula_alone(latex: str, place: str, display: bool) -> None:
    formula = to_mathml(latex, display)
    source, parent = PLACES[place]
    page = markdown.markdown(source.format(formula) + "\n\n*[KiB]: kibibyte\n", extensions=EXTENSIONS)
    tree = ET.fromstring(f"<body>{page.replace('&nbsp;', ' ')}</body>")
    [found] = tree.iterfind(".//span[@data-latex]")
    found.tail = None
    assert ET.tostring(found) == ET.tostring(ET.fromstring(formula))
    assert any(found in holder.iter() for holder in tree.iter(parent))


@pytest.mark.parametrize("latex", FORMULAS)
def test_one_line_of_phrasing_content_that_keeps_its_source(latex: str) -> None:
    spread = latex.replace(" ", "\n")
    formula = to_mathml(spread, display=True)
    assert "\n" not in formula
    span = ET.fromstring(formula)
    assert (span.tag, span.get("class"), span.get("data-latex")) == ("span", "math display", spread)
    assert [(child.tag, child.get("display")) for child in span] == [("math", "block")]


def test_inline_and_display_differ() -> None:
    inline = ET.fromstring(to_mathml("x", display=False))
    assert (inline.get("class"), inline[0].attrib) == ("math", {})


@pytest.mark.parametrize(
    ("latex", "numbers"),
    [
        ("131{,}072", ["131,072"]),
        ("12{,}345{,}678.5", ["12,345,678.5"]),
        ("1{,}23", ["1", "23"]),
        ("f(1,234)", ["1", "234"]),
        ("1{,}2345", ["1", "2345"]),
    ],
)
def test_thousands_are_one_number(latex: str, numbers: list[str]) -> None:
    assert [number.text for number in ET.fromstring(to_mathml(latex, display=False)).iter("mn")] == numbers


@pytest.mark.parametrize(
    ("latex", "message", "position"),
    [
        (r"é + \foo", r'Unknown command "\foo"', 4),
        (r"\frac{a", 'Expected closing token "}", but reached end of input', 7),
        ("a & b", 'Found "&", which may only appear in a table-like environment', 2),
        ("a^b^c", "Duplicate subscript or superscript", 3),
        (r"\begin{foo}x\end{foo}", 'Unknown environment "foo"', 6),
        ("  ", "the formula is empty", 0),
    ],
)
def test_bad_latex_is_refused_at_its_place(latex: str, message: str, position: int) -> None:
    with pytest.raises(MathError) as caught:
        to_mathml(latex, display=False)
    assert (caught.value.message, caught.value.position, str(caught.value)) == (message, position, message)
