"""The API against its own description: valid, complete, and true for whatever may be sent.

Every check that schemathesis has is on, but one for the estimate (see UNTOLD). Two things are arranged rather than switched off: values that fit their form
but must exist in the database are replaced by ones that do, and made-up cursors, whose form no description can give,
are left out where a request is meant to be good (`tests/common/test_pagination.py` has the bad ones).
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from io import StringIO

import pytest
import schemathesis
from django.core.management import call_command
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from config.wsgi import application
from fx.refresh_rates import load_sample_rates
from tests.factories import make_gpu, make_offer

CALLS = [
    "/api/v1/clouds/",
    "/api/v1/gpus/",
    "/api/v1/gpus/{slug}/",
    "/api/v1/gpus/resolve/",
    "/api/v1/offers/",
    "/api/v1/prices/",
    "/api/v1/prices/{slug}/history/",
    "/api/v1/sizing/estimate/",
    "/api/v1/sources/",
]
METHODS = {"/api/v1/sizing/estimate/": "POST"}
# Which of a model, a config or a parameter count goes with which task, framework and sharding is beyond what a
# description can say: a body that fits it may still be refused, with the field named.
UNTOLD = {"/api/v1/sizing/estimate/": [positive_data_acceptance]}
EXISTING = {
    "gpu": "h100-sxm",
    "vendor": "NVIDIA",
    "architecture": "Hopper",
    "software_stack": "CUDA",
    "cloud": "lambda",
    "source": "skypilot",
}


@cache
def description():
    """Return the description as a caller reads it; needs the database only to keep Django's connections open."""
    return schemathesis.openapi.from_wsgi("/api/v1/schema/", application)


@pytest.fixture
def some_rows(db) -> Iterator[None]:
    """A GPU with an offer; connections stay open between calls, as Django's own test client keeps them."""
    now = datetime.now(UTC)
    make_offer(gpu=make_gpu(), price="2.19", observed_at=now)
    load_sample_rates(now=now)
    request_started.disconnect(close_old_connections)
    request_finished.disconnect(close_old_connections)
    yield
    request_started.connect(close_old_connections)
    request_finished.connect(close_old_connections)


def check(case) -> None:
    """Send the case and run every check on the answer."""
    if case.meta.generation.mode.is_positive:
        case.query = {name: EXISTING.get(name, value) for name, value in case.query.items() if name != "cursor"}
    case.call_and_validate(headers={"Accept-Encoding": "identity"}, excluded_checks=UNTOLD.get(case.operation.path, []))


@pytest.mark.usefixtures("some_rows")
def test_the_description_names_every_call():
    assert sorted(found.ok().path for found in description().get_all_operations()) == sorted(CALLS)


@pytest.mark.usefixtures("some_rows")
@pytest.mark.parametrize("path", CALLS)
def test_calls_keep_to_their_description_at_the_edges_of_every_parameter(path):
    operation = description()[path][METHODS.get(path, "GET")]
    cases = description().iter_coverage_cases(
        operation=operation,
        generation_modes=list(GenerationMode),
        generation_config=description().config.generation_for(operation=operation, phase="coverage"),
    )
    for case in cases:
        check(case)


@pytest.mark.usefixtures("some_rows")
@pytest.mark.parametrize("path", CALLS)
def test_calls_keep_to_their_description_whatever_is_sent(path):
    operation = description()[path][METHODS.get(path, "GET")]

    @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
    @given(st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in GenerationMode)))
    def send(case):
        check(case)

    send()


def test_the_description_is_valid_and_leaves_nothing_to_guess():
    call_command("spectacular", "--validate", "--fail-on-warn", stdout=StringIO())
