"""Fixtures of the tests about people."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.users.receivers import Receiver, receiving


@pytest.fixture
def own_limits(settings):
    """Counts of attempts that start at nothing: neither an earlier test nor one beside this one has used them up."""
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": uuid4().hex}}


@pytest.fixture
def receiver(settings) -> Iterator[Receiver]:
    """A receiver of webhooks on this machine, which a setting lets through."""
    settings.WEBHOOKS_ALLOW_LOOPBACK = True
    with receiving() as receiver:
        yield receiver
