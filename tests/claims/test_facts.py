from decimal import Decimal

import pytest

from claims.agree import agree
from claims.facts import author_line, link, load

BIB = """
@misc{one2031, author = {Lind, Ada}, title = {One}, year = {2031}, doi = {10.1/x}}
@article{two2032,
  author = {Lind, Ada and van der Berg, Tor}, title = {Two}, year = {2032}, eprint = {3201.00001}}
@misc{many2033, author = {A, A and B, B and C, C and D, D}, title = {Many}, year = {2033}, url = {https://example.org}}
@misc{others2034, author = {Lind, Ada and others}, title = {Others}, year = {2034}}
@misc{house2035, organization = {A House}, title = {House}, year = {2035}}
"""


@pytest.fixture
def facts(tmp_path):
    def make(text, bib=BIB):
        (tmp_path / "f.toml").write_text(text, encoding="utf-8")
        (tmp_path / "b.bib").write_text(bib, encoding="utf-8")
        return load(tmp_path, "f.toml", "b.bib")

    return make


@pytest.mark.parametrize(
    ("written", "literal"),
    [
        ("1.789", "1.789"),
        ("128", "128"),
        ('"128 KiB"', "131,072"),
        ('"float16"', "float16"),
        ("[1, 2]", "(1, 2)"),
        ("true", "yes"),
        ("1.50", "1.5"),
    ],
)
def test_values_are_exact(facts, written, literal):
    found = facts(f'[one2031.x]\nvalue = {written}\nwhere = "Table 1"\n')
    assert found.troubles == []
    assert agree(literal, found.facts["one2031.x"].value) is None
    assert agree("17", found.facts["one2031.x"].value).slug == "drift"


def test_a_decimal_is_not_a_float(facts):
    value = facts('[one2031.x]\nvalue = 0.1\nwhere = "p. 1"\n').facts["one2031.x"].value
    assert (value.kind, Decimal(value.text)) == ("decimal", Decimal("0.1"))


def test_troubles_stand_at_their_lines(facts):
    found = facts('# a comment\n[one2031.x]\nvalue = 1\n\n[none2030.y]\nvalue = 2\nwhere = "p. 1"\n')
    assert [(t.line, t.slug) for t in found.troubles] == [(2, "fact-without-place"), (5, "unknown-fact")]


def test_broken_files_are_troubles_not_errors(facts, tmp_path):
    assert [t.slug for t in facts("[one2031.x\n").troubles] == ["bad-facts"]
    assert [t.slug for t in facts("", "@misc{one2031,\n").troubles] == ["bad-bibliography"]
    (tmp_path / "f.toml").write_bytes(b"\xff")
    (tmp_path / "b.bib").write_bytes(b"\xff")
    assert [t.slug for t in load(tmp_path, "f.toml", "b.bib").troubles] == ["bad-bibliography", "bad-facts"]
    assert load(tmp_path, "none.toml", "none.bib").troubles == []


def test_names_and_links(facts):
    entries = facts("").references
    assert [author_line(entry) for entry in entries.values()] == [
        "Lind",
        "Lind and van der Berg",
        "A, B, C et al.",
        "Lind et al.",
        "A House",
    ]
    assert [link(entry) for entry in entries.values()] == [
        "https://doi.org/10.1/x",
        "https://arxiv.org/abs/3201.00001",
        "https://example.org",
        "",
        "",
    ]
