"""The emblem and the card: their sizes, their colours, and that another process draws the same bytes."""

import hashlib
import io
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from PIL import Image

from decoder import emblem
from decoder.config import Config
from decoder.model import Decoder


def pixels(image: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(image)).convert("RGB"))


def colour(name: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(name[1:]))


@pytest.mark.parametrize(("draw", "shape"), [(emblem.card_png, (630, 1200, 3)), (emblem.icon_png, (180, 180, 3))])
def test_images_have_the_size_and_colours_they_should(draw, shape):
    image = pixels(draw())
    assert image.shape == shape
    assert tuple(image[2, 2]) == colour(emblem.NAVY)
    for name in (emblem.PAPER, emblem.GOLD):
        assert (image == colour(name)).all(axis=2).any(), name


def test_the_bar_is_as_long_as_the_parts_of_the_built_model():
    """Counted along a row of pixels above the labels."""
    model = Decoder(Config())
    total = sum(weight.numel() for weight in model.parameters())
    feed_forward = sum(weight.numel() for name, weight in model.named_parameters() if ".feed_forward." in name)
    image = pixels(emblem.card_png())
    of_part = {name: (image[418] == colour(shade)).all(axis=1).sum() for name, shade in emblem.PARTS.items()}
    length = 0.876 * emblem.CARD[0]
    assert sum(of_part.values()) == pytest.approx(length, abs=4)
    assert of_part["feed_forward"] == pytest.approx(length * feed_forward / total, abs=3)


def test_the_icon_is_an_image_with_a_name():
    icon = ElementTree.fromstring(emblem.icon_svg())
    assert icon.tag == "{http://www.w3.org/2000/svg}svg"
    assert icon[0].text == "Decoder Budgets"
    assert icon.get("viewBox") == "0 0 32 32"


def test_another_process_draws_the_same_bytes():
    program = "from decoder import emblem; import hashlib; print(hashlib.sha256(emblem.card_png()).hexdigest())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == hashlib.sha256(emblem.card_png()).hexdigest()
