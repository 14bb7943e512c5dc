import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

PAGES = sorted(Path(__file__).parents[2].glob("docs/**/*.md"))
FILL = st.text(st.characters(codec="utf-8", exclude_characters="\r\n[]()`$\\<>{}|"), max_size=30)


def claims(page):
    return [(claim.literal, claim.expression) for claim in page.claims]


def loose(page):
    return [number.text for number in page.loose]


def slugs(page):
    return [problem.slug for problem in page.problems]


def spans_hold(page, text):
    """The text at every reported place of the page's own lines is the literal."""
    rows = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for item in [*page.claims, *page.citations, *page.loose]:
        place = page.place(item.start, item.end)
        if place.path != page.path:
            continue
        written = rows[place.line - 1][place.column - 1 : place.end_column - 1]
        assert written == page.text[item.start : item.end].split("\n")[0]
        if getattr(item, "kind", getattr(item, "where", "")) not in ("chain", "math"):  # those are TeX
            literal = getattr(item, "literal", getattr(item, "text", ""))
            assert written == literal.split("\n")[0]


@given(st.lists(st.tuples(FILL, st.integers(11, 10**9)), min_size=1, max_size=8), st.sampled_from(["\n", "\r\n", "\r"]))
def test_spans_are_exact(page, parts, end):
    text = "".join(f"{fill} [{number:,}](claim:{number}) {fill}{end}" for fill, number in parts)
    found = page(text)
    assert claims(found) == [(f"{number:,}", str(number)) for _, number in parts]
    spans_hold(found, text)


@given(st.text(max_size=300))
def test_any_text_is_a_page(page, text):
    spans_hold(page(text), text)


MARKS = [
    "```python\n",
    "```\n",
    "[12](claim:x",
    ")",
    "(<claim:",
    ">)",
    "$",
    "$$",
    "\\claim{",
    "}",
    "{",
    "`",
    "<!--",
    "-->",
    "\n\n",
    "\n    ",
    "> ",
    "- ",
    "|",
    "---\n",
    "[",
    "]",
    "(",
    "# = 12",
    "12",
    "≈",
    "\\frac",
    "!!! note\n",
    "~~~",
    "--8<--",
    "\ufeff",
    "\t",
    "[^1]:",
    "claims:\n  waive:\n",
    "'",
    '"',
    "<div ",
    ">",
    "&#12;",
    "½",
    "😀",
]


@given(st.lists(st.sampled_from(MARKS), max_size=40))
def test_any_mark_up_is_a_page(page, marks):
    text = "".join(marks)
    spans_hold(page(text), text)


@pytest.mark.parametrize("seed", range(20))
def test_a_page_of_the_book_may_be_broken_anywhere(page, seed):
    chance = random.Random(seed)
    text = chance.choice(PAGES).read_text(encoding="utf-8")
    for _ in range(30):
        at = chance.randrange(len(text))
        text = text[:at] + chance.choice(["", "`", "$", "[", ")", "\n", ">", "{", "\x00", "é"]) + text[at + 1 :]
    spans_hold(page(text), text)


@pytest.mark.parametrize(
    "text",
    [
        "- a\n    - b [12](claim:x)\n",
        "!!! note\n    [12](claim:x)\n",
        '??? tip "t"\n\n    [12](claim:x)\n',
        '=== "one"\n\n    [12](claim:x)\n',
        "> [12](claim:x)\n",
        "| a |\n|---|\n| [12](claim:x) |\n",
        "A[^1]\n\n[^1]: is [12](claim:x)\n",
        "# Of [12](claim:x)\n",
        "\t- [12](claim:x)\n",
        "**[12](claim:x)**\n",
        "<div markdown>\n[12](claim:x)\n</div>\n",
        "A 😀 and 漢字 [12](claim:x)\n",
        "é́ [12](claim:x)\n",
        "\ufeff[12](claim:x)\n",
        "---\ntitle: t\n---\n[12](claim:x)\n",
        "\\[no\\] [12](claim:x)\n",
        "[a [12](claim:x)](b.md)\n",
        "`code` [12](claim:x)\n",
        "`` a ` b `` [12](claim:x)\n",
        "a_b_c [12](claim:x)\n",
        "[12]( claim:x)\n",
    ],
)
def test_a_claim_stands_anywhere(page, text):
    found = page(text)
    assert claims(found) == [("12", "x")]
    assert found.problems == [] and found.loose == []
    spans_hold(found, text)


@pytest.mark.parametrize(
    ("mark", "expression"),
    [
        ("[1](claim:f(g(1)))", "f(g(1))"),
        ("[1](<claim:a > b>)", "a > b"),
        ("[1](<claim:(a) > (b)>)", "(a) > (b)"),
        ("[1](<claim:f(')')>)", "f(')')"),
        ("[1](claim:d[')'])", "d[')']"),
        ('[1](<claim:d["> )"]>)', 'd["> )"]'),
        ("[1](claim:x[0][1])", "x[0][1]"),
        ("[1](<claim:a | b>)", "a | b"),
        ("[1](<claim:a * b_c>)", "a * b_c"),
        ("[1](<claim:{1: 2}[1]>)", "{1: 2}[1]"),
        ("[1](<claim:x >> 2>)", "x >> 2"),
        ("[1](<claim:[i for i in y]>)", "[i for i in y]"),
    ],
)
def test_expressions_hold_any_bracket(page, mark, expression):
    assert claims(page(f"An {mark} end.\n")) == [("1", expression)]


@pytest.mark.parametrize(
    ("mark", "literal"), [("[[1]](claim:x)", "[1]"), ("[`]` 1](claim:x)", "`]` 1"), ("[(1)](claim:x)", "(1)")]
)
def test_literals_hold_any_bracket(page, mark, literal):
    assert claims(page(mark)) == [(literal, "x")]


def test_what_is_no_mark_up_binds_nothing(page):
    found = page(
        "\\[12](claim:x)\n\n`[13](claim:x)`\n\n<!-- [14](claim:x) -->\n\n````text\n```\n[15](claim:x)\n```\n````\n"
    )
    assert claims(found) == []
    assert "15" in loose(found)


def test_four_backticks_hold_three(page):
    found = page('````python\nx = """\n```\n"""\n````\n\n[1](claim:x)\n')
    assert [block.code for block in found.blocks] == ['x = """\n```\n"""']
    assert found.problems == []


@pytest.mark.parametrize("prefix", ["    ", "\t", "> ", ">     ", "  "])
def test_nested_blocks_are_dedented(page, prefix):
    text = f"- a\n\n{prefix}```python\n{prefix}if x:\n{prefix}    y\n{prefix}```\n"
    found = page(text)
    assert [block.code for block in found.python] == ["if x:\n    y"]
    assert found.problems == []


def test_tabs_and_spaces_may_meet_in_a_block(page):
    assert page("- a\n\n\t```python\n    x = 1\n\t```\n").python[0].code == "x = 1"


@pytest.mark.parametrize(
    "text",
    [
        "GPT-2, Llama-3, T5-11B, FP16, H200, x1",
        "§3.2 and §4",
        "v0.1 and 3.11.7",
        "chapter 12, Figures 11 and 12, steps 11–13",
        "2027-05-05 and 5 May 2027 and May 2027",
        "in 2017, since 2023 (2019)",
        "the 21st, 2-D",
        "arXiv:1706.03762",
        "Python 3.11",
        "3 of 10 things",
        "10. not a list",
        "[a](b12.md) <https://x.org/12> https://x.org/12",
        "![a](c12.png){ width=300 }",
        "&#120; {#id-12 .c12}",
        "1. a list\n2. of two",
        "# 12. A chapter",
        "one token, a second head",
    ],
)
def test_structural_numbers_are_left_alone(page, text):
    assert loose(page(text + "\n")) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Across 32 layers", ["32"]),
        ("8 heads", ["8"]),
        ("8 more heads", ["8"]),
        ("8\nheads", ["8"]),
        ("twelve layers", ["twelve"]),
        ("half the bytes", ["half"]),
        ("a third of the heads", ["third"]),
        ("four times", ["four times"]),
        ("5% more", ["5"]),
        ("3× more", ["3"]),
        ("0.5", ["0.5"]),
        ("128 KiB", ["128"]),
        ("7B", ["7"]),
        ("in 2000 samples", ["2000"]),
        ("−12", ["−12"]),
        ("≈ 12", ["≈ 12"]),
        ("(12)", ["12"]),
        ("12,5", ["12,5"]),
        ("11/12", ["11", "12"]),
        ("2012.12345", ["2012.12345"]),
        ("½ of it", ["½"]),
        ("twofold", ["twofold"]),
        ("1e6", ["1e6"]),
        ("a 12-layer model", ["12"]),
        ("$24 B$", ["24"]),
    ],
)
def test_quantities_are_loose(page, text, expected):
    assert loose(page(text + "\n")) == expected


def test_where_nothing_is_read(tmp_path, page):
    assert page("").problems == []
    (tmp_path / "loop.md").symlink_to("loop.md")
    (tmp_path / "latin.md").write_bytes("é".encode("latin-1"))
    (tmp_path / "folder.md").mkdir()
    for name in ("loop", "latin", "folder", "none"):
        (problem,) = page(None, f"{name}.md", tmp_path).problems
        assert problem.slug == "unreadable"
        assert ("not UTF-8" if name == "latin" else "cannot be read") in problem.message


def test_a_page_of_five_thousand_claims(page):
    text = "".join(f"Row {i + 11:,}: [{i + 11:,}](claim:x[{i}])\n\n" for i in range(5000))
    found = page(text)
    assert len(found.claims) == 5000 and len(found.loose) == 5000
    assert found.place(found.claims[-1].start, found.claims[-1].end).line == 9999


def test_a_notebook_is_a_page(page):
    text = "# %% [markdown]\n# # Of [12](claim:x)\n# and 13\n\n# %%\nx = 12  # = 12\n\n"
    text += "# %% raises='ValueError'\nint('a')\n"
    found = page(text, "lab.py")
    assert [claim.literal for claim in found.claims] == ["12", "12"]
    assert loose(found) == ["13"]
    assert [block.option("raises") for block in found.python] == [None, "ValueError"]
    spans_hold(found, text)


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("x + 1  # = 4", ("4", "x + 1")),
        ("y = x  # ≈ 4.0", ("≈ 4.0", "y")),
        ("print(x)  # < 4", ("< 4", "x")),
        ("z: int = 4  # = 4", ("4", "z")),
    ],
)
def test_comments_claim(page, comment, expected):
    assert claims(page(f"```python\n{comment}\n```\n")) == [expected]


def test_hashes_in_strings_are_no_comments(page):
    found = page('```python\nx = \'# = 12\'\ny = """\n# 12\n"""\n```\n')
    assert found.claims == [] and found.loose == []
