"""What a provider earned, to the micro and as the books have it; how much was sold; at which prices the market traded."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.models import Account
from marketplace.listings import Offered, change_terms
from marketplace.price_spread import spread_of
from marketplace.queries.earnings import (
    earned,
    earned_hour,
    fills_of_30_days,
    settled_hours,
    sold_rentals,
    use_of_servers,
)
from marketplace.rentals.interrupt import interrupt
from marketplace.settlement.due import settle_due
from tests.factories import make_gpu
from tests.marketplace.conftest import NOW, end_rental, make_listing, make_provider, make_running_rental, make_server
from tests.marketplace.rental_clock import up_all_along

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
READY = datetime(2026, 11, 30, 11, tzinfo=UTC)
PRICES = st.lists(st.tuples(st.decimals("0.0001", "50", places=4), st.integers(1, 64)), min_size=1, max_size=30)


@pytest.fixture
def sold(h100, renter):
    """Two GPUs for three hours, stopped after two and a half."""
    rental = make_running_rental(renter=renter, gpu=h100, ready_at=READY, hours=3, gpu_count=2, price="2.88")
    end_rental(rental, stop_at=READY + 2.5 * HOUR)
    settle_due(until=READY + 5 * HOUR, now=READY + 5 * HOUR)
    return rental


def payable_of(provider_id: int) -> int:
    account = Account.objects.filter(owner=provider_id, kind="payable", currency="USD").first()
    return account.posted_micros if account else 0


def test_net_is_fee_and_payable_hour_by_hour_and_the_books_say_the_same(sold):
    provider_id = sold.server.provider_id
    hours = [earned_hour(line) for line in settled_hours(provider_id)]
    assert [hour.billed_seconds for hour in hours] == [1800, 3600, 3600]
    assert [(hour.net_micros, hour.fee_micros, hour.payable_micros) for hour in hours] == [
        (2_880_000, 288_000, 2_592_000),
        (5_760_000, 576_000, 5_184_000),
        (5_760_000, 576_000, 5_184_000),
    ]
    total = earned(provider_id)
    assert (total.hours, total.net_micros, total.fee_micros, total.left_micros) == (
        3,
        14_400_000,
        1_440_000,
        12_960_000,
    )
    assert payable_of(provider_id) == total.left_micros


def test_a_span_counts_the_hours_that_start_in_it(sold):
    provider_id = sold.server.provider_id
    assert earned(provider_id, since=READY + HOUR).hours == 2
    assert earned(provider_id, until=READY + HOUR).hours == 1
    assert earned(provider_id, since=READY + 3 * HOUR).net_micros == 0


def test_another_provider_earned_nothing_of_it(sold):
    other = make_provider(name="Other B.V.")
    assert earned(other.pk).hours == 0
    assert not sold_rentals(other.pk).exists()


def test_an_hour_that_was_taken_back_is_told_and_not_owed(h100, renter):
    lost_at = READY + 2 * HOUR + timedelta(minutes=10)
    rental = make_running_rental(renter=renter, gpu=h100, ready_at=READY, hours=5, price="2.88", beats=[(NOW, lost_at)])
    up_all_along(since=NOW, until=lost_at + HOUR)
    settle_due(until=READY + 2 * HOUR + timedelta(minutes=6), now=READY + 2 * HOUR + timedelta(minutes=6))
    rental.server.__class__.objects.filter(pk=rental.server_id).update(last_beat_at=lost_at)
    interrupt(rental_id=rental.pk, reason="server_lost", now=lost_at + timedelta(minutes=6))
    provider_id = rental.server.provider_id
    hours = [earned_hour(line) for line in settled_hours(provider_id)]
    assert [hour.credited_micros for hour in hours] == [2_592_000, 0]
    total = earned(provider_id)
    assert (total.payable_micros, total.credited_micros) == (5_184_000, 2_592_000)
    assert payable_of(provider_id) == total.left_micros == 2_592_000
    assert (sold_rentals(provider_id).get().credited, sold_rentals(provider_id).get().settled_hours) == (2_592_000, 2)


def test_use_is_the_share_of_listed_time_that_was_sold(sold):
    (use,) = use_of_servers(sold.server.provider_id, now=READY + 5 * HOUR)
    assert use.listed_seconds == 6 * 3600 * 2, "listed at 10:02, two devices, until 16:00"
    assert use.sold_seconds == 9000 * 2
    assert use.percent == 41


def test_a_server_that_was_never_listed_has_no_share(h100):
    server = make_server(gpu=h100)
    (use,) = use_of_servers(server.provider_id, now=NOW + HOUR)
    assert (use.percent, use.sold_seconds) == (None, 0)


def test_only_the_last_thirty_days_are_looked_at(sold):
    (use,) = use_of_servers(sold.server.provider_id, now=READY + timedelta(days=60))
    assert (use.sold_seconds, use.listed_seconds) == (0, 30 * 24 * 3600 * 2)
    assert fills_of_30_days(sold.gpu_id, now=READY + timedelta(days=60)) is None


def test_the_markets_prices_are_weighed_by_gpus(h100, renter):
    for price, gpus in (("2.00", 4), ("3.00", 2), ("4.00", 2)):
        make_running_rental(renter=renter, gpu=h100, ready_at=READY, price=price, gpu_count=gpus)
    spread = fills_of_30_days(h100.pk, now=NOW + HOUR)
    assert spread is not None
    assert (spread.lowest, spread.p25, spread.median, spread.p75, spread.highest) == tuple(
        Decimal(price) for price in ("2", "2", "2", "3", "4")
    )
    assert (spread.gpus, spread.percent_at_or_above(Decimal("2.01"))) == (8, 50)
    assert fills_of_30_days(make_gpu(slug="b200").pk, now=NOW) is None


def test_a_new_price_changes_no_earning_of_a_sold_hour(h100, renter):
    listing = make_listing(gpu=h100, price="2.88")
    rental = make_running_rental(renter=renter, gpu=h100, ready_at=READY, hours=2, listing=listing)
    change_terms(
        provider_id=listing.server.provider_id, listing_id=listing.pk, offered=Offered(price=Decimal("9")), now=READY
    )
    end_rental(rental, stop_at=READY + 2 * HOUR)
    settle_due(until=READY + 5 * HOUR, now=READY + 5 * HOUR)
    assert {earned_hour(line).price for line in settled_hours(listing.server.provider_id)} == {Decimal("2.88")}
    assert earned(listing.server.provider_id).net_micros == 5_760_000


@given(PRICES)
def test_percentiles_are_prices_paid_in_order_and_divide_the_gpus(sold):
    spread = spread_of(sold)
    assert spread is not None
    found = [spread.lowest, spread.p25, spread.median, spread.p75, spread.highest]
    assert found == sorted(found)
    assert set(found) <= {price for price, _ in sold}
    for percent, price in ((25, spread.p25), (50, spread.median), (75, spread.p75)):
        at_or_below = sum(gpus for paid, gpus in sold if paid <= price)
        below = sum(gpus for paid, gpus in sold if paid < price)
        assert 100 * at_or_below >= percent * spread.gpus > 100 * below


@given(PRICES, st.decimals("0.0001", "50", places=4), st.decimals("0.0001", "50", places=4))
def test_a_higher_price_never_would_have_sold_more(sold, one, other):
    spread = spread_of(sold)
    assert spread is not None
    low, high = sorted((one, other))
    assert 0 <= spread.percent_at_or_above(high) <= spread.percent_at_or_above(low) <= 100
    assert spread.percent_at_or_above(spread.lowest) == 100
