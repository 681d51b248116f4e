"""What webhooks are told: each fill, expiry, start and end once, in the transaction that makes it so."""

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from catalog.alerts.tell import tell_alerts
from marketplace.models import Order, Rental
from marketplace.orders.close import cancel_order, expire_orders
from marketplace.orders.place import NotEnoughMoney, place_order
from marketplace.rentals.alerts import tell_runway
from marketplace.rentals.end import acknowledge_stop
from marketplace.rentals.fail_unstarted import fail_unstarted
from marketplace.rentals.stop import request_stop
from tests.catalog.alert_rows import make_alert
from tests.factories import make_gpu, make_member, make_offer, make_organisation
from tests.marketplace.conftest import NOW, make_listing, make_renter, order_for
from tests.marketplace.rental_clock import pass_time, rent, run
from users.models import EventType, WebhookDelivery, WebhookEvent
from users.webhooks.endpoints import add_endpoint, remove_endpoint
from users.webhooks.replay import send_test

pytestmark = pytest.mark.django_db
READY = NOW + timedelta(minutes=2, seconds=30)


def listen(organisation, *types: EventType):
    return add_endpoint(
        organisation=organisation,
        url="https://hooks.example.com/",
        types=types or tuple(EventType),
        created_by=None,
        now=NOW,
    ).endpoint


@pytest.fixture
def endpoint(renter):
    """Somebody who wants to know all of the renter's events."""
    return listen(renter)


def place(renter, gpu, *, now=NOW, **values):
    return place_order(organisation_id=renter.pk, instruction=order_for(gpu, **values), now=now)


def told() -> list[tuple[str, dict]]:
    """Return type and data of each event, in the order they were written."""
    return list(WebhookEvent.objects.order_by("pk").values_list("type", "data"))


def test_an_order_that_fills_at_once_tells_its_fills(h100, renter, endpoint):
    make_listing(gpu=h100, price="2.8")
    placed = place(renter, h100, gpu_count=4, hours=3)
    rental = Rental.objects.get()
    [(kind, data)] = told()
    assert kind == "order.filled"
    assert data == {
        "id": str(placed.order_id),
        "state": "filled",
        "gpu": "h100-sxm",
        "gpu_count": 4,
        "server_count": 1,
        "filled_servers": 1,
        "hours": 3,
        "limit_price_usd_per_gpu_hour": "2.8800",
        "wallet": "USD",
        "fills": [{"rental": str(rental.pk), "gpu_count": 4, "price_usd_per_gpu_hour": "2.8000"}],
    }
    event = WebhookEvent.objects.get()
    assert (event.subject_id, event.occurred_at) == (str(placed.order_id), NOW)
    assert event.deliveries.get().endpoint == endpoint


def test_an_order_that_rests_tells_nothing_until_it_fills_and_then_each_part(h100, renter, endpoint):
    placed = place(renter, h100, server_count=2)
    assert told() == []
    make_listing(gpu=h100)
    make_listing(gpu=h100)
    parts = [(data["state"], data["filled_servers"], len(data["fills"])) for _, data in told()]
    assert parts == [("partly_filled", 1, 1), ("filled", 2, 1)]
    assert {data["id"] for _, data in told()} == {str(placed.order_id)}
    assert {kind for kind, _ in told()} == {"order.filled"}
    fills = [fill["rental"] for _, data in told() for fill in data["fills"]]
    assert set(fills) == {str(pk) for pk in Rental.objects.values_list("pk", flat=True)}


def test_one_listing_that_fills_two_renters_tells_each_its_own(h100, renter, endpoint):
    other = make_renter(name="Pim & Co")
    listen(other)
    for organisation in (renter, other):
        place(organisation, h100)
    make_listing(gpu=h100)
    for organisation in (renter, other):
        event = WebhookEvent.objects.get(organisation=organisation)
        [fill] = event.data["fills"]
        assert Rental.objects.get(pk=fill["rental"]).organisation == organisation


def test_what_is_filled_in_part_and_leaves_says_so(h100, renter, endpoint):
    make_listing(gpu=h100)
    place(renter, h100, server_count=2, time_in_force="ioc")
    [(kind, data)] = told()
    assert (kind, data["state"], data["filled_servers"]) == ("order.filled", "cancelled", 1)


def test_an_order_whose_time_is_over_tells_so_once(h100, renter, endpoint):
    placed = place(renter, h100, expires_at=NOW + timedelta(hours=1))
    assert expire_orders(now=NOW + timedelta(hours=1)) == 1
    assert expire_orders(now=NOW + timedelta(hours=2)) == 0
    [(kind, data)] = told()
    assert (kind, data["id"], data["state"], data["gpu"]) == (
        "order.expired",
        str(placed.order_id),
        "expired",
        "h100-sxm",
    )
    assert "fills" not in data


def test_what_its_owner_does_is_not_told(h100, renter, endpoint):
    placed = place(renter, h100)
    cancel_order(organisation_id=renter.pk, order_id=placed.order_id, now=NOW)
    place(renter, h100, time_in_force="ioc")
    assert told() == []


def test_an_order_that_is_refused_tells_nothing(h100, renter, endpoint):
    make_listing(gpu=h100)
    with pytest.raises(NotEnoughMoney):
        place(renter, h100, gpu_count=8, hours=720)
    assert told() == []


def test_nothing_is_written_for_who_does_not_ask(h100, renter):
    listen(make_organisation(name="Pim & Co"))
    own = listen(renter, EventType.ORDER_EXPIRED, EventType.BALANCE_LOW)
    make_listing(gpu=h100)
    place(renter, h100)
    assert told() == []
    remove_endpoint(organisation=renter, endpoint_id=own.pk, now=NOW)


def test_telling_costs_no_round_trip(h100, renter):
    make_listing(gpu=h100)
    with CaptureQueriesContext(
        connection,
    ) as untold:
        place(renter, h100)
    listen(renter)
    with CaptureQueriesContext(connection) as heard:
        place(renter, h100)
    assert len(untold) == len(heard)
    assert WebhookDelivery.objects.count() == 1


def test_a_rental_tells_when_it_runs_and_when_it_is_over(h100, renter, endpoint):
    rental = run(rent(h100, renter, hours=3), ready_at=READY)
    stopped_at = READY + timedelta(minutes=10)
    pass_time(since=READY, until=stopped_at)
    request_stop(organisation_id=renter.pk, rental_id=rental.pk, now=stopped_at)
    acknowledge_stop(rental_id=rental.pk, now=stopped_at + timedelta(seconds=5))
    kinds = [kind for kind, _ in told()]
    assert kinds == ["order.filled", "rental.running", "rental.ended"]
    running, ended = told()[1][1], told()[2][1]
    assert running == {
        "id": str(rental.pk),
        "order": str(rental.order_id),
        "state": "running",
        "reason": None,
        "gpu": "h100-sxm",
        "gpu_count": 1,
        "hours": 3,
        "price_usd_per_gpu_hour": "2.8800",
        "wallet": "USD",
        "filled_at": "2026-11-30T10:02:00Z",
        "ready_at": "2026-11-30T10:04:30Z",
        "paid_until": "2026-11-30T13:04:30Z",
        "stop_requested_at": None,
        "ended_at": None,
    }
    assert (ended["state"], ended["stop_requested_at"], ended["ended_at"]) == (
        "ended",
        "2026-11-30T10:14:30Z",
        "2026-11-30T10:14:35Z",
    )


def test_a_rental_that_never_starts_tells_that_it_failed(h100, renter, endpoint):
    rental = rent(h100, renter)
    assert fail_unstarted(now=NOW + timedelta(minutes=11)) == 1
    kind, data = told()[-1]
    assert (kind, data["id"], data["state"], data["ready_at"]) == ("rental.ended", str(rental.pk), "failed", None)
    assert data["reason"]


def test_an_interrupted_rental_tells_so(h100, renter, endpoint):
    rental = run(rent(h100, renter, hours=3), ready_at=READY)
    pass_time(since=READY, until=READY + timedelta(minutes=7), silent=(rental.server,))
    rental.refresh_from_db()
    assert rental.state == "interrupted"
    kind, data = told()[-1]
    assert (kind, data["state"]) == ("rental.ended", "interrupted")


def test_a_balance_that_runs_out_is_told_once_for_each_level(h100):
    renter = make_renter(units=20)
    listen(renter, EventType.BALANCE_LOW)
    run(rent(h100, renter, hours=None), ready_at=READY)
    for _ in range(2):
        tell_runway(now=READY + timedelta(seconds=1))
    [(kind, data)] = told()
    assert kind == "balance.low"
    assert (data["wallet"], data["level_seconds"]) == ("USD", 86400)
    assert 0 < data["runway_seconds"] < 86400
    assert data["available"].startswith("16.")
    assert data["lasts_until"].endswith("Z")


def test_an_order_of_another_gpu_names_that_one(renter, endpoint):
    gpu = make_gpu(slug="h200-sxm")
    make_listing(gpu=gpu)
    place(renter, gpu)
    assert told()[0][1]["gpu"] == "h200-sxm"
    assert Order.objects.get().state == "filled"


def test_the_document_shows_each_message_with_the_fields_it_has(h100, renter, endpoint):
    renter_of_few = make_renter(name="Pim & Co", units=20)
    listen(renter_of_few)
    run(rent(h100, renter_of_few, hours=None), ready_at=READY)
    tell_runway(now=READY)
    place(renter, h100, limit="1.00", expires_at=NOW + timedelta(hours=1))
    expire_orders(now=NOW + timedelta(hours=1))
    rent(h100, renter)
    fail_unstarted(now=NOW + timedelta(hours=1))
    send_test(organisation=renter, endpoint_id=endpoint.pk, now=NOW)
    make_offer(gpu=h100, price="1.99", observed_at=NOW)
    make_alert(gpu=h100, by=make_member(organisation=renter), now=NOW)
    tell_alerts(now=NOW)
    text = (Path(__file__).parents[2] / "docs" / "webhooks.md").read_text()
    shown = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL)]
    assert {message["type"]: set(message["data"]) for message in shown} == {kind: set(data) for kind, data in told()}
