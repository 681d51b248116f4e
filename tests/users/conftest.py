"""Fixtures of the tests about people."""

from uuid import uuid4

import pytest


@pytest.fixture
def own_limits(settings):
    """Counts of attempts that start at nothing: neither an earlier test nor one beside this one has used them up."""
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": uuid4().hex}}
