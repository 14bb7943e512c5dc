"""The style sheet and what the build makes for it agree, and its colours can be read."""

import re
from pathlib import Path

import pytest

from claims.figures import DARK, LIGHT
from claims.site.fonts import FONT

ASSETS = Path(__file__).parents[2] / "docs" / "assets"
STYLE = (ASSETS / "book.css").read_text("utf-8")
TEXT_CONTRAST = 4.5  # WCAG 2.2, level AA, for text of any size


def declared(selector: str) -> dict[str, str]:
    """The custom properties that the rules of `selector` set."""
    rules = re.findall(rf"^ *{re.escape(selector)} {{(.*?)}}", STYLE, re.MULTILINE | re.DOTALL)
    return dict(re.findall(r"(--[\w-]+): ([^;]+);", "".join(rules)))


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.005)


@pytest.mark.parametrize(
    ("selector", "colours"), [(":root", LIGHT), ('[data-md-color-scheme="slate"]', DARK)], ids=["light", "dark"]
)
def test_figures_have_the_colours_of_the_page(selector: str, colours: dict[str, str]) -> None:
    found = declared(selector)
    assert {name: found.get(f"--fig-{name}") for name in colours} == colours


@pytest.mark.parametrize(
    ("scheme", "paper", "code_paper"), [("default", "#ffffff", "#f5f5f5"), ("slate", "#1e2129", "#272a35")]
)
def test_text_can_be_read(scheme: str, paper: str, code_paper: str) -> None:
    found = declared(f'[data-md-color-scheme="{scheme}"]')
    code = {name: value for name, value in found.items() if name.startswith("--md-code-hl-")}
    assert len(code) == 6
    grounds = dict.fromkeys(code, code_paper) | {
        "--md-typeset-a-color": paper,
        "--book-wrong": found["--book-wrong-paper"],
    }
    low = {name: ratio for name in grounds if (ratio := contrast(found[name], grounds[name])) < TEXT_CONTRAST}
    assert low == {}


def test_the_style_asks_for_the_font_that_the_build_writes() -> None:
    [font] = re.findall(r'src: url\("([^"]+)"\)', STYLE)
    assert f"assets/{font}" == FONT
    assert FONT in (ASSETS.parent / ".overrides" / "main.html").read_text("utf-8")
