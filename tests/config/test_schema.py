"""The API against its own description: valid, complete, and true for whatever may be sent.

Every check that schemathesis has is on, but one for the calls in UNTOLD. Two things are arranged rather than
switched off: values that fit their form but must exist in the database are replaced by ones that do, and made-up
cursors, whose form no description can give, are left out where a request is meant to be good
(`tests/common/test_pagination.py` has the bad ones). Calls with a key get one that may do all.
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
from tests.factories import make_gpu, make_member, make_offer, make_organisation
from tests.marketplace.conftest import make_provider
from users.api_keys import issue_key, scopes_open_to

CALLS = [
    ("DELETE", "/api/v1/webhooks/{endpoint_id}/"),
    ("GET", "/api/v1/clouds/"),
    ("GET", "/api/v1/gpus/"),
    ("GET", "/api/v1/gpus/resolve/"),
    ("GET", "/api/v1/gpus/{slug}/"),
    ("GET", "/api/v1/ledger/"),
    ("GET", "/api/v1/market/"),
    ("GET", "/api/v1/market/{slug}/book/"),
    ("GET", "/api/v1/market/{slug}/trades/"),
    ("GET", "/api/v1/offers/"),
    ("GET", "/api/v1/orders/"),
    ("GET", "/api/v1/orders/{order_id}/"),
    ("GET", "/api/v1/prices/"),
    ("GET", "/api/v1/prices/{slug}/history/"),
    ("GET", "/api/v1/provider/"),
    ("GET", "/api/v1/provider/earnings/"),
    ("GET", "/api/v1/provider/rentals/"),
    ("GET", "/api/v1/provider/servers/"),
    ("GET", "/api/v1/rentals/"),
    ("GET", "/api/v1/rentals/{rental_id}/"),
    ("GET", "/api/v1/sources/"),
    ("GET", "/api/v1/topups/"),
    ("GET", "/api/v1/topups/{top_up_id}/"),
    ("GET", "/api/v1/wallets/"),
    ("GET", "/api/v1/webhooks/"),
    ("GET", "/api/v1/webhooks/{endpoint_id}/"),
    ("GET", "/api/v1/webhooks/{endpoint_id}/deliveries/"),
    ("PATCH", "/api/v1/provider/listings/{listing_id}/"),
    ("POST", "/api/v1/orders/"),
    ("POST", "/api/v1/orders/{order_id}/cancel/"),
    ("POST", "/api/v1/provider/application/"),
    ("POST", "/api/v1/provider/listings/"),
    ("POST", "/api/v1/provider/listings/{listing_id}/pause/"),
    ("POST", "/api/v1/provider/listings/{listing_id}/resume/"),
    ("POST", "/api/v1/provider/servers/"),
    ("POST", "/api/v1/provider/servers/{server_id}/enrol-token/"),
    ("POST", "/api/v1/quotes/"),
    ("POST", "/api/v1/rentals/{rental_id}/stop/"),
    ("POST", "/api/v1/sizing/estimate/"),
    ("POST", "/api/v1/topups/"),
    ("POST", "/api/v1/topups/{top_up_id}/refund/"),
    ("POST", "/api/v1/webhooks/"),
    ("POST", "/api/v1/webhooks/{endpoint_id}/deliveries/{event_id}/again/"),
    ("POST", "/api/v1/webhooks/{endpoint_id}/secret/"),
    ("POST", "/api/v1/webhooks/{endpoint_id}/test/"),
]
# Which of a model, a config or a parameter count goes with which task, framework and sharding is beyond what a
# description can say: a body that fits it may still be refused, with the field named.
# Which GPUs there are, how much an organisation may pay in now, and that a span begins before it ends, are beyond it too;
# so is which names are public ones.
UNTOLD = {
    "/api/v1/ledger/": [positive_data_acceptance],
    "/api/v1/orders/": [positive_data_acceptance],
    "/api/v1/provider/application/": [positive_data_acceptance],
    "/api/v1/provider/earnings/": [positive_data_acceptance],
    "/api/v1/provider/listings/": [positive_data_acceptance],
    "/api/v1/provider/listings/{listing_id}/": [positive_data_acceptance],
    "/api/v1/provider/servers/": [positive_data_acceptance],
    "/api/v1/quotes/": [positive_data_acceptance],
    "/api/v1/sizing/estimate/": [positive_data_acceptance],
    "/api/v1/topups/": [positive_data_acceptance],
    "/api/v1/webhooks/": [positive_data_acceptance],
}
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
def key(request, db) -> str:
    """A key that may do all that a renter's can; for the calls of providers, an approved provider's."""
    sells = "/provider/" in request.node.name
    organisation = make_provider().organisation if sells else make_organisation()
    return issue_key(
        organisation=organisation,
        name="schema",
        scopes=scopes_open_to(organisation.kind),
        created_by=make_member(organisation=organisation),
        expires_at=None,
        now=datetime.now(UTC),
    ).secret


@pytest.fixture
def payments(request) -> None:
    """The test gateway, for the calls that ask it."""
    if "topups" in request.node.name:
        request.getfixturevalue("fake_stripe")


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


def check(case, key: str) -> None:
    """Send the case with the key, where the call takes one, and run every check on the answer."""
    if case.meta.generation.mode.is_positive:
        case.query = {name: EXISTING.get(name, value) for name, value in case.query.items() if name != "cursor"}
    headers = {"Accept-Encoding": "identity"}
    if case.operation.definition.raw.get("security"):
        headers["Authorization"] = f"Bearer {key}"
    case.call_and_validate(headers=headers, excluded_checks=UNTOLD.get(case.operation.path, []))


@pytest.mark.usefixtures("some_rows")
def test_the_description_names_every_call():
    operations = [found.ok() for found in description().get_all_operations()]
    assert sorted((operation.method.upper(), operation.path) for operation in operations) == sorted(CALLS)


@pytest.mark.usefixtures("some_rows", "payments")
@pytest.mark.parametrize(("method", "path"), CALLS)
def test_calls_keep_to_their_description_at_the_edges_of_every_parameter(method, path, key):
    operation = description()[path][method]
    cases = description().iter_coverage_cases(
        operation=operation,
        generation_modes=list(GenerationMode),
        generation_config=description().config.generation_for(operation=operation, phase="coverage"),
    )
    for case in cases:
        check(case, key)


@pytest.mark.usefixtures("some_rows", "payments")
@pytest.mark.parametrize(("method", "path"), CALLS)
def test_calls_keep_to_their_description_whatever_is_sent(method, path, key):
    operation = description()[path][method]

    @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
    @given(st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in GenerationMode)))
    def send(case):
        check(case, key)

    send()


def test_the_description_is_valid_and_leaves_nothing_to_guess():
    call_command("spectacular", "--validate", "--fail-on-warn", stdout=StringIO())
