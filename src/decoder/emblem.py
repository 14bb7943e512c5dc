"""The book's emblem and the card that stands for it where a page is shared, drawn from a few shapes and its own counts.

The emblem is three bars, each a smaller budget than the one above, and a mark: checked. The card shows where the
parameters of the book's decoder are. Matplotlib draws the images; nothing else of the decoder needs it.
"""

from __future__ import annotations

import io
from functools import cache
from typing import TYPE_CHECKING

from decoder.budget import parameters
from decoder.config import Config

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

TITLE = "Decoder Budgets"
LINES = ("Choosing the parts of a decoder-only language model,", "with every number checked by the code beside it.")
NAVY, INK, PAPER, GOLD = "#1d3f72", "#10203a", "#ffffff", "#ffc857"
SIZE = 32  # of the emblem's square, in its own units
BARS = ((7, 8, 18, 4), (7, 14, 11, 4), (7, 20, 6, 4))  # x, y from the top, width, height
MARK = ((17, 22), (20, 25), (26, 18))
CARD = (1200, 630)  # pixels, as those who show cards ask for
TOUCH_ICON = 180
PARTS = {"embedding": "#6aa9ff", "attention": "#ee7a1b", "feed_forward": "#ffe346", "norms": "#95ffff"}


def icon_svg() -> str:
    """The emblem as an SVG image."""
    bars = "".join(f"M{x} {y}h{width}v{height}h-{width}z" for x, y, width, height in BARS)
    mark = "L".join(f"{x} {y}" for x, y in MARK)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE} {SIZE}"><title>{TITLE}</title>'
        f'<rect width="{SIZE}" height="{SIZE}" rx="6" fill="{NAVY}"/><path d="{bars}" fill="{PAPER}"/>'
        f'<path d="M{mark}" fill="none" stroke="{GOLD}" stroke-width="3" stroke-linecap="round"'
        ' stroke-linejoin="round"/></svg>\n'
    )


@cache
def icon_png() -> bytes:
    """The emblem for a home screen, which rounds its corners itself."""
    figure = _figure(TOUCH_ICON, TOUCH_ICON)
    _emblem(figure.add_axes((0, 0, 1, 1)), TOUCH_ICON)
    return _png(figure)


@cache
def card_png() -> bytes:
    """The title, and a bar of the parameters of the book's decoder by part."""
    width, height = CARD
    figure = _figure(width, height)
    _emblem(figure.add_axes((40 / width, 1 - 230 / height, 160 / width, 160 / height)), 160)
    figure.text(0.19, 0.748, TITLE, color=PAPER, size=50, weight="bold", va="center")
    for at, line in enumerate(LINES):
        figure.text(0.062, 0.545 - 0.082 * at, line, color=PAPER, size=25, va="center")
    _bar(figure.add_axes((0.062, 0.17, 0.876, 0.18)))
    return _png(figure)


def _figure(width: int, height: int) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width / 100, height / 100), dpi=100, facecolor=NAVY)


def _png(figure: Figure) -> bytes:
    image = io.BytesIO()
    figure.savefig(image, format="png", metadata={"Software": None})
    return image.getvalue()


def _emblem(axes: Axes, pixels: int) -> None:
    axes.set(xlim=(0, SIZE), ylim=(SIZE, 0))
    axes.axis("off")
    for x, y, width, height in BARS:
        axes.add_patch(_rectangle((x, y), width, height, color=PAPER))
    points_per_unit = pixels / SIZE * 72 / 100
    axes.plot(*zip(*MARK, strict=True), color=GOLD, linewidth=3 * points_per_unit, solid_capstyle="round")


def _bar(axes: Axes) -> None:
    count = parameters(Config())
    axes.set(xlim=(0, count.total), ylim=(0, 1))
    axes.axis("off")
    left = 0
    for name, colour in PARTS.items():
        part = getattr(count, name)
        axes.add_patch(_rectangle((left, 0), part, 1, color=colour))
        if part > count.total / 10:
            label = f"{name.replace('_', '-')}\n{part:,}"
            axes.text(left + count.total / 80, 0.5, label, color=INK, size=15, va="center", linespacing=1.4)
        left += part
    axes.text(0, -0.2, f"{count.total:,} parameters", color=PAPER, size=18, weight="bold", va="top")


def _rectangle(corner: tuple[float, float], width: float, height: float, color: str) -> Rectangle:
    from matplotlib.patches import Rectangle

    return Rectangle(corner, width, height, color=color, linewidth=0)
