import re

import markdown
import pytest
from bs4 import BeautifulSoup

from claims.check import check
from claims.gate import gate_for
from claims.inputs.trace import record, trace
from claims.project import find
from claims.session import Runner
from claims.site.render import Rendered, fill, key, render

EXTENSIONS = [
    "abbr",
    "admonition",
    "attr_list",
    "def_list",
    "footnotes",
    "md_in_html",
    "tables",
    "toc",
    "pymdownx.details",
    "pymdownx.highlight",
    "pymdownx.inlinehilite",
    "pymdownx.snippets",
    "pymdownx.superfences",
    "pymdownx.tabbed",
]
OPTIONS = {"toc": {"permalink": True}, "pymdownx.tabbed": {"alternate_style": True}}
BIB = "@misc{lind2031, author = {Lind, Ada}, title = {A_b * c}, year = {2031}, url = {https://example.org}}\n"
FACTS = '[lind2031.loss]\nvalue = 2.417\nwhere = "Table 4"\nnote = "a | b"\nunverified = "not opened"\n'
CODE = "```python\nlayers, table = 24, {'a|b_c*': [3, 4]}\n```\n\n"


@pytest.fixture
def html(project):
    """A text as the site would show it, with what the checker found."""

    def make(text, serving=False, **pages):
        root = project(a=text, **pages)
        (root / "docs/reference").mkdir(exist_ok=True)
        (root / "docs/reference/facts.toml").write_text(FACTS)
        (root / "docs/reference/references.bib").write_text(BIB)
        report = check(find(root))
        rendered = render(report.pages[0], report, serving)
        engine = markdown.Markdown(extensions=EXTENSIONS, extension_configs=OPTIONS)
        shown = BeautifulSoup(fill(engine.convert(rendered.markdown), rendered.html), "html.parser")
        assert not re.search(r"CLAIMS[0-9a-f]{12}N|claim:|cite:", str(shown))
        return shown

    return make


def data(soup):
    return [(tag.text, tag["value"], tag["data-expression"]) for tag in soup.select("data.claim")]


@pytest.mark.parametrize(
    ("text", "parents"),
    [
        ("Of [24](claim:layers) it is.\n", "p"),
        ("## Of [24](claim:layers) it is\n", "h2"),
        ("| a | b |\n|---|---|\n| [24](claim:layers) | c |\n", "td"),
        ("| [24](claim:layers) | b |\n|---|---|\n| a | c |\n", "th"),
        ('!!! note "Of [24](claim:layers)"\n\n    Words.\n', ".admonition-title"),
        ('??? note "Of [24](claim:layers)"\n\n    Words.\n', "summary"),
        ("!!! note\n\n    - a\n\n        Of [24](claim:layers)\n", ".admonition li"),
        ("A[^1]\n\n[^1]: Of [24](claim:layers).\n", ".footnote"),
        ("- a\n    - b\n        - [24](claim:layers)\n", "li li li"),
        ('=== "one"\n\n    Of [24](claim:layers)\n', ".tabbed-block"),
        ("> Of [24](claim:layers)\n", "blockquote"),
        ("**Of [24](claim:layers)**\n", "strong"),
        ("a\n: Of [24](claim:layers)\n", "dd"),
    ],
)
def test_a_claim_is_data_wherever_it_stands(html, text, parents):
    soup = html(CODE + text)
    assert data(soup) == [("24", "24", "layers")]
    assert soup.select(f"{parents} data.claim")


def test_anchors_are_clean(html):
    assert html(CODE + "## Of [24](claim:layers) layers, $x = \\claim{24}{layers}$\n").h2["id"] == "of-24-layers-x24"


@pytest.mark.parametrize(
    "expression", ["table['a|b_c*'][0]", "(table['a|b_c*'][0] * 1) | 1", "table['a|b_c*'][0] < 9 > 2 and 3"]
)
def test_expressions_come_through_whole(html, expression):
    soup = html(CODE + f"| a |\n|---|\n| [3](<claim:{expression}>) |\n")
    assert data(soup) == [("3", "3", expression)]


def test_exact_values_and_blocks(html):
    soup = html(CODE + "[≈ 4.899](<claim:layers**0.5>), [50%](<claim:layers / 48>), **[24](claim:layers)**\n")
    tags = soup.select("data.claim")
    assert [tag["value"] for tag in tags] == ["4.898979485566356", "0.5", "24"]
    assert {tag["data-block"] for tag in tags} == {"#block-1"} and soup.select_one("#block-1")


def test_citations_link_to_the_references(html):
    soup = html("[2.417](cite:lind2031.loss), [Lind](cite:lind2031).\n\n<!-- claims:bibliography -->\n")
    tag = soup.select_one("data.cite")
    assert (tag["value"], tag["data-source"], tag["data-note"]) == ("2.417", "Lind 2031, Table 4", "a | b")
    assert tag.a["href"] == "a.md#lind2031" and soup.select_one("a#lind2031")
    assert tag.select_one(".claim-unverified")
    assert "A_b * c" in soup.text and "Not verified: not opened" in soup.text and "Cited in:" in soup.text


def test_math_is_mathml(html):
    soup = html(
        CODE + "So $x_1 * y_1 = z$ and\n\n$$\n\\claim{24}{layers} | a_b * c_d\n$$\n\n| $a|b$ |\n|---|\n| $c_1$ |\n"
    )
    assert len(soup.select("math")) == 4 and not soup.select("em")
    assert soup.select_one("span.math.display")["data-latex"].strip() == "24 | a_b * c_d"


@pytest.mark.parametrize("prefix", ["", "    "])
def test_outputs_and_figures_follow_their_blocks(html, prefix):
    text = """\
!!! note

    Words.

    ```python alt="A [24](claim:layers) line" caption="Of [24](claim:layers) * things" title="A *t*" hl_lines="1"
    import matplotlib.pyplot as plt
    layers = 24
    plt.plot([1, 2])
    print("<b> *a* _b_ `c` | $d$\\n\\n    e")
    ```

=== "one"

    - a

        ```python fold raises="ValueError"
        int("*a*")
        ```
"""
    soup = html(text if prefix else re.sub(r"(?m)^    |^!!! note\n|^=== .*\n|^    - a\n|^        ", "", text))
    inside = ".admonition " if prefix else ""
    assert soup.select_one(f"{inside}pre.claims-output").text == "<b> *a* _b_ `c` | $d$\n\n    e"
    figure = soup.select_one(f"{inside}figure.claims-figure")
    assert figure.select_one("svg[role=img]")["aria-label"] == "A 24 line"
    assert figure.figcaption.text.strip() == "Of 24 * things" and figure.figcaption.data["value"] == "24"
    fold = soup.select_one(("li " if prefix else "") + "details.claims-fold")
    assert fold.select_one("code") and "int" in fold.text
    assert "ValueError: invalid literal" in soup.select_one(".claims-raised").text
    assert [tag.text for tag in soup.select(".filename")] == ["A t"]
    assert "1 figure drawn" in soup.select_one("details.claims-ledger summary").text


def test_a_block_may_print_html(html):
    code = "print('<table id=\"t\"><tr><td>6 * 7 = **42**</td></tr></table>\\n\\n<p>end</p>')"
    soup = html(f"```python html\n{code}\n```\n\nAfter.\n")
    assert soup.select_one("#t td").text == "6 * 7 = **42**"
    assert not soup.select(".claims-output")
    assert soup.find("p", string="After.")


def test_static_blocks_say_why(html):
    soup = html('```python static="it takes a week"\nlearn()\n```\n')
    assert soup.select_one("p.claims-static").text == "Not run: it takes a week"


def test_code_that_holds_fences(html):
    soup = html('````python\nx = """\n```\n"""\nprint(len(x))\n````\n')
    assert "```" in soup.select_one("code").text and soup.select_one("samp").text == "5"


def test_the_foot_counts(html):
    soup = html(CODE + "[24](claim:layers), [2.417](cite:lind2031.loss)\n")
    foot = soup.select_one("details.claims-ledger")
    assert foot.summary.text == "Numbers on this page: 1 computed, 1 cited; 1 block run, 0 figures drawn"
    assert [[cell.text for cell in row.select("td")] for row in foot.select("tbody tr")] == [
        ["24", "layers", "24"],
        ["2.417", "lind2031, Table 4", "2.417"],
    ]


def test_a_page_without_numbers_has_no_foot(html):
    assert html("Words.\n").find("details") is None


def test_the_ledger_gathers_the_book(html):
    soup = html("---\ntitle: L\n---\n<!-- claims:ledger -->\n", b=CODE + "# Of *b*\n\n[24](claim:layers|0)\n")
    assert soup.h2.a.text == "Of b" and soup.h2.a["href"] == "b.md"
    assert [cell.text for cell in soup.select("tbody td")][:3] == ["24", "layers|0", "24"]


def test_the_ledger_says_what_moves_a_number(project):
    code = "x, y = 12, 13\nz = x * 2\n\n\ndef fixed():\n    return 7\n"
    body = f"```python\n{code}```\n\n[24](claim:z), [6](<claim:2 * 3>), [7](claim:fixed()).\n"
    front = '---\nclaims:\n  constant:\n    "7": a number that was agreed on\n---\n'
    root = project(a="<!-- claims:ledger -->\n", b=front + body)
    stale = "What moves these numbers has not been worked out since the page last changed."

    def rows(text=front + body):
        project(b=text)
        report = check(find(root), runner=runner)
        return report, render(report.pages[0], report).markdown.splitlines()

    with Runner(root) as runner:
        report, shown = rows()
        assert stale in shown and "| 24 | <code>z</code> | 24 |  |" in shown
        record(report, trace(report, runner))
        _, shown = rows(front + "Words above.\n\n" + body)
        assert stale not in shown
        assert "| 24 | <code>z</code> | 24 | x, z |" in shown and "| 6 | <code>2 &#42; 3</code> | 6 |  |" in shown
        assert "| 7 | <code>fixed&#40;&#41;</code> | 7 | constant: a number that was agreed on |" in shown
        _, shown = rows(front + body.replace("13", "14"))
        assert stale in shown and "| 24 | <code>z</code> | 24 |  |" in shown


def test_serving_shows_what_is_wrong(html):
    text = CODE + "[25](claim:layers), [1](claim:none) and $\\frac{1}$.\n\n```python\n1 / 0\n```\n"
    soup = html(text, serving=True)
    assert "the code gives 24" in soup.text and "25" in soup.select_one("data.claim-drift").text
    assert len(soup.select(".claims-findings li")) == 3
    assert "ZeroDivisionError: division by zero" in soup.select_one(".claims-failed").text


def test_a_page_is_known_by_its_body():
    assert key("a \r\nb\n\n") == key("a\nb") != key("a\nc")
    assert fill("<p>CLAIMS0123456789abN7Z</p>", {"x": "y"}) == "<p>CLAIMS0123456789abN7Z</p>"
    assert Rendered("a", {}) == Rendered("a", {})


def test_a_folded_block_shows_its_title_once(html):
    shown = html(
        '```python fold title="What\'s in x"\nx = 1\n```\n\n```python title="The block\'s \\"own\\""\ny = 2\n```\n'
    )
    assert shown.find("summary").text == "What's in x"
    assert [title.text for title in shown.select("span.filename")] == ["The block's ”own”"]
    assert str(shown).count("What's in x") == 1 and "&amp;" not in str(shown)


def test_a_long_value_is_cut(html):
    text = "```python\nmany = list(range(801))\nwords = 'ab ' * 50\n```\n\n[(0, 1)](claim:many), [ab](claim:words)\n"
    shown = str(html(text, serving=True))
    assert "…, 801 values" in shown and "…, 150 characters" in shown
    assert "10, 11, 12" in shown and "30, 31, 32" not in shown and "ab " * 30 not in shown


def test_only_code_that_has_a_colour_is_marked(project):
    root = project(a='# A\n\n```python\nwidth = {"a": 3 if not [] else -4}\n```\n')
    gate = gate_for(str(root))
    try:
        gate.serving = True
        engine = markdown.Markdown(
            extensions=["claims", *EXTENSIONS], extension_configs=OPTIONS | {"claims": {"root": str(root)}}
        )
        code = BeautifulSoup(engine.convert((root / "docs/a.md").read_text()), "html.parser").select_one("pre > code")
    finally:
        gate.close()
    assert code.text == 'width = {"a": 3 if not [] else -4}\n'
    assert [(span["class"], span.text) for span in code.select("span[class]")] == [
        (["s2"], '"a"'),
        (["mi"], "3"),
        (["k"], "if"),
        (["ow"], "not"),
        (["k"], "else"),
        (["mi"], "4"),
    ]
