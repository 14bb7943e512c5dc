"""The dark pages are dark, measured instead of compared with stored pictures.

A stored picture differs on every machine that has other fonts, and grows the repository with each change; a tolerance
wide enough for fonts hides a white box. So a page is measured: its ground is the paper of the scheme, hardly a pixel
is near white, its figures turn with the scheme, and what is written in them stands out from the ground.
"""

import io
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Locator, Page

pytestmark = pytest.mark.browser

PAGES = ["", "decisions/heads-and-cache/", "decisions/dimensions/", "tools/calculator/", "tools/atlas/", "labs/tying/"]
WITH_FIGURES = ["", "decisions/heads-and-cache/", "decisions/dimensions/", "tools/atlas/"]
PAPER, CODE_PAPER = (30, 33, 41), (39, 42, 53)  # of the dark scheme; a lab on a phone is mostly code
NEAR_WHITE = 0.8  # relative luminance; the brightest text is 0.78
FEW, MANY = 0.03, 0.5  # shares of all pixels
TALLEST = 12_000  # pixels of a page that are looked at
TEXT_CONTRAST = 4.5  # WCAG 2.2, level AA


@dataclass(frozen=True)
class Picture:
    ground: tuple[int, ...]  # the colour of most pixels
    luminance: float  # their mean, from 0 to 1
    white: float  # the share of pixels that are near white


def luminance(colours: np.ndarray) -> np.ndarray:
    """Relative luminance, as WCAG defines it, of colours from 0 to 255 in the last axis."""
    channels = colours / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return linear @ np.array([0.2126, 0.7152, 0.0722])


def measure(png: bytes) -> Picture:
    image = Image.open(io.BytesIO(png)).convert("RGB")
    found = image.getcolors(image.width * image.height)
    counts, colours = (np.array(column) for column in zip(*found, strict=True))
    light = luminance(colours)
    return Picture(
        ground=max(found)[1],
        luminance=float((light * counts).sum() / counts.sum()),
        white=float(counts[light > NEAR_WHITE].sum() / counts.sum()),
    )


def picture(page: Page) -> Picture:
    """The whole page, its folded parts open."""
    page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
    height = min(page.evaluate("document.documentElement.scrollHeight"), TALLEST)
    width = page.viewport_size["width"]
    return measure(page.screenshot(full_page=True, clip={"x": 0, "y": 0, "width": width, "height": height}))


def faults(seen: Picture) -> list[str]:
    found = []
    if seen.ground not in (PAPER, CODE_PAPER):
        found.append(f"most of it has the colour {seen.ground}")
    if seen.luminance > 0.1:
        found.append(f"its mean luminance is {seen.luminance:.2f}")
    if seen.white > FEW:
        found.append(f"{seen.white:.1%} of it is near white")
    return found


@pytest.fixture(params=[1280, 390], ids=["laptop", "phone"])
def page(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    size = {"width": request.param, "height": 900}
    with browser.new_context(viewport=size, color_scheme="dark", reduced_motion="reduce") as context:
        yield context.new_page()


@pytest.mark.parametrize("path", PAGES)
def test_a_dark_page_is_dark(page: Page, address: str, path: str) -> None:
    page.goto(address + path, wait_until="networkidle")
    assert faults(picture(page)) == []


def figures(page: Page) -> list[Locator]:
    return page.locator(".claims-drawing > svg, .block-map").all()


@pytest.mark.parametrize("path", WITH_FIGURES)
def test_figures_turn_with_the_scheme(page: Page, address: str, path: str) -> None:
    page.goto(address + path, wait_until="networkidle")
    dark = [measure(figure.screenshot()) for figure in figures(page)]
    assert dark and [faults(seen) for seen in dark if faults(seen)] == []
    page.emulate_media(color_scheme="light")
    page.reload(wait_until="networkidle")
    light = [measure(figure.screenshot()) for figure in figures(page)]
    assert len(light) == len(dark) and [seen for seen in light if seen.white < MANY] == []


INKS = """() => [...document.querySelectorAll(".claims-drawing svg text, .block-map text")].map((text) => [
  text.textContent, getComputedStyle(text).fill.match(/[\\d.]+/g).map(Number), getComputedStyle(text).fillOpacity,
])"""


@pytest.mark.parametrize("path", WITH_FIGURES)
def test_what_figures_say_can_be_read(page: Page, address: str, path: str) -> None:
    page.goto(address + path, wait_until="networkidle")
    inks = page.evaluate(INKS)
    paper = luminance(np.array(PAPER))
    low = [text for text, ink, _ in inks if (luminance(np.array(ink[:3])) + 0.05) / (paper + 0.05) < TEXT_CONTRAST]
    assert len(inks) > 1 and low == []


def test_a_planted_white_box_is_found(page: Page, address: str) -> None:
    page.goto(address + "labs/tying/", wait_until="networkidle")
    page.evaluate("""document.querySelector("article p").insertAdjacentHTML(
        "afterend", "<div style='height: 600px; background: #fff'></div>")""")
    assert faults(picture(page))[-1].endswith("of it is near white")


def test_a_light_page_is_not_taken_for_a_dark_one(page: Page, address: str) -> None:
    page.emulate_media(color_scheme="light")
    page.goto(address + "labs/tying/", wait_until="networkidle")
    assert len(faults(picture(page))) == 3
