"""What happens to an order after it was placed, and to the book around it: who takes it out, what fills it, at what price."""

from datetime import timedelta
from decimal import Decimal

import pytest

from billing.books import BooksStopped
from billing.models import Account, BooksStop, Hold
from billing.receivables import open_receivable_micros
from catalog.models import BestAsk
from fx.models import Rate
from marketplace.limits import LONGEST_ORDER, MOST_RESTING_ORDERS
from marketplace.listings import (
    Offered,
    change_terms,
)
from marketplace.models import Fill, Lease, Listing, Order, Quote, Rental
from marketplace.orders.close import OrderUnknown, cancel_order
from marketplace.orders.instruction import InstructionRefused
from marketplace.orders.place import (
    NotARenter,
    NotEnoughMoney,
    OrganisationFrozen,
    QuoteExpired,
    ReceivableOpen,
    TooManyOrders,
    place_order,
)
from marketplace.quotes import quote_order
from marketplace.rates import FxTooOld
from marketplace.rentals.closing import close_rental
from marketplace.sweep import sweep
from tests.billing.test_receivables import claw
from tests.factories import make_gpu
from tests.marketplace.conftest import NOW, make_listing, make_renter, order_for
from users.freezing import freeze

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def place(renter, gpu, *, now=NOW, **values) -> Order:
    placed = place_order(organisation_id=renter.pk, instruction=order_for(gpu, **values), now=now)
    return Order.objects.get(pk=placed.order_id)


def cancel(order, *, now=NOW + SECOND) -> Order:
    return cancel_order(organisation_id=order.organisation_id, order_id=order.pk, now=now)


def offer(listing, price=None, **terms):
    return Offered(price=Decimal(price or listing.price_usd_per_gpu_hour), **terms)


def reprice(listing, price, *, now=NOW + SECOND, **terms) -> Listing:
    provider_id = listing.server.provider_id
    return change_terms(provider_id=provider_id, listing_id=listing.pk, offered=offer(listing, price, **terms), now=now)


def of(listing) -> dict:
    return {"provider_id": listing.server.provider_id, "listing_id": listing.pk}


def held(renter) -> int:
    return Account.objects.get(owner=renter, kind="wallet").held_micros


def best_ask(gpu) -> tuple[Decimal, int] | None:
    found = BestAsk.objects.filter(gpu=gpu).first()
    return found and (found.price_usd_per_gpu_hour, found.devices_available)


# taken back by its owner


def test_a_cancel_gives_back_exactly_what_was_held_and_a_second_one_changes_nothing(h100, renter):
    order = place(renter, h100, limit="2.50", hours=10, server_count=3)
    assert held(renter) == order.hold.remaining_micros == 3 * order.hold_per_server_micros > 0
    closed = cancel(order)
    assert (closed.state, closed.close_reason, closed.closed_at) == ("cancelled", "cancelled", NOW + SECOND)
    assert held(renter) == 0
    again = cancel(order, now=NOW + MINUTE)
    assert (again.state, again.closed_at, again.closed_sequence) == ("cancelled", NOW + SECOND, closed.closed_sequence)


def test_a_cancel_after_a_part_keeps_the_part(h100, renter):
    make_listing(gpu=h100)
    order = place(renter, h100, server_count=2)
    assert (order.state, order.filled_servers) == ("partly_filled", 1)
    closed = cancel(order)
    assert (closed.state, closed.filled_servers) == ("cancelled", 1)
    rental = Rental.objects.get(order=order)
    assert rental.state == "pending"
    assert held(renter) == rental.hold.remaining_micros == 3_484_800 + 4
    closed.hold.refresh_from_db()
    assert closed.hold.remaining_micros == 0


def test_a_cancel_after_the_fill_changes_nothing(h100, renter):
    make_listing(gpu=h100)
    order = place(renter, h100)
    assert cancel(order).state == "filled"
    assert Rental.objects.get(order=order).state == "pending"


def test_nobody_cancels_the_order_of_another(h100, renter):
    order = place(renter, h100)
    with pytest.raises(OrderUnknown):
        cancel_order(organisation_id=make_renter(name="Other").pk, order_id=order.pk, now=NOW)
    order.refresh_from_db()
    assert order.state == "open"


# over by time, or no longer let trade


def test_the_sweep_expires_what_is_due_and_gives_its_hold_back(h100, renter):
    order = place(renter, h100, expires_at=NOW + HOUR)
    later = place(renter, h100, expires_at=NOW + HOUR + SECOND)
    assert sweep(now=NOW + HOUR - SECOND)["orders_expired"] == 0
    assert sweep(now=NOW + HOUR)["orders_expired"] == 1
    order.refresh_from_db()
    later.refresh_from_db()
    assert (order.state, order.close_reason, order.closed_at) == ("expired", "expired", NOW + HOUR)
    assert later.state == "open"
    assert held(renter) == later.hold_per_server_micros
    assert sweep(now=NOW + HOUR)["orders_expired"] == 0


def test_an_order_rests_seven_days_at_most_and_by_default(h100, renter):
    assert place(renter, h100).expires_at == NOW + LONGEST_ORDER
    with pytest.raises(InstructionRefused) as refused:
        place(renter, h100, expires_at=NOW + LONGEST_ORDER + SECOND)
    assert (refused.value.field, refused.value.code) == ("expires_at", "out_of_range")


def test_what_is_over_never_fills_even_before_the_sweep(h100, renter):
    order = place(renter, h100, expires_at=NOW + MINUTE)
    make_listing(gpu=h100, now=NOW + MINUTE)
    order.refresh_from_db()
    assert order.state == "expired"
    assert not Fill.objects.exists()


def test_a_frozen_organisation_places_nothing_and_its_orders_leave_with_the_sweep(h100, renter):
    order = place(renter, h100)
    freeze(organisation_id=renter.pk, reason="disputed", now=NOW)
    with pytest.raises(OrganisationFrozen):
        place(renter, h100)
    sweep(now=NOW + SECOND)
    order.refresh_from_db()
    assert (order.state, order.close_reason) == ("cancelled", "frozen")
    assert held(renter) == 0


def test_who_owes_us_orders_nothing_and_what_rests_is_taken_out_and_pays_the_debt(h100):
    renter = make_renter(units=100)
    order = place(renter, h100, limit="2.50", hours=24)
    wallet = Account.objects.get(owner=renter, kind="wallet")
    claw(wallet, 110)
    with pytest.raises(ReceivableOpen):
        place(renter, h100)
    sweep(now=NOW + SECOND)
    order.refresh_from_db()
    assert (order.state, order.close_reason) == ("cancelled", "receivable_open")
    assert open_receivable_micros(renter.pk, "USD") == 10_000_000, "what the order held paid the rest"
    assert held(renter) == 0


def test_while_the_books_are_stopped_nobody_orders(h100, renter):
    make_listing(gpu=h100)
    stop = BooksStop.objects.create(breach="x", stopped_at=NOW)
    with pytest.raises(BooksStopped):
        place(renter, h100)
    assert not Order.objects.exists()
    BooksStop.objects.filter(pk=stop.pk).update(lifted_at=NOW, lifted_by="op", lift_reason="fine")
    assert place(renter, h100).state == "filled"


def test_a_provider_never_orders(h100):
    listing = make_listing(gpu=h100)
    with pytest.raises(NotARenter):
        place(listing.server.provider.organisation, h100)


def test_without_a_wallet_the_order_names_what_it_would_have_held(h100, renter):
    Rate.objects.create(
        day=NOW.date(), currency="USD", units_per_eur=Decimal("1.25"), origin="ecb", stored_at=NOW - HOUR
    )
    with pytest.raises(NotEnoughMoney) as refused:
        place(renter, h100, currency="EUR")
    assert (refused.value.needed_micros, refused.value.available_micros) == (2_787_840 + 4, 0)


def test_one_may_have_so_many_resting_orders_and_not_one_more(h100, renter, monkeypatch):
    assert MOST_RESTING_ORDERS == 200
    monkeypatch.setattr("marketplace.orders.place.MOST_RESTING_ORDERS", 2)
    for _ in range(2):
        place(renter, h100)
    with pytest.raises(TooManyOrders):
        place(renter, h100)
    make_listing(gpu=h100, price="9.00")
    assert place(renter, h100, time_in_force="ioc").state == "cancelled", "what never rests is not counted"


# exchange rates and quotes


@pytest.mark.parametrize("days_old", [6, None])
def test_with_an_old_rate_or_none_nobody_orders_in_euro(h100, days_old, settings):
    settings.FX_MAX_AGE_DAYS = 5
    renter = make_renter(currency="EUR")
    make_listing(gpu=h100)
    if days_old is not None:
        rate_of(days_old)
    with pytest.raises(FxTooOld):
        place(renter, h100, currency="EUR")
    with pytest.raises(FxTooOld):
        quote_order(organisation_id=renter.pk, instruction=order_for(h100, currency="EUR"), now=NOW)
    assert not Order.objects.exists()
    assert place(make_renter(name="Dollar"), h100).state == "filled"


def test_with_a_rate_just_young_enough_an_order_in_euro_is_held_in_euro(h100, settings):
    settings.FX_MAX_AGE_DAYS = 5
    renter = make_renter(currency="EUR")
    rate_of(5)
    make_listing(gpu=h100)
    order = place(renter, h100, currency="EUR")
    assert (order.state, order.fx_rate, order.fx_on) == ("filled", Decimal("0.8"), NOW.date() - timedelta(days=5))
    assert held(renter) == 2_787_840 + 4


def rate_of(days_old: int, usd_per_eur: str = "1.25") -> None:
    day = NOW.date() - timedelta(days=days_old)
    Rate.objects.create(
        day=day, currency="USD", units_per_eur=Decimal(usd_per_eur), origin="ecb", stored_at=NOW - timedelta(days=1)
    )


def test_a_quote_is_kept_to_its_rate_and_fee_whatever_comes(h100, settings):
    renter = make_renter(currency="EUR")
    rate_of(1)
    make_listing(gpu=h100)
    instruction = order_for(h100, currency="EUR", gpu_count=2, hours=3)
    quoted = quote_order(organisation_id=renter.pk, instruction=instruction, now=NOW)
    assert (quoted.price, quoted.obstacle) == (Decimal("2.88"), None)
    rate_of(0, "1.00")
    settings.PROVIDER_FEE_PERCENT = Decimal(50)
    order = place(renter, h100, currency="EUR", gpu_count=2, hours=3, quote_id=quoted.quote.pk, now=NOW + MINUTE)
    assert (order.fx_rate, order.fee_percent, order.quote_id) == (Decimal("0.8"), Decimal(10), quoted.quote.pk)
    assert held(renter) == quoted.hold_micros


def test_a_quote_is_over_after_its_minute(h100, renter):
    make_listing(gpu=h100)
    quoted = quote_order(organisation_id=renter.pk, instruction=order_for(h100), now=NOW)
    with pytest.raises(QuoteExpired):
        place(renter, h100, quote_id=quoted.quote.pk, now=NOW + MINUTE + timedelta(microseconds=1))
    assert not Order.objects.exists()


def test_a_quote_of_another_or_for_another_gpu_is_unknown(h100, renter):
    make_listing(gpu=h100)
    quoted = quote_order(organisation_id=renter.pk, instruction=order_for(h100), now=NOW)
    for who, gpu in ((make_renter(name="Other"), h100), (renter, make_gpu(slug="b200"))):
        with pytest.raises(InstructionRefused) as refused:
            place(who, gpu, quote_id=quoted.quote.pk)
        assert (refused.value.field, refused.value.code) == ("quote", "unknown")


def test_a_quote_reserves_nothing_and_is_forgotten_after_a_day(h100, renter):
    make_listing(gpu=h100)
    used, forgotten = (
        quote_order(organisation_id=renter.pk, instruction=order_for(h100), now=NOW).quote for _ in range(2)
    )
    assert held(renter) == 0
    assert not Lease.objects.exists()
    place(renter, h100, quote_id=used.pk, time_in_force="ioc")
    assert sweep(now=NOW + timedelta(days=1))["quotes_forgotten"] == 0
    assert sweep(now=NOW + timedelta(days=1) + MINUTE)["quotes_forgotten"] == 1
    assert list(Quote.objects.values_list("pk", flat=True)) == [used.pk]
    assert forgotten.pk != used.pk


def test_a_quote_for_what_nobody_sells_says_why_and_promises_nothing(h100, renter):
    make_listing(gpu=h100, devices=2)
    quoted = quote_order(organisation_id=renter.pk, instruction=order_for(h100, gpu_count=4), now=NOW)
    assert (quoted.quote, quoted.price, quoted.fills) == (None, None, [])
    assert quoted.obstacle.reason == "nothing_fits"
    assert quoted.obstacle.why.removed == {"free_devices": 2}
    assert not Quote.objects.exists()


# what makes a resting order fill


def test_a_price_lowered_below_a_resting_bid_trades_at_the_bid(h100, renter):
    listing = make_listing(gpu=h100, price="2.88")
    order = place(renter, h100, limit="2.50")
    reprice(listing, "2.40")
    order.refresh_from_db()
    assert order.state == "filled"
    fill = Fill.objects.get()
    assert fill.price_usd_per_gpu_hour == Decimal("2.50"), "the bid was there first"
    assert held(renter) == Hold.objects.get(reference_type="rental").remaining_micros == 3_025_000 + 4
    order.hold.refresh_from_db()
    assert order.hold.remaining_micros == 0


def test_a_new_listing_fills_the_best_then_the_oldest_bid(h100, renter):
    other = make_renter(name="Other")
    low = place(renter, h100, limit="2.60")
    oldest = place(renter, h100, limit="2.70")
    younger = place(other, h100, limit="2.70")
    make_listing(gpu=h100, price="2.50", devices=1)
    states = {order.pk: order.state for order in Order.objects.all()}
    assert states == {low.pk: "open", oldest.pk: "filled", younger.pk: "open"}
    assert Fill.objects.get().price_usd_per_gpu_hour == Decimal("2.70")


def test_devices_that_come_free_fill_who_waits(h100, renter):
    make_listing(gpu=h100, devices=2)
    first = place(renter, h100, gpu_count=2)
    waits = place(make_renter(name="Other"), h100, gpu_count=2)
    assert (first.state, waits.state) == ("filled", "open")
    rental = Rental.objects.get()
    closed = close_rental(
        rental_id=rental.pk,
        from_states=Rental.STARTING,
        to_state=Rental.State.FAILED,
        reason="image_pull_failed",
        now=NOW + SECOND,
    )
    waits.refresh_from_db()
    assert (closed, waits.state) == (True, "filled")
    assert Fill.objects.order_by("-sequence")[0].price_usd_per_gpu_hour == Decimal("2.88")
    assert held(renter) == 0, "what did not start costs nothing"
    assert Lease.objects.filter(closed_sequence=None).count() == 2
