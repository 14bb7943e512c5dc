"""What holds for every test: it does not see whether CI runs it, unless it says so itself."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def outside_ci():
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("CI", "CLAIMS_BUILD"):
            patch.delenv(variable, raising=False)
        yield
