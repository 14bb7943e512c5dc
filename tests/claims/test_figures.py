"""Figures as SVG: what a browser and a reader need of them."""

import itertools
import re
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

from matplotlib import pyplot as plt

from claims import figures
from claims.figures import DARK, LIGHT, css, to_svg

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def style():
    with matplotlib.rc_context():
        figures.use_style()
        yield
        plt.close("all")


def draw():
    figure, axes = plt.subplots()
    axes.plot([1, 2, 3], [1.23456789, 4, 2], marker="o", label="heads")
    axes.plot([1, 2], [3, 2], color="black")
    axes.bar([2.6], [2], color="white", hatch="//")
    axes.text(1, 2, "a < b & $x^2$\n\nnext")
    axes.text(2, 3, "typed", family="monospace")
    axes.imshow([[0, 1], [1, 0]], extent=(1, 2, 1, 2))
    axes.legend()
    return figure


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def test_two_drawings_are_the_same_bytes():
    assert to_svg(draw(), "f1") == to_svg(draw(), "f1")


def test_it_is_one_line_that_stands_in_html():
    svg = to_svg(draw(), "f1")
    assert svg.startswith("<svg ") and svg.endswith("</svg>")
    assert "\n" not in svg
    assert not re.search("<metadata|<style|<!|<[?]|dc:|xlink|matplotlib.org", svg)


def test_the_root_scales_with_its_column():
    root = parsed(to_svg(plt.figure(figsize=(7.5, 4)), "f1"))
    assert (root.get("role"), root.get("viewBox"), root.get("width")) == ("img", "0 0 540 288", "100%")
    assert root.get("height") is None
    assert root.get("style").startswith("max-width: 720px; height: auto; ")


def test_text_is_text():
    root = parsed(to_svg(draw(), "f1"))
    texts = ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]
    assert {"heads", "typed", "next"} <= set(texts)
    assert [re.sub(r"\s", "", text) for text in texts if "&" in text] == ["a<b&x2"]


def test_only_monospace_overrides_the_page_font():
    svg = to_svg(draw(), "f1")
    assert set(re.findall(r"font-family: ([^;\"]+)", svg)) == {"var(--fig-font, sans-serif)", "monospace"}


def test_ids_are_prefixed_used_and_found():
    root = parsed(to_svg(draw(), "f1-2"))
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    used = set(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", to_svg(draw(), "f1-2")))
    assert len(ids) == len(set(ids)) > 2
    assert set(ids) == used
    assert all(name.startswith("f1-2-") for name in ids)


def test_two_figures_share_no_id():
    first, second = (set(re.findall(r' id="([^"]+)"', to_svg(draw(), prefix))) for prefix in ("f1", "f2"))
    assert first and not first & second


def test_every_colour_of_the_style_is_variable():
    svg = to_svg(draw(), "f1")
    fixed = re.findall(r"#[0-9a-f]{6}", re.sub(r"var\(--fig-\w+, #[0-9a-f]{6}\)", "", svg))
    assert fixed == []
    for name in ("1", "ink", "grid", "paper"):
        assert f"var(--fig-{name}, {LIGHT[name]})" in svg


def test_series_take_the_eight_colours_in_turn():
    figure, axes = plt.subplots()
    for _ in range(8):
        axes.plot([0, 1])
    svg = to_svg(figure, "f1")
    assert [int(n) for n in re.findall(r"stroke: var\(--fig-(\d)", svg)] == list(range(1, 9))


def test_a_colour_of_the_author_stays():
    figure, axes = plt.subplots()
    axes.plot([0, 1], color="#123456")
    assert "stroke: #123456" in to_svg(figure, "f1")


def test_nothing_is_painted_behind_the_figure():
    assert "--fig-paper" not in to_svg(plt.subplots()[0], "f1")


def test_coordinates_are_short():
    paths = " ".join(element.get("d") for element in parsed(to_svg(draw(), "f1")).iter(f"{SVG}path"))
    assert not re.search(r"\.\d{3}", paths)
    assert "-0 " not in paths


def test_the_shape_survives_the_shortening():
    figure = plt.figure(figsize=(1, 1), layout="none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.axis("off")
    axes.set(xlim=(0, 72), ylim=(0, 72))
    axes.plot([10.123456, 20.5, 70], [0, 36, 72])
    (path,) = [element.get("d") for element in parsed(to_svg(figure, "f1")).iter(f"{SVG}path")]
    assert path == "M10.12 72L20.5 36L70 0"


def test_the_page_own_settings_do_not_turn_text_into_paths():
    figure = draw()
    with matplotlib.rc_context({"svg.fonttype": "path"}):
        assert "<text" in to_svg(figure, "f1")


def test_capture_takes_figures_by_number():
    plt.figure(3).text(0.5, 0.5, "third")
    plt.figure(1).text(0.5, 0.5, "first")
    first, third = figures.capture("f1")
    assert "first" in first and "third" in third
    assert plt.get_fignums() == [1, 3]
    figures.close()
    assert figures.capture("f1") == ()


def test_the_style_does_not_depend_on_what_was_set_before():
    plt.rcParams["lines.linewidth"] = 9
    plt.rcParams["axes.titlesize"] = 40
    figures.use_style()
    assert plt.rcParams["lines.linewidth"] == figures.STYLE["lines.linewidth"]
    assert plt.rcParams["axes.titlesize"] == matplotlib.rcParamsDefault["axes.titlesize"]


def test_the_style_sheet_defines_every_variable_for_both_themes():
    light, dark = re.findall(r"([^{}]+) \{\n([^}]+)\}\n", css(".dark"))
    assert (light[0], dark[0]) == (":root", ".dark")
    for (_, body), colours in ((light, LIGHT), (dark, DARK)):
        assert dict(re.findall(r"--fig-(\w+): (#[0-9a-f]{6});", body)) == colours
    assert LIGHT.keys() == DARK.keys()


# The colours themselves. Contrast is WCAG 2's; the three kinds of colour blindness are simulated by the matrices of
# Machado, Oliveira and Fernandes (2009) at full severity, and distances are taken in Oklab (Ottosson, 2020).


def linear(colour: str) -> np.ndarray:
    channels = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def contrast(first: str, second: str) -> float:
    low, high = sorted(linear(colour) @ [0.2126, 0.7152, 0.0722] for colour in (first, second))
    return (high + 0.05) / (low + 0.05)


SIGHT = {
    "full": np.eye(3),
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}


def oklab(rgb: np.ndarray) -> np.ndarray:
    cones = np.array(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
    )
    opponents = np.array(
        [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ]
    )
    return opponents @ np.cbrt(cones @ rgb)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_stand_out_from_the_paper(colours):
    assert min(contrast(colours[str(n)], colours["paper"]) for n in range(1, 9)) >= 3
    assert contrast(colours["ink"], colours["paper"]) >= 7


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_series_stay_apart_for_every_eye(colours, sight):
    seen = [oklab(np.clip(np.array(SIGHT[sight]) @ linear(colours[str(n)]), 0, 1)) for n in range(1, 9)]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > 0.1
