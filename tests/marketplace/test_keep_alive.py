"""The fleet beats, bids are renewed, a little is traded; what a visitor came for is never taken away."""

from datetime import timedelta
from decimal import Decimal
from random import Random
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from catalog.models import BestAsk, Gpu
from config.schedule import FLEET_SCHEDULE, SCHEDULE
from marketplace import tasks
from marketplace.listings import Offered, change_terms
from marketplace.matching import Ask
from marketplace.models import BeatSpan, Fill, Listing, Order, Rental, Server, Strike
from marketplace.orders.close import cancel_order
from marketplace.orders.place import place_order
from marketplace.sample_market import build
from marketplace.sample_market.build import build_sample_market
from marketplace.sample_market.choose import choose_take
from marketplace.sample_market.fleet import play_fleet
from marketplace.sample_market.keep_alive import keep_alive
from marketplace.sample_market.people import CURRENCY, FUNDS, open_sample_people, sample_renters
from marketplace.sample_market.rows import sample_books
from marketplace.servers import beat_all
from marketplace.sweep import sweep
from tests.billing.conftest import wallet_of
from tests.factories import make_gpu
from tests.marketplace.conftest import NOW, make_listing, make_renter, order_for

BOOKS = ("h100-sxm", "b200", "rtx-4090", "gh200-96gb")
TICK = timedelta(minutes=1)


@pytest.fixture
def market(db, monkeypatch) -> None:
    """Four books of the sample market, opened now."""
    books = {slug: sample_books()[slug] for slug in BOOKS}
    for module in ("build", "keep_alive"):
        monkeypatch.setattr(f"marketplace.sample_market.{module}.sample_books", lambda: books)
    for slug in BOOKS:
        make_gpu(slug=slug)
    open_sample_people(now=NOW)
    for renter in sample_renters():
        wallet_of(renter.organisation.name, currency=CURRENCY, units=int(FUNDS))
    build_sample_market(now=NOW)
    play_fleet(now=NOW)


def run(*, since: timedelta = timedelta(0), lasts: timedelta, tick: timedelta = TICK) -> None:
    """Let the demo run, one tick of everything after another."""
    now = NOW + since
    while now <= NOW + since + lasts:
        play_fleet(now=now)
        keep_alive(now=now)
        sweep(now=now)
        now += tick


def new_fills():
    return Fill.objects.filter(filled_at__gt=NOW).select_related("listing__server", "gpu")


def resting() -> set[tuple[int, Decimal, int]]:
    orders = Order.objects.filter(state__in=Order.RESTING)
    return set(orders.values_list("gpu_id", "limit_price_usd_per_gpu_hour", "gpu_count"))


def best_asks() -> dict[str, Decimal]:
    return dict(BestAsk.objects.values_list("gpu__slug", "price_usd_per_gpu_hour"))


PRICES = {slug: sample_books()[slug][0].price_usd_per_gpu_hour for slug in BOOKS}


def test_a_beat_of_all_servers_prolongs_their_spans_in_a_few_statements(market):
    spans = BeatSpan.objects.count()
    with CaptureQueriesContext(connection) as asked:
        play_fleet(now=NOW + timedelta(seconds=20))
    assert len(asked) < 12
    assert BeatSpan.objects.count() == spans
    assert set(Server.objects.values_list("last_beat_at", flat=True)) == {NOW + timedelta(seconds=20)}


def test_an_older_beat_that_comes_late_changes_nothing(market):
    play_fleet(now=NOW - timedelta(seconds=5))
    assert set(Server.objects.values_list("last_beat_at", flat=True)) == {NOW}


def test_a_few_fills_an_hour_spare_the_best_asks_of_the_first_day(market):
    run(lasts=timedelta(hours=2), tick=timedelta(minutes=3))
    assert 5 <= new_fills().count() <= 12
    for fill in new_fills():
        assert fill.listing.server.name != "flaky"
        assert fill.gpu.slug == "rtx-4090" or fill.price_usd_per_gpu_hour > PRICES[fill.gpu.slug]
    assert best_asks() == PRICES


def test_nobody_fails_and_all_devices_come_back(market):
    run(lasts=timedelta(minutes=45), tick=timedelta(minutes=2))
    recent = NOW + timedelta(minutes=37)
    assert new_fills().filter(filled_at__lt=recent).exists()
    assert not Rental.objects.filter(state=Rental.State.FAILED).exists()
    assert not Rental.objects.filter(state__in=Rental.OPEN, filled_at__lt=recent).exists()
    assert not Strike.objects.exists()


def test_after_the_first_day_best_asks_are_traded_too_but_never_sold_out(market):
    for day in range(1, 3):
        run(since=timedelta(days=day), lasts=timedelta(hours=2), tick=timedelta(minutes=8))
        assert best_asks() == PRICES
    prices = {fill.price_usd_per_gpu_hour for fill in new_fills() if fill.gpu.slug in ("h100-sxm", "b200")}
    assert prices & {PRICES["h100-sxm"], PRICES["b200"]}


def test_doubled_tasks_trade_and_bid_once(market):
    at = NOW + timedelta(minutes=18)  # near the end of a turn
    play_fleet(now=at)
    assert keep_alive(now=at)["trades"] == 1
    assert keep_alive(now=at) == {"given_back": 0, "bids_placed": 0, "trades": 0}


def test_bids_are_renewed_before_they_expire(market):
    wanted = resting()
    run(since=timedelta(days=6, hours=2), lasts=timedelta(0))
    assert resting() == wanted
    soon = NOW + timedelta(days=7)
    assert not Order.objects.filter(state__in=Order.RESTING, expires_at__lte=soon).exists()
    assert not Order.objects.filter(state=Order.State.EXPIRED).exists()


def test_a_bid_that_was_filled_or_cancelled_comes_back_within_the_hour_and_not_at_once(market):
    wanted = resting()
    order = Order.objects.filter(state__in=Order.RESTING)[0]
    run(since=timedelta(minutes=1), lasts=timedelta(0))
    cancel_order(organisation_id=order.organisation_id, order_id=order.pk, now=NOW + timedelta(minutes=2))
    run(since=timedelta(minutes=3), lasts=timedelta(0))
    assert resting() == wanted
    again = Order.objects.filter(state__in=Order.RESTING, placed_at__gt=NOW).get()
    cancel_order(organisation_id=again.organisation_id, order_id=again.pk, now=NOW + timedelta(minutes=4))
    run(since=timedelta(minutes=5), lasts=timedelta(0))
    assert len(resting()) == len(wanted) - 1
    run(since=timedelta(hours=1), lasts=timedelta(0))
    assert resting() == wanted


def test_a_demo_opened_a_week_later_is_alive_with_the_first_tick(market):
    wanted = resting()
    late = timedelta(days=7, hours=3)
    sweep(now=NOW + late)
    assert not BestAsk.objects.exists()
    run(since=late, lasts=timedelta(0))
    assert best_asks() == PRICES
    assert resting() == wanted
    run(since=late + TICK, lasts=timedelta(minutes=12))
    assert new_fills().exists()


def test_a_visitors_order_that_waited_is_filled_by_the_best_server_when_all_come_back(market):
    h100 = Gpu.objects.get(slug="h100-sxm")
    visitor = make_renter(name="Visitor B.V.")
    later = NOW + timedelta(hours=2)
    placed = place_order(
        organisation_id=visitor.pk, instruction=order_for(h100, limit="3.10", confirm_price=True), now=later
    )
    assert placed.state == "open"
    play_fleet(now=later + TICK)
    fill = Fill.objects.get(order_id=placed.order_id)
    assert fill.listing.server.name == "fra-h100-01"


def test_what_a_visitor_lists_is_not_taken_by_the_fleet(market):
    theirs = [
        make_listing(gpu=Gpu.objects.get(slug=slug), price=str(price - Decimal("0.01")), country="BE", now=NOW)
        for slug, price in PRICES.items()
    ]
    for _turn in range(4):
        beat_all(server_ids=[listing.server_id for listing in theirs], now=NOW + TICK * (18 + 12 * _turn))
        run(since=TICK * (18 + 12 * _turn), lasts=timedelta(0))
    assert new_fills().exists()
    assert not Fill.objects.filter(listing__in=theirs).exists()


def test_a_sample_bid_that_a_lower_price_fills_is_given_back(market):
    order = Order.objects.filter(state__in=Order.RESTING, gpu__slug="h100-sxm").order_by(
        "-limit_price_usd_per_gpu_hour"
    )[0]
    listing = Listing.objects.get(server__name="ams-h100-01")
    change_terms(
        provider_id=listing.server.provider_id,
        listing_id=listing.pk,
        offered=Offered(price=order.limit_price_usd_per_gpu_hour),
        now=NOW + timedelta(seconds=10),
    )
    assert Fill.objects.filter(order=order).exists()
    run(since=timedelta(minutes=1), lasts=timedelta(minutes=7))
    assert not Rental.objects.filter(order=order, state__in=Rental.OPEN).exists()


def test_without_money_nothing_is_ordered(db, monkeypatch):
    monkeypatch.setattr(build, "sample_books", lambda: {"b200": sample_books()["b200"]})
    make_gpu(slug="b200")
    open_sample_people(now=NOW)
    build_sample_market(now=NOW, have_renters_money=False)
    play_fleet(now=NOW)
    assert keep_alive(now=NOW + timedelta(minutes=10)) == {"given_back": 0}
    assert not Order.objects.exists()


def test_the_fleets_tasks_are_in_a_schedule_and_a_queue_of_their_own():
    names = {entry["task"] for entry in FLEET_SCHEDULE.values()}
    assert names >= {tasks.play_sample_fleet.name, tasks.keep_sample_market_alive.name}
    assert not names & {entry["task"] for entry in SCHEDULE.values()}
    assert {entry["options"]["queue"] for entry in FLEET_SCHEDULE.values()} == {"fleet"}
    assert FLEET_SCHEDULE["play-fleet"]["schedule"] == timedelta(seconds=20)


COUNTRIES = ("NL", "DE", "FR")


@st.composite
def books(draw) -> list[Ask]:
    """Draw a few asks of one book."""
    return [
        Ask(
            listing_id=uuid4(),
            server_id=uuid4(),
            price=draw(st.sampled_from([Decimal("2.88"), Decimal("2.95"), Decimal("3.05")])),
            priority=priority,
            free_device_ids=tuple(range(priority * 10, priority * 10 + draw(st.integers(1, 8)))),
            min_gpus=draw(st.integers(1, 4)),
            max_hours=draw(st.sampled_from([1, 24, 720])),
            available_until=None,
            country=draw(st.sampled_from(COUNTRIES)),
            interconnect="nvlink",
            ram_gb=1024,
            vcpus=96,
            disk_gb=1000,
        )
        for priority in range(draw(st.integers(0, 5)))
    ]


@given(asks=books(), spares_best=st.booleans(), seed=st.integers(), data=st.data())
def test_a_take_leaves_a_device_and_spares_what_it_must(asks, spares_best, seed, data):
    playable = {ask.listing_id for ask in asks if data.draw(st.booleans())}
    take = choose_take(asks, playable=playable, spares_best=spares_best, rng=Random(seed), now=NOW)
    if take is None:
        return
    best = min(ask.price for ask in asks)
    assert not (spares_best and take.limit == best)
    taken = [
        ask for ask in asks if ask.listing_id in playable and (ask.price, ask.country) == (take.limit, take.country)
    ]
    assert any(
        ask.min_gpus <= take.gpu_count < len(ask.free_device_ids) and take.hours <= ask.max_hours for ask in taken
    )
