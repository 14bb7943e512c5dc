"""What holds for every test: it does not see whether CI runs it, unless it says so itself, and it may take its time."""

import os

import pytest
from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the cores are shared with other test processes

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture(autouse=True, scope="session")
def outside_ci():
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("CI", "CLAIMS_BUILD"):
            patch.delenv(variable, raising=False)
        yield
