"""Draws matplotlib figures as inline SVG: real text, no fixed colours, the same bytes each time.

`STYLE` draws in the colours of `LIGHT`. `to_svg` replaces each of them by a CSS variable, so that one drawing serves
every theme for which `css` defines the variables.
"""

from __future__ import annotations

import io
import re
import sys
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Eight series colours whose contrast with the paper is at least 3:1 and that stay apart for readers who see no red,
# no green or no blue, with the colours of lines and text (ink), of grids and of what lies behind.
LIGHT = {
    "1": "#105fcf",
    "2": "#a53605",
    "3": "#84950d",
    "4": "#2a5671",
    "5": "#c1699b",
    "6": "#2a0293",
    "7": "#3794f0",
    "8": "#55181d",
    "ink": "#24292f",
    "grid": "#d8dce2",
    "paper": "#ffffff",
}
DARK = {
    "1": "#6aa9ff",
    "2": "#ee7a1b",
    "3": "#ffe346",
    "4": "#108fa3",
    "5": "#eeaaa7",
    "6": "#8956ee",
    "7": "#95ffff",
    "8": "#b6513d",
    "ink": "#e4e6eb",
    "grid": "#3c414b",
    "paper": "#1e2129",
}

STYLE: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": LIGHT["ink"],
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": LIGHT["ink"],
    "axes.prop_cycle": {"color": [LIGHT[str(series)] for series in range(1, 9)]},
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "figure.facecolor": "none",
    "figure.figsize": (7.5, 4.0),  # inches; 720 CSS pixels wide
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib, so that text is measured alike everywhere
    "font.size": 11.0,
    "grid.color": LIGHT["grid"],
    "legend.frameon": False,
    "lines.linewidth": 2.0,
    "patch.edgecolor": LIGHT["ink"],
    "savefig.facecolor": "none",
    "text.color": LIGHT["ink"],
    "xtick.color": LIGHT["ink"],
    "ytick.color": LIGHT["ink"],
}

VARIABLES = {colour: f"var(--fig-{name}, {colour})" for name, colour in LIGHT.items()}
VARIABLES["#000000"] = VARIABLES[LIGHT["ink"]]

NO_METADATA = {"Creator": None, "Date": None, "Format": None, "Type": None}
PIXELS_PER_POINT = 96 / 72
COORDINATES = ("d", "points", "x", "y", "width", "height", "viewBox")


def css(dark: str = '[data-md-color-scheme="slate"]') -> str:
    """The style sheet that defines the variables: `LIGHT` for the whole page, `DARK` below the selector `dark`."""
    return "".join(
        f"{selector} {{\n" + "".join(f"  --fig-{name}: {colour};\n" for name, colour in colours.items()) + "}\n"
        for selector, colours in ((":root", LIGHT), (dark, DARK))
    )


def use_style() -> None:
    """Set matplotlib's parameters to its defaults and `STYLE`, whatever the machine's own settings are."""
    import matplotlib
    from cycler import cycler

    matplotlib.rcdefaults()
    style: Any = STYLE | {"axes.prop_cycle": cycler(**STYLE["axes.prop_cycle"])}
    matplotlib.rcParams.update(style)


def warm_up() -> None:
    """Draw something, so that fonts are found and modules imported before the first page."""
    from matplotlib import pyplot

    _, axes = pyplot.subplots()
    axes.plot([0, 1], label="$x$")
    axes.legend()
    capture("warm-up")
    close()


def capture(prefix: str) -> tuple[str, ...]:
    """The figures that pyplot holds open, in the order of their numbers."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return ()
    return tuple(to_svg(pyplot.figure(number), f"{prefix}-{number}") for number in pyplot.get_fignums())


def close() -> None:
    """Close every figure that pyplot holds."""
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


def to_svg(figure: Figure, prefix: str) -> str:
    """A figure as one line of SVG to put into HTML; `prefix` keeps its ids apart from those of other figures."""
    import matplotlib

    drawn = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": prefix}):
        figure.savefig(drawn, format="svg", metadata=NO_METADATA)
    root = ElementTree.fromstring(drawn.getvalue())
    _tidy(root)
    _rename(root, prefix)
    width = float(root.attrib["viewBox"].split()[2])
    root.attrib = {
        "xmlns": "http://www.w3.org/2000/svg",
        "role": "img",
        "viewBox": root.attrib["viewBox"],
        "width": "100%",
        "style": f"max-width: {width * PIXELS_PER_POINT:g}px; height: auto; font-family: var(--fig-font, sans-serif); "
        f"fill: {VARIABLES[LIGHT['ink']]}; stroke-linejoin: round; stroke-linecap: butt",
    }
    return ElementTree.tostring(root, encoding="unicode")


def _tidy(element: ElementTree.Element) -> None:
    """Drop namespaces, style sheets, white space and what draws nothing; make colours variable."""
    element.tag = element.tag.rpartition("}")[2]
    attributes = {name.rpartition("}")[2]: value for name, value in element.attrib.items()}
    declarations = [f"{name}: {attributes.pop(name)}" for name in ("fill", "stroke") if name in attributes]
    if "style" in attributes:
        declarations.append(attributes["style"])
    if declarations:  # only there may a colour be a variable
        attributes["style"] = _restyle("; ".join(declarations))
    for name in COORDINATES:
        if name in attributes:
            attributes[name] = _round(attributes[name], 2)
    if "d" in attributes:
        attributes["d"] = re.sub(r"\s*([A-Za-z])\s*", r"\1", attributes["d"]).strip()
    if "transform" in attributes:
        attributes["transform"] = _round(re.sub(r"rotate\(-?0 [^)]*\)", "", attributes["transform"]), 4).strip()
    if attributes.get("href", "").startswith("data:"):
        attributes["href"] = re.sub(r"\s", "", attributes["href"])
    element.attrib = {name: value for name, value in attributes.items() if value}
    if element.tag not in ("text", "tspan") or len(element):
        element.text = None
    element.tail = None
    kept = []
    for child in element:
        _tidy(child)
        empty = child.tag in ("g", "defs") and len(child) == 0
        if not empty and child.tag not in ("style", "metadata") and not _invisible(child):
            kept.append(child)
    element[:] = kept


def _invisible(element: ElementTree.Element) -> bool:
    style = element.get("style", "")
    return element.tag == "path" and "id" not in element.attrib and "fill: none" in style and "stroke: " not in style


def _restyle(style: str) -> str:
    declarations = []
    for declaration in style.split(";"):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        if name == "font-family":
            if "Mono" not in value and "monospace" not in value:
                continue
            value = "monospace"
        declarations.append(f"{name}: {VARIABLES.get(value.lower(), value)}")
    return "; ".join(declarations)


def _round(text: str, digits: int) -> str:
    def shorten(number: re.Match[str]) -> str:
        short = f"{float(number[0]):.{digits}f}".rstrip("0").rstrip(".")
        return "0" if short == "-0" else short

    return re.sub(r"-?\d+\.\d+", shorten, text)


def _rename(root: ElementTree.Element, prefix: str) -> None:
    """Number the ids that something refers to, drop the others, and unwrap the groups that are left without a use."""
    reference = re.compile(r"url\(#([^)]+)\)|^#(.+)$")
    used = {
        match[1] or match[2]
        for element in root.iter()
        for name, value in element.attrib.items()
        if name in ("href", "style", "clip-path", "mask", "filter")
        for match in reference.finditer(value)
    }
    names: dict[str, str] = {}
    for element in root.iter():
        name = element.attrib.pop("id", "")
        if name in used:
            names[name] = element.attrib["id"] = f"{prefix}-{len(names) + 1}"
    for element in root.iter():
        for name in ("href", "style", "clip-path", "mask", "filter"):
            if name in element.attrib:
                element.attrib[name] = reference.sub(
                    lambda match: match[0].replace(match[1] or match[2], names.get(match[1] or match[2], "")),
                    element.attrib[name],
                )
    _unwrap(root)


def _unwrap(element: ElementTree.Element) -> None:
    kept: list[ElementTree.Element] = []
    for child in element:
        _unwrap(child)
        kept.extend(child if child.tag == "g" and not child.attrib else [child])
    element[:] = kept
