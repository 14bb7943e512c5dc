import pytest
import torch

from decoder.config import Config
from decoder.model import Decoder


@pytest.fixture(autouse=True)
def one_thread_and_a_seed():
    torch.set_num_threads(1)
    torch.manual_seed(0)


@pytest.fixture
def small() -> Config:
    """No two sizes are equal, and the head width is not width / heads."""
    return Config(vocab=31, width=12, layers=3, heads=6, kv_heads=3, head_width=4, hidden=20, context=24)


@pytest.fixture
def build():
    """A decoder in float64 whose weights are large enough that every part shows in the scores."""

    def make(config: Config, std: float = 0.4) -> Decoder:
        torch.manual_seed(7)
        model = Decoder(config).double()
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=std)
        return model

    return make
