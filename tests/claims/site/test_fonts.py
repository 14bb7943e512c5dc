"""The math font has the glyphs that the pages need, keeps its MATH table and is the same bytes every time."""

import io
from itertools import pairwise
from pathlib import Path

import pytest
from fontTools.ttLib import TTFont

from claims.mathml import to_mathml
from claims.site import fonts

FORMULA = r"131{,}072 = \sqrt{x} + \left(\frac{a}{b}\right) \cdot \theta \epsilon \mathbb{R} \operatorname{diag}(h)"
PAGE = f"<p>Text outside of math: ∮ Ж.</p>\n<p>{to_mathml(FORMULA, display=False)}</p>"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "chapter").mkdir()
    (tmp_path / "chapter" / "index.html").write_text(PAGE, "utf-8")
    return tmp_path


def glyphs(font: bytes) -> set[str]:
    return {chr(code) for code in TTFont(io.BytesIO(font)).getBestCmap()}


def test_characters_are_those_shown_in_formulas(site: Path) -> None:
    found = fonts.characters(site)
    assert found >= set("0123,=√()⋅ℝdiag") | {"𝑥", "𝑎", "𝜃", "𝜖", "ℎ"}
    assert not found & set("∮ЖT")


def test_the_installed_font_covers_every_formula(site: Path) -> None:
    path = fonts.install(site)
    font = path.read_bytes()
    assert path == site / "assets/fonts/stix-two-math.woff2"
    assert font[:4] == b"wOF2"
    shown = {character for character in fonts.characters(site) if character.isprintable() and character != " "}
    assert shown - glyphs(font) == set()
    assert "∮" not in glyphs(font)


def test_brackets_and_roots_still_grow(site: Path) -> None:
    math = TTFont(io.BytesIO(fonts.subset(fonts.characters(site))))["MATH"].table
    variants = math.MathVariants
    grown = dict(zip(variants.VertGlyphCoverage.glyphs, variants.VertGlyphConstruction, strict=True))
    assert {"parenleft", "radical"} <= set(grown)
    assert all(grown[name].GlyphAssembly for name in ("parenleft", "radical"))


def test_each_part_of_what_grows_sideways_joins_the_next() -> None:
    font = TTFont(io.BytesIO(fonts.subset(frozenset("→←↔↦⏟"))))
    variants = font["MATH"].table.MathVariants
    grown = [each.GlyphAssembly.PartRecords for each in variants.HorizGlyphConstruction if each.GlyphAssembly]
    assert len(grown) == 5
    least = variants.MinConnectorOverlap
    for parts in grown:
        joints = [min(one.EndConnectorLength, two.StartConnectorLength) for one, two in pairwise(parts)]
        assert all(joint >= least for joint in joints), parts[-1].glyph


def test_the_same_characters_give_the_same_bytes() -> None:
    wanted = frozenset("abc√(){}")
    first = fonts.subset(wanted)
    fonts.subset.cache_clear()
    assert fonts.subset(wanted) == first


def test_the_font_is_a_small_part_of_the_original(site: Path) -> None:
    original = len(fonts._SOURCE.read_bytes())
    assert len(fonts.install(site).read_bytes()) < original / 20


def test_the_licence_lies_beside_the_font(site: Path) -> None:
    fonts.install(site)
    licence = (site / fonts.LICENCE).read_text("utf-8")
    assert licence.startswith("Copyright 2001-2020 The STIX Fonts Project Authors")
    assert "SIL OPEN FONT LICENSE" in licence
