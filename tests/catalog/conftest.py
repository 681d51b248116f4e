"""What several tests of the catalogue share."""

from datetime import UTC, datetime

import pytest

from catalog.api import view
from catalog.load_catalogue import load_catalogue
from tests.catalog.refreshes import NOW


@pytest.fixture
def standing_clock(monkeypatch):
    """Keep the minute from turning between two requests to the API: it is part of the validator."""

    class Standing(datetime):
        @classmethod
        def now(cls, tz=None):
            return at

    at = datetime.now(UTC)
    monkeypatch.setattr(view, "datetime", Standing)


@pytest.fixture
def loaded_catalogue(db) -> None:
    """The repository's GPUs and clouds."""
    load_catalogue(now=NOW)
