"""Shared fixtures: where the reference data lies, and the switch for long runs."""

from pathlib import Path

import pytest

SHARED_DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", default=False, help="fault and load runs too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--long"):
        return
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="long run: add --long"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The reference data beside the checkout; without it the tests that read it say so and are skipped."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"REFERENCE DATA ABSENT: {SHARED_DATA.name}/ is not beside the checkout; this check did not run")
    return SHARED_DATA
