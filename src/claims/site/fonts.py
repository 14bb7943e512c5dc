"""The math font of a built site: STIX Two Math, cut down to the characters that its formulas use.

`install` reads the built pages of a folder and writes the font as WOFF2, with its licence, to `assets/fonts/` below it.
It needs no hook of the engine that built the site.
"""

from __future__ import annotations

import io
import re
import unicodedata
from functools import lru_cache
from html import unescape
from importlib.metadata import distribution
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fontTools.ttLib import TTFont

FONT = "assets/fonts/stix-two-math.woff2"
LICENCE = "assets/fonts/OFL.txt"
_SOURCE = Path(str(distribution("ziamath").locate_file("ziamath/fonts/STIXTwoMath-Regular.ttf")))
_ALWAYS = "√"  # drawn for a root, though no text has it
_ITALICS = "ℎ" + "".join(map(chr, [*range(0x1D434, 0x1D468), *range(0x1D6E2, 0x1D71C)]))
_MATH = re.compile(r"<math\b.*?</math>", re.DOTALL)
_IDENTIFIER = re.compile(r"<mi\b[^>]*>([^<]*)</mi>")
_TAG = re.compile(r"<[^<>]*>")
_FEATURES = ["ccmp", "dtls", "flac", "math"]  # "ssty", shapes for small scripts, would double it; few ask for it
_NAMES = [0, 1, 2, 3, 4, 5, 6, 7, 13, 14]  # names, version, copyright, trademark and licence travel with the font


def install(site: Path) -> Path | None:
    """Write the font that the pages of `site` need, and its licence; the path of the font, None without a formula."""
    wanted = characters(site)
    if not wanted:
        return None
    font, licence = site / FONT, site / LICENCE
    font.parent.mkdir(parents=True, exist_ok=True)
    font.write_bytes(subset(wanted))
    licence.write_text(f"{_copyright()}\n\n{files('claims.site').joinpath('OFL.txt').read_text('utf-8')}", "utf-8")
    return font


def characters(site: Path) -> frozenset[str]:
    """Every character shown inside a `<math>` element of the HTML files under `site`, none if there is no such element.

    A variable of one letter is shown in italics, which are characters of their own; those are included.
    """
    found: set[str] = set()
    for page in site.rglob("*.html"):
        for formula in _MATH.findall(page.read_text("utf-8")):
            found.update(_ALWAYS)
            found.update(unescape(_TAG.sub("", formula)))
            found.update(*map(_italics, map(unescape, _IDENTIFIER.findall(formula))))
    return frozenset(found)


@lru_cache(maxsize=4)
def subset(wanted: frozenset[str]) -> bytes:
    """The font as WOFF2 with the glyphs of `wanted` and those they grow into, the same bytes for the same characters.

    The MATH table stays, so fences, roots and arrows still stretch.
    """
    from fontTools.subset import Options, Subsetter  # takes a while, and not every site has formulas
    from fontTools.ttLib import TTFont

    options = Options()
    options.flavor = "woff2"
    options.hinting = False
    options.layout_features = _FEATURES
    options.name_IDs = _NAMES
    options.notdef_outline = True
    with TTFont(_SOURCE, lazy=True, recalcTimestamp=False) as font:
        _join_arrows(font)
        subsetter = Subsetter(options)
        subsetter.populate(text="".join(sorted(wanted)))
        subsetter.subset(font)
        font.flavor = "woff2"
        written = io.BytesIO()
        font.save(written)
    return written.getvalue()


def _join_arrows(font: TTFont) -> None:
    """Let arrows to the right grow: in STIX Two Math 2.11 the head of one says that it joins at its tip."""
    for construction in font["MATH"].table.MathVariants.HorizGlyphConstruction:
        if construction.GlyphAssembly:
            last = construction.GlyphAssembly.PartRecords[-1]
            ends = last.StartConnectorLength, last.EndConnectorLength
            last.StartConnectorLength, last.EndConnectorLength = sorted(ends, reverse=True)


def _copyright() -> str:
    from fontTools.ttLib import TTFont

    with TTFont(_SOURCE, lazy=True) as font:
        return "\n".join(str(font["name"].getDebugName(name)) for name in (0, 7, 13))


@lru_cache
def _italics(identifier: str) -> frozenset[str]:
    """The mathematical italics of one letter: two for a Greek letter with two shapes, none for a word or a digit."""
    plain = unicodedata.normalize("NFKC", identifier)
    return frozenset(italic for italic in _ITALICS if unicodedata.normalize("NFKC", italic) == plain)
