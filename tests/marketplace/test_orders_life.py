"""What happens to an order after it was placed, and to the book around it: who takes it out, what fills it, at what price."""

from datetime import timedelta
from decimal import Decimal

import pytest

from billing.books import BooksStopped
from billing.models import Account, BooksStop, Hold
from billing.receivables import open_receivable_micros
from catalog.models import BestAsk
from fx.models import Rate
from marketplace.book import live_asks
from marketplace.limits import LONGEST_ORDER, MOST_RESTING_ORDERS
from marketplace.listings import (
    AlreadyListed,
    ListingUnknown,
    Offered,
    TermsRefused,
    change_terms,
    end_listing,
    list_server,
    pause,
    resume,
)
from marketplace.matching import Filters
from marketplace.models import Fill, Lease, Listing, Order, Quote, Rental
from marketplace.orders.close import OrderUnknown, cancel_order, expire_orders
from marketplace.orders.instruction import InstructionRefused
from marketplace.orders.match import bring_to_rest
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
from marketplace.servers import ServerBusy, beat, unverify_server, verify_server, withdraw_server
from marketplace.sweep import sweep
from tests.billing.test_receivables import claw
from tests.factories import make_gpu
from tests.marketplace.conftest import NOW, make_listing, make_renter, make_server, order_for
from tests.marketplace.rental_clock import up_all_along
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


def test_a_rental_that_did_not_start_is_failed_by_the_sweep_and_the_next_gets_its_devices(h100, renter):
    listing = make_listing(gpu=h100, devices=1)
    place(renter, h100)
    waits = place(make_renter(name="Other"), h100)
    up_all_along(since=NOW, until=NOW + 10 * MINUTE)
    beat(server_id=listing.server_id, now=NOW + 10 * MINUTE)
    counts = sweep(now=NOW + 10 * MINUTE)
    waits.refresh_from_db()
    assert (Rental.objects.filter(state="failed").count(), waits.state) == (1, "filled"), counts


def test_a_partly_filled_order_takes_another_server_never_the_same_twice(h100, renter):
    make_listing(gpu=h100, devices=8)
    order = place(renter, h100, server_count=2)
    bring_to_rest(h100.pk, now=NOW + SECOND)
    order.refresh_from_db()
    assert (order.state, order.filled_servers) == ("partly_filled", 1)
    make_listing(gpu=h100, devices=1, now=NOW + 2 * SECOND)
    order.refresh_from_db()
    assert order.state == "filled"
    assert len(set(order.rentals.values_list("server_id", flat=True))) == 2


def test_a_book_at_rest_stays_as_it_is(h100, renter):
    make_listing(gpu=h100)
    place(renter, h100, limit="2.50")
    assert [bring_to_rest(h100.pk, now=NOW + SECOND) for _ in range(2)] == [0, 0]


def test_wishes_keep_an_order_open_until_a_server_has_them(h100, renter):
    make_listing(gpu=h100, country="US")
    order = place(renter, h100, filters=Filters(countries=frozenset({"FI", "NL"}), min_ram_gb=1024))
    make_listing(gpu=h100, country="FI", ram_gb=512)
    order.refresh_from_db()
    assert order.state == "open"
    make_listing(gpu=h100, country="FI", ram_gb=1024)
    order.refresh_from_db()
    assert order.state == "filled"


# what is for rent


def test_a_paused_listing_sells_nothing_until_it_is_resumed_at_its_old_place(h100, renter):
    first, second = make_listing(gpu=h100, devices=1), make_listing(gpu=h100, devices=1)
    pause(**of(first), now=NOW)
    assert best_ask(h100) == (Decimal("2.88"), 1)
    pause(**of(first), now=NOW)
    resume(**of(first), now=NOW)
    resume(**of(first), now=NOW)
    assert [ask.listing_id for ask in live_asks(h100.pk, now=NOW)] == [first.pk, second.pk]
    pause(**of(first), now=NOW)
    pause(**of(second), now=NOW)
    order = place(renter, h100)
    assert (order.state, best_ask(h100)) == ("open", None)
    resume(**of(second), now=NOW)
    order.refresh_from_db()
    assert order.state == "filled"


def test_an_ended_listing_is_gone_for_good_and_its_server_may_be_listed_anew(h100, renter):
    listing = make_listing(gpu=h100, devices=2)
    rental = Rental.objects.get(order=place(renter, h100))
    with pytest.raises(AlreadyListed):
        list_server(server=listing.server, offered=offer(listing, "2.00"), now=NOW)
    end_listing(**of(listing), now=NOW)
    assert best_ask(h100) is None
    rental.refresh_from_db()
    assert rental.state == "pending", "what is sold goes on"
    for change in (pause, resume, end_listing):
        with pytest.raises(ListingUnknown):
            change(**of(listing), now=NOW)
    list_server(server=listing.server, offered=offer(listing, "2.00"), now=NOW)
    assert best_ask(h100) == (Decimal("2.00"), 1), "the device that is let stays let"


def test_nobody_changes_the_listing_of_another_provider(h100):
    listing = make_listing(gpu=h100)
    with pytest.raises(ListingUnknown):
        pause(provider_id=listing.server.provider_id + 1, listing_id=listing.pk, now=NOW)


def test_a_new_price_goes_to_the_end_of_its_line_and_other_terms_keep_their_place(h100):
    first, second = make_listing(gpu=h100), make_listing(gpu=h100)
    reprice(first, "2.88", max_hours=10)
    assert [ask.listing_id for ask in live_asks(h100.pk, now=NOW)] == [first.pk, second.pk]
    reprice(first, "2.99", max_hours=10)
    reprice(first, "2.88", max_hours=10)
    assert [ask.listing_id for ask in live_asks(h100.pk, now=NOW)] == [second.pk, first.pk]


def test_what_is_sold_keeps_its_price_whatever_is_asked_later(h100, renter):
    listing = make_listing(gpu=h100)
    order = place(renter, h100)
    before = held(renter)
    reprice(listing, "2.00")
    reprice(listing, "9.00", now=NOW + 2 * SECOND)
    rental = Rental.objects.get(order=order)
    assert rental.price_usd_per_gpu_hour == rental.fill.price_usd_per_gpu_hour == Decimal("2.88")
    assert held(renter) == before


@pytest.mark.parametrize(
    ("terms", "field", "code"),
    [
        ({"price": Decimal(0)}, "price_usd_per_gpu_hour", "out_of_range"),
        ({"price": Decimal("NaN")}, "price_usd_per_gpu_hour", "out_of_range"),
        ({"price": Decimal("100000.0001")}, "price_usd_per_gpu_hour", "out_of_range"),
        ({"price": Decimal("2.88001")}, "price_usd_per_gpu_hour", "too_fine"),
        ({"min_gpus": 0}, "min_gpus", "out_of_range"),
        ({"min_gpus": 9}, "min_gpus", "out_of_range"),
        ({"max_hours": 0}, "max_hours", "out_of_range"),
        ({"max_hours": 8761}, "max_hours", "out_of_range"),
        ({"available_until": NOW}, "available_until", "in_the_past"),
    ],
)
def test_terms_out_of_place_are_named(h100, terms, field, code):
    server = make_server(gpu=h100)
    with pytest.raises(TermsRefused) as refused:
        list_server(server=server, offered=Offered(**{"price": Decimal("2.88"), **terms}), now=NOW)
    assert (refused.value.field, refused.value.code) == (field, code)
    assert not Listing.objects.exists()


# servers


def test_only_a_verified_server_sells(h100, renter):
    listing = make_listing(gpu=h100)
    unverify_server(server_id=listing.server_id, now=NOW)
    assert best_ask(h100) is None
    order = place(renter, h100)
    assert order.state == "open"
    verify_server(server_id=listing.server_id, now=NOW)
    order.refresh_from_db()
    assert order.state == "filled"


def test_a_withdrawn_server_is_gone_and_one_with_a_rental_stays(h100, renter):
    busy, idle = make_listing(gpu=h100, price="2.50"), make_listing(gpu=h100)
    place(renter, h100)
    with pytest.raises(ServerBusy):
        withdraw_server(server_id=busy.server_id, now=NOW)
    withdraw_server(server_id=idle.server_id, now=NOW)
    assert best_ask(h100) == (Decimal("2.50"), 7)
    beat(server_id=idle.server_id, now=NOW + SECOND)
    assert [ask.listing_id for ask in live_asks(h100.pk, now=NOW + SECOND)] == [busy.pk]


def test_a_silent_server_leaves_the_best_ask_with_the_sweep(h100):
    make_listing(gpu=h100, price="2.50")
    heard = make_listing(gpu=h100, price="2.88")
    beat(server_id=heard.server_id, now=NOW + MINUTE)
    sweep(now=NOW + MINUTE)
    assert best_ask(h100) == (Decimal("2.50"), 16), "sixty seconds are not silence"
    sweep(now=NOW + MINUTE + SECOND)
    assert best_ask(h100) == (Decimal("2.88"), 8)
    sweep(now=NOW + 3 * MINUTE)
    assert best_ask(h100) is None


def test_a_silent_server_sells_nothing_even_before_the_sweep(h100, renter):
    make_listing(gpu=h100)
    assert place(renter, h100, now=NOW + MINUTE + SECOND).state == "open"


def test_a_beat_after_silence_brings_the_ask_back_and_fills_who_waits(h100, renter):
    listing = make_listing(gpu=h100)
    later = NOW + 2 * MINUTE
    order = place(renter, h100, now=later)
    assert order.state == "open"
    beat(server_id=listing.server_id, now=later + SECOND)
    order.refresh_from_db()
    assert (order.state, best_ask(h100)) == ("filled", (Decimal("2.88"), 7))


def test_an_order_that_comes_again_with_its_id_is_the_same_order(h100, renter):
    make_listing(gpu=h100)
    first = place_order(organisation_id=renter.pk, instruction=order_for(h100), now=NOW)
    again = place_order(
        organisation_id=renter.pk, instruction=order_for(h100), now=NOW + SECOND, order_id=first.order_id
    )
    assert again == first
    assert (Order.objects.count(), Rental.objects.count()) == (1, 1)


def test_expiring_twice_is_expiring_once(h100, renter):
    place(renter, h100, expires_at=NOW + MINUTE)
    assert [expire_orders(now=NOW + MINUTE) for _ in range(2)] == [1, 0]
