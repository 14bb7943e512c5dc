"""What holds for every test: it does not see whether CI runs it, unless it says so itself, and it may take its time."""

import pytest
from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture(autouse=True, scope="session")
def outside_ci():
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("CI", "CLAIMS_BUILD"):
            patch.delenv(variable, raising=False)
        yield
