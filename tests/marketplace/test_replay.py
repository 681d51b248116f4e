"""Every fill is proved again from its rows, and whoever tampers with one is found out."""

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from io import StringIO
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from marketplace.book_history import history_of, unproved
from marketplace.checks import run_checks
from marketplace.listings import Offered, change_terms, pause, resume
from marketplace.matching import Ask, Bid
from marketplace.models import Fill, Lease, Listing, ListingTerms, Order, Rental
from marketplace.orders.close import cancel_order
from marketplace.orders.place import place_order
from marketplace.rentals.fail_unstarted import fail_start
from marketplace.replay import History, PastAsk, PastBid, PastFill, PastLease, differences, rebuilt_asks
from marketplace.servers import beat, unverify_server, verify_server
from marketplace.sweep import sweep
from tests.factories import make_gpu
from tests.marketplace.conftest import NOW, make_listing, make_renter, order_for

SECOND = timedelta(seconds=1)
BID, ASK, OTHER_ASK, THIRD = UUID(int=1), UUID(int=11), UUID(int=12), UUID(int=13)


def past_ask(
    listing_id: UUID = ASK, *, price: str = "2.88", begun: int = 1, over: int | None = None, **values
) -> PastAsk:
    defaults = {
        "listing_id": listing_id,
        "server_id": UUID(int=listing_id.int + 100),
        "price": Decimal(price),
        "priority": begun,
        "free_device_ids": (1, 2) if listing_id == ASK else (3, 4),
        "min_gpus": 1,
        "max_hours": 720,
        "available_until": None,
        "country": "NL",
        "interconnect": "nvlink",
        "ram_gb": 512,
        "vcpus": 64,
        "disk_gb": 2000,
    }
    return PastAsk(ask=Ask(**{**defaults, **values}), from_sequence=begun, to_sequence=over)


def past_bid(order_id: UUID = BID, *, at: int, limit: str = "2.95", over: int | None = None, **values) -> PastBid:
    defaults = {"limit": Decimal(limit), "sequence": at, "gpu_count": 1, "open_servers": 1, "hours": 1}
    expires_at = values.pop("expires_at", NOW + timedelta(days=7))
    bid = Bid(order_id=order_id, **{**defaults, **values})
    return PastBid(bid=bid, placed_at=NOW, expires_at=expires_at, closed_sequence=over)


def past_fill(order_id: UUID = BID, listing_id: UUID = ASK, *, at: int, price: str = "2.88", devices=(1,)) -> PastFill:
    return PastFill(
        order_id=order_id,
        listing_id=listing_id,
        server_id=UUID(int=listing_id.int + 100),
        price=Decimal(price),
        device_ids=devices,
        sequence=at,
        filled_at=NOW,
    )


def taken(at: int, *devices: int, over: int | None = None) -> list[PastLease]:
    return [PastLease(device_id=device, taken_sequence=at, closed_sequence=over) for device in devices]


# An order at place 5 that takes the cheaper of two asks at once.
TWO_ASKS = [past_ask(), past_ask(OTHER_ASK, price="2.90", begun=2)]
TAKEN_AT_ONCE = History(asks=TWO_ASKS, leases=taken(6, 1), bids=[past_bid(at=5, over=5)], fills=[past_fill(at=6)])


def found(history: History) -> str:
    return " | ".join(differences(history))


def test_the_cheapest_then_oldest_is_what_the_rules_choose():
    assert found(TAKEN_AT_ONCE) == ""


@pytest.mark.parametrize(
    ("name", "history"),
    [
        (
            "the rules choose",
            replace(TAKEN_AT_ONCE, fills=[past_fill(listing_id=OTHER_ASK, at=6, price="2.90", devices=(3,))]),
        ),
        ("the rules choose", replace(TAKEN_AT_ONCE, fills=[past_fill(at=6, price="2.87")])),
        ("the rules choose", replace(TAKEN_AT_ONCE, fills=[past_fill(at=6, devices=(2,))])),
        ("did not take", replace(TAKEN_AT_ONCE, fills=[], leases=[])),
        ("nothing fitted", replace(TAKEN_AT_ONCE, bids=[past_bid(at=5, over=5, limit="2.50")])),
        ("nothing fitted", replace(TAKEN_AT_ONCE, asks=[past_ask(over=4)])),
        ("nothing fitted", replace(TAKEN_AT_ONCE, asks=[past_ask()], leases=taken(3, 1, 2) + taken(6, 1))),
        ("nothing fitted", replace(TAKEN_AT_ONCE, fills=[past_fill(at=6), past_fill(at=7, devices=(2,))])),
        ("comes later", replace(TAKEN_AT_ONCE, bids=[past_bid(at=9, over=9)])),
    ],
)
def test_whatever_else_was_written_is_told(name, history):
    assert name in found(history)


def test_a_lower_price_came_too_late_for_a_fill_before_it():
    asks = [past_ask(over=10), past_ask(price="2.50", begun=10), past_ask(OTHER_ASK, price="2.90", begun=2)]
    later = past_bid(THIRD, at=12, over=12)
    fills = [past_fill(at=6), past_fill(THIRD, at=13, price="2.50", devices=(2,))]
    history = replace(
        TAKEN_AT_ONCE, asks=asks, bids=[past_bid(at=5, over=5), later], fills=fills, leases=taken(6, 1) + taken(13, 2)
    )
    assert found(history) == ""


def test_a_device_is_free_from_the_place_its_lease_is_closed_at():
    first, second = past_bid(at=5, over=5, gpu_count=2), past_bid(THIRD, at=8, over=8, gpu_count=2)
    fills = [past_fill(at=6, devices=(1, 2)), past_fill(THIRD, at=9, devices=(1, 2))]
    leases = [*taken(6, 1, 2, over=7), *taken(9, 1, 2)]
    history = replace(TAKEN_AT_ONCE, bids=[first, second], fills=fills, leases=leases)
    assert found(history) == ""
    still_taken = [*taken(6, 1, 2, over=10), *taken(9, 1, 2)]
    assert "the rules choose" in found(replace(history, leases=still_taken))


def test_who_rests_ahead_is_not_passed_over():
    asks = [past_ask(begun=20)]
    ahead, behind = past_bid(at=5, limit="3.00"), past_bid(THIRD, at=6, limit="2.95", over=22)
    fills = [past_fill(THIRD, at=21, price="2.95")]
    history = History(asks=asks, leases=taken(21, 1), bids=[ahead, behind], fills=fills)
    assert "was ahead in line and fitted" in found(history)
    assert found(replace(history, bids=[replace(ahead, closed_sequence=19), behind])) == ""
    other_wish = past_bid(at=5, limit="3.00", gpu_count=3)
    assert found(replace(history, bids=[other_wish, behind])) == ""


def test_nobody_is_asked_for_who_was_ahead_in_a_last_minute():
    """Two processes may tell the time a little differently: an order in its last minute is over for one of them."""
    ahead = past_bid(at=5, limit="3.00", expires_at=NOW + 30 * SECOND)
    behind = past_bid(THIRD, at=6, limit="2.95", over=22)
    fills = [past_fill(THIRD, at=21, price="2.95")]
    assert found(History(asks=[past_ask(begun=20)], leases=taken(21, 1), bids=[ahead, behind], fills=fills)) == ""


def test_one_order_served_before_another_in_the_same_moment_is_not_ahead_any_more():
    asks = [past_ask(begun=20), past_ask(OTHER_ASK, price="2.90", begun=19)]
    first, second = past_bid(at=5, limit="3.00", over=23), past_bid(THIRD, at=6, limit="2.95", over=24)
    fills = [past_fill(at=21, price="3.00"), past_fill(THIRD, OTHER_ASK, at=22, price="2.95", devices=(3,))]
    history = History(asks=asks, leases=[*taken(21, 1), *taken(22, 3)], bids=[first, second], fills=fills)
    cheapest_first = replace(
        history,
        fills=[past_fill(at=21, price="3.00"), past_fill(THIRD, at=22, price="2.95", devices=(2,))],
        leases=[*taken(21, 1), *taken(22, 2)],
    )
    assert "the rules choose" in found(history)
    assert found(cheapest_first) == ""


def test_all_or_nothing_is_judged_whole():
    wanted = past_bid(at=5, over=5, open_servers=3, all_or_nothing=True)
    assert found(replace(TAKEN_AT_ONCE, bids=[wanted], fills=[], leases=[])) == ""
    both = [past_fill(at=6), past_fill(listing_id=OTHER_ASK, at=7, price="2.90", devices=(3,))]
    two = past_bid(at=5, over=5, open_servers=2, all_or_nothing=True)
    assert found(replace(TAKEN_AT_ONCE, bids=[two], fills=both, leases=[*taken(6, 1), *taken(7, 3)])) == ""


def test_the_present_book_is_made_of_terms_and_leases():
    history = History(asks=[past_ask(over=4), past_ask(OTHER_ASK, begun=2)], leases=taken(3, 3), bids=[], fills=[])
    assert [(ask.listing_id, ask.free_device_ids) for ask in rebuilt_asks(history)] == [(OTHER_ASK, (4,))]


# A real book


def live_a_little(gpu, renter) -> None:
    """Everything that moves a book, once or more."""
    first, second = make_listing(gpu=gpu, price="2.88", devices=3), make_listing(gpu=gpu, price="2.95", devices=2)
    at = NOW

    def place(**values):
        return place_order(organisation_id=renter.pk, instruction=order_for(gpu, confirm_price=True, **values), now=at)

    place(gpu_count=2, limit="3.00")
    resting = place(gpu_count=2, limit="2.90", server_count=2)
    place(gpu_count=1, limit="2.70")
    at += SECOND
    change_terms(
        provider_id=second.server.provider_id, listing_id=second.pk, offered=Offered(price=Decimal("2.89")), now=at
    )
    at += SECOND
    fail_start(
        rental_id=Rental.objects.filter(gpu=gpu).earliest("fill__sequence").pk, reason="image_pull_failed", now=at
    )
    pause(provider_id=first.server.provider_id, listing_id=first.pk, now=at)
    place(limit="2.95", time_in_force="ioc")
    resume(provider_id=first.server.provider_id, listing_id=first.pk, now=at)
    place(limit="2.95", server_count=5, time_in_force="fok")
    at += 90 * SECOND
    place(limit="2.95", time_in_force="ioc")
    beat(server_id=first.server_id, now=at)
    sweep(now=at)
    place(limit="2.95", time_in_force="ioc")
    cancel_order(organisation_id=renter.pk, order_id=resting.order_id, now=at)
    unverify_server(server_id=first.server_id, now=at)
    place(limit="2.95", time_in_force="ioc")
    verify_server(server_id=first.server_id, now=at)


@pytest.mark.django_db
def test_a_book_that_lived_is_proved_from_its_rows(h100, renter):
    live_a_little(h100, renter)
    assert Fill.objects.count() >= 4
    assert list(unproved(h100.pk)) == []


@pytest.mark.django_db
def test_the_command_proves_a_book_and_says_how_much(h100, renter):
    live_a_little(h100, renter)
    out = StringIO()
    call_command("replay_book", "h100-sxm", "--json", stdout=out)
    told = json.loads(out.getvalue())
    assert (told["gpu"], told["ok"], told["fills"], told["differences"]) == ("h100-sxm", True, Fill.objects.count(), [])
    call_command("replay_book", "h100-sxm", stdout=(plain := StringIO()))
    assert "h100-sxm" in plain.getvalue()
    with pytest.raises(CommandError, match="no GPU"):
        call_command("replay_book", "h100", stdout=StringIO())


@pytest.mark.django_db
def test_another_book_has_a_line_of_its_own(h100, renter):
    other = make_gpu(slug="h200-sxm")
    live_a_little(h100, renter)
    live_a_little(other, renter)
    assert {len(history_of(gpu.pk).fills) for gpu in (h100, other)} == {Fill.objects.filter(gpu=other).count()}
    assert list(unproved(other.pk)) == []


TAMPERED = {
    "the price of a fill": "UPDATE marketplace_fill SET price_usd_per_gpu_hour = price_usd_per_gpu_hour - 0.0001 WHERE id = %s",
    "the device of a fill": "UPDATE marketplace_fill SET device_ids = ARRAY[device_ids[1] + 1000] WHERE id = %s",
    "when a device was taken": "UPDATE marketplace_lease SET taken_sequence = 0 WHERE rental_id IN (SELECT id FROM marketplace_rental WHERE fill_id = %s)",
    "the limit of its order": "UPDATE marketplace_order SET limit_price_usd_per_gpu_hour = 1 WHERE id = (SELECT order_id FROM marketplace_fill WHERE id = %s)",
    "a fill that is gone": (
        "WITH fill AS (DELETE FROM marketplace_fill WHERE id = %s RETURNING id), rental AS (DELETE FROM marketplace_rental"
        " WHERE fill_id IN (SELECT id FROM fill) RETURNING id), lease AS (DELETE FROM marketplace_lease WHERE rental_id IN"
        " (SELECT id FROM rental)), held AS (DELETE FROM marketplace_heldhours WHERE rental_id IN (SELECT id FROM rental))"
        " DELETE FROM marketplace_rentalevent WHERE rental_id IN (SELECT id FROM rental)"
    ),
    "a running total": "UPDATE marketplace_fill SET value_so_far = value_so_far + 1 WHERE id = %s",
}


@pytest.mark.broken_books
@pytest.mark.django_db
@pytest.mark.parametrize("what", TAMPERED)
def test_whoever_tampers_with_a_row_is_found_out(h100, renter, what):
    make_listing(gpu=h100, price="2.88")
    make_listing(gpu=h100, price="2.95")
    place_order(organisation_id=renter.pk, instruction=order_for(h100, limit="2.95"), now=NOW)
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute(TAMPERED[what], [Fill.objects.get().pk])
        cursor.execute("SET session_replication_role = origin")
    assert [check.name for check in run_checks(now=NOW) if not check.ok]
    if "total" not in what:
        with pytest.raises(SystemExit) as ended:
            call_command("replay_book", "h100-sxm", stdout=StringIO())
        assert ended.value.code == 1


@pytest.mark.broken_books
@pytest.mark.django_db
def test_a_book_that_serves_what_its_rows_do_not_make_is_found_out(h100):
    make_listing(gpu=h100)
    Listing.objects.update(price_usd_per_gpu_hour=Decimal("1.00"))
    assert list(unproved(h100.pk)) == ["the asks that its rows make are not those that it serves"]
    Listing.objects.update(price_usd_per_gpu_hour=Decimal("2.88"))
    ListingTerms.objects.update(is_for_rent=False)
    assert list(unproved(h100.pk)) != []


@pytest.mark.broken_books
@pytest.mark.django_db
def test_an_open_order_that_something_fits_is_found_out(h100, renter):
    place_order(organisation_id=renter.pk, instruction=order_for(h100, limit="2.50"), now=NOW)
    make_listing(gpu=h100, price="2.88")
    Listing.objects.update(price_usd_per_gpu_hour=Decimal("2.50"))
    failed = [check.name for check in run_checks(now=NOW) if not check.ok]
    assert "I6 no open order has a fitting ask" in failed


@pytest.mark.django_db(transaction=True)
def test_a_check_sees_one_moment_while_others_trade(h100, monkeypatch):
    """A fill that commits between two reads of a check is in both or in neither."""
    renter = make_renter()
    make_listing(gpu=h100, price="2.88")
    place_order(organisation_id=renter.pk, instruction=order_for(h100, limit="2.88"), now=NOW)
    read, between = Lease.objects.filter, []

    def trades_meanwhile(*args, **kwargs):
        if not between:
            between.append(
                _in_another_connection(
                    lambda: place_order(
                        organisation_id=renter.pk, instruction=order_for(h100, limit="2.88"), now=NOW + SECOND
                    )
                )
            )
        return read(*args, **kwargs)

    monkeypatch.setattr(Lease.objects, "filter", trades_meanwhile)
    assert list(unproved(h100.pk)) == []
    assert between
    assert len(between) == 1
    monkeypatch.undo()
    assert Order.objects.count() == Fill.objects.count() == 2
    with transaction.atomic():
        assert list(unproved(h100.pk)) == []


def _in_another_connection(work):
    import threading

    result = []

    def run():
        try:
            result.append(work())
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    return result
