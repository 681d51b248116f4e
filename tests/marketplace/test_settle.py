"""Settled hours: DESIGN's vectors to the micro, both sides of the books, holds lowered, and never above the hold."""

from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from django.db import transaction

from billing import ledger
from billing.models import Account, Hold, JournalEntry, Posting, TaxDecision
from billing.receivables import claw_back
from billing.tax.record import decide_for
from fx.models import Rate
from marketplace.models import Rental, Settlement, UpSpan
from marketplace.orders.place import place_order
from marketplace.settlement.due import settle_due
from marketplace.settlement.formula import Part, Priced, hold_needed_micros
from marketplace.settlement.lower import lower_hold
from marketplace.settlement.settle import settle_rental_now
from tests.marketplace.conftest import (
    NOW,
    end_rental,
    hold_one_more_hour,
    make_listing,
    make_renter,
    make_running_rental,
    order_for,
)
from users.models import Organisation

pytestmark = pytest.mark.django_db
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-30T{text}Z")


def settled(until: str) -> int:
    return settle_due(until=at(until), now=at(until))["hours"]


def lines(rental: Rental) -> list[tuple[int, ...]]:
    rows = Settlement.objects.filter(rental=rental).order_by("hour")
    return list(rows.values_list("hour__hour", "billed_seconds", "net_micros", "tax_micros", "payable_micros"))


def remaining(rental: Rental) -> int:
    return Hold.objects.get(pk=rental.hold_id).remaining_micros


def make_finn(*, kind: str = "consumer", country: str = "FI", units: int = 1000) -> Organisation:
    """Return a consumer in Finland with euros, at the rate of the design's examples."""
    Rate.objects.get_or_create(
        currency="USD",
        day=NOW.date(),
        defaults={"units_per_eur": Decimal("1.1476"), "origin": "ecb", "stored_at": NOW},
    )
    return make_renter(name="aino", currency="EUR", units=units, type=kind, country=country)


def balance(kind: str, currency: str) -> int:
    return sum(
        ledger.balance_micros(pk)
        for pk in Account.objects.filter(kind=kind, currency=currency).values_list("pk", flat=True)
    )


def test_the_lot_of_the_design(h100):
    rental = make_running_rental(
        renter=make_finn(),
        gpu=h100,
        ready_at=at("10:04:30"),
        gpu_count=4,
        hours=3,
        currency="EUR",
        beats=[(NOW, at("11:20:10")), (at("11:22:10"), at("12:31:00"))],
    )
    UpSpan.objects.create(started_at=NOW, last_seen_at=at("12:31:00"))
    assert remaining(rental) == 37_794_362
    assert settled("11:05:00") == 1
    assert settled("12:05:00") == 1
    end_rental(rental, stop_at=at("12:30:00"))
    assert settle_rental_now(rental_id=rental.pk, now=at("12:30:02")) == 1
    assert lines(rental) == [
        (10, 3330, 9_285_465, 2_367_794, 9_590_400),
        (11, 3480, 9_703_730, 2_474_451, 10_022_400),
        (12, 1800, 5_019_170, 1_279_888, 5_184_000),
    ]
    hold = Hold.objects.get(pk=rental.hold_id)
    assert (hold.captured_micros, hold.remaining_micros) == (30_130_498, 0)


def test_the_open_ended_rental_of_the_design(h100):
    rental = make_running_rental(
        renter=make_finn(),
        gpu=h100,
        ready_at=at("15:42:00"),
        price="4.19",
        hours=None,
        currency="EUR",
        filled_at=at("15:40:00"),
    )
    assert remaining(rental) == 4_582_132
    hold_one_more_hour(rental, fx_rate="0.8695652174", tax_rate_percent="25.5", now=at("16:32:00"))
    assert remaining(rental) == 4_582_132 + 4_572_570
    assert settled("17:04:00") == 1
    priced = Priced(price=Decimal("4.19"), gpu_count=1, fee_percent=Decimal(10))
    rest = [
        Part(seconds=2520, fx_rate=Decimal("0.8713837574"), held_tax_rate_percent=Decimal("25.5")),
        Part(seconds=3600, fx_rate=Decimal("0.8695652174"), held_tax_rate_percent=Decimal("25.5")),
    ]
    assert remaining(rental) == hold_needed_micros(priced, rest, touched_hours=2)
    assert lower_hold(rental_id=rental.pk, now=at("17:04:00")) == 0
    assert settled("18:05:00") == 2
    assert lines(rental)[1] == (16, 3600, 3_648_812, 930_447, 3_771_000)
    line = Settlement.objects.get(rental=rental, hour=at("16:00:00"))
    assert (line.first_seconds, line.next_seconds) == (2520, 1080)
    assert (line.fx_rate, line.next_fx_rate) == (Decimal("0.8713837574"), Decimal("0.8695652174"))


def test_both_sides_stand_in_the_books_each_in_its_currency(h100):
    renter = make_finn()
    rental = make_running_rental(renter=renter, gpu=h100, ready_at=at("10:04:30"), gpu_count=4, hours=3, currency="EUR")
    settled("11:05:00")
    line = Settlement.objects.get()
    assert list(
        Posting.objects.filter(entry=line.entry)
        .order_by("pk")
        .values_list("account__kind", "currency", "amount_micros")
    ) == [
        ("wallet", "EUR", -11_653_259),
        ("revenue", "EUR", 9_285_465),
        ("tax", "EUR", 2_367_794),
    ]
    assert list(
        Posting.objects.filter(entry=line.provider_entry)
        .order_by("pk")
        .values_list("account__kind", "currency", "amount_micros")
    ) == [("cost", "USD", -9_590_400), ("payable", "USD", 9_590_400)]
    payable = Account.objects.get(kind="payable", currency="USD")
    assert (payable.owner_id, payable.posted_micros) == (rental.server.provider_id, 9_590_400)
    assert (line.usd_net_micros, line.fee_micros) == (10_656_000, 1_065_600)
    entry = JournalEntry.objects.get(pk=line.entry_id)
    assert (entry.kind, entry.key) == ("rental_hour", f"settle:{rental.pk}:2026-11-30T10:00:00Z")
    assert (entry.reference_type, entry.reference_id, entry.effective_at) == ("rental", str(rental.pk), at("11:00:00"))
    assert JournalEntry.objects.get(pk=line.provider_entry_id).key == f"earn:{rental.pk}:2026-11-30T10:00:00Z"
    assert line.tax_decision_id == TaxDecision.objects.get(organisation=renter).pk


def test_an_hour_is_due_an_hour_and_five_minutes_after_its_start(h100, renter):
    make_running_rental(renter=renter, gpu=h100, ready_at=at("10:04:30"), hours=3)
    assert settled("11:04:59") == 0
    assert settled("11:05:00") == 1
    assert settled("12:04:59") == 0


def test_the_hours_of_a_rental_that_is_over_are_due_at_once(h100, renter):
    rental = make_running_rental(renter=renter, gpu=h100, ready_at=at("10:04:30"), hours=3)
    end_rental(rental, stop_at=at("11:02:00"))
    assert settle_due(until=at("11:01:59"), now=at("11:02:00"))["hours"] == 0, "it was not over then"
    assert settled("11:02:00") == 2
    assert Rental.objects.get().fully_settled_at == at("11:02:00")


def test_after_each_hour_the_hold_keeps_what_the_rest_can_cost(h100, renter):
    rental = make_running_rental(renter=renter, gpu=h100, ready_at=at("10:04:30"), hours=3)
    for hour, left_seconds in (("11:05:00", 7470), ("12:05:00", 3870), ("13:05:00", 270)):
        settled(hour)
        # 2.88 x 1.21 an hour, rounded up, and two micros for each UTC hour that is still to come
        left_hours = -(-(left_seconds - 270) // 3600) + 1
        assert remaining(rental) == -(-2_880_000 * 121 * left_seconds // 360_000) + 2 * left_hours
    assert lower_hold(rental_id=rental.pk, now=at("13:05:00")) == 0, "nothing is left to lower"
    settled("14:05:00")
    assert remaining(rental) == 0
    assert Rental.objects.get().fully_settled_at is None, "whether it is over is not for us to say"


def test_a_stop_lowers_the_hold_to_what_the_seconds_up_to_it_can_cost(h100, renter):
    rental = make_running_rental(renter=renter, gpu=h100, ready_at=at("10:04:30"), hours=3)
    Rental.objects.update(stop_requested_at=at("10:30:00"))
    held = remaining(rental)
    released = lower_hold(rental_id=rental.pk, now=at("10:30:00"))
    assert remaining(rental) == held - released == -(-2_880_000 * 121 * 1530 // 360_000) + 2
    assert lower_hold(rental_id=rental.pk, now=at("10:30:00")) == 0
    end_rental(rental, stop_at=at("10:30:00"))
    settle_rental_now(rental_id=rental.pk, now=at("10:30:10"))
    assert remaining(rental) == 0


def test_a_rental_that_never_started_gives_everything_back(h100, renter):
    make_listing(gpu=h100)
    place_order(organisation_id=renter.pk, instruction=order_for(h100), now=NOW)
    rental = Rental.objects.get()
    assert settle_rental_now(rental_id=rental.pk, now=NOW) == 0
    assert remaining(rental) > 0, "it has not started yet"
    end_rental(rental, stop_at=NOW + 11 * MINUTE, state="failed")
    assert settle_rental_now(rental_id=rental.pk, now=NOW + 11 * MINUTE) == 0
    assert remaining(rental) == 0
    assert not Settlement.objects.exists()


def test_what_is_owed_is_paid_first_from_what_comes_free(h100, renter):
    rental = make_running_rental(renter=renter, gpu=h100, ready_at=at("10:04:30"), gpu_count=8, hours=20)
    wallet = Account.objects.get(pk=rental.wallet_id)
    with transaction.atomic():
        taken = claw_back(organisation_id=renter.pk, currency="USD", amount_micros=wallet.available_micros + 5_000_000)
        losses = ledger.Line(
            Account.objects.create(kind="losses", currency="USD", entries_only=True).pk,
            wallet.available_micros + 5_000_000,
        )
        ledger.post(key="lost", kind="dispute", lines=[*taken.lines, losses], effective_at=NOW)
    end_rental(rental, stop_at=at("11:00:00"))
    settle_rental_now(rental_id=rental.pk, now=at("11:00:00"))
    assert Account.objects.get(kind="receivable").posted_micros == 0


def test_without_tax_no_tax_is_posted(h100):
    finn = make_finn(kind="business", country="US")
    Organisation.objects.filter(pk=finn.pk).update(register_number="12-3456789")
    finn.refresh_from_db()
    decide_for(organisation=finn, now=NOW - 2 * HOUR)
    make_running_rental(renter=finn, gpu=h100, ready_at=at("10:04:30"), gpu_count=4, hours=3, currency="EUR")
    settled("11:05:00")
    line = Settlement.objects.get()
    assert (line.net_micros, line.tax_micros, line.tax_rate_percent) == (9_285_465, 0, Decimal(0))
    assert list(Posting.objects.filter(entry=line.entry).order_by("pk").values_list("account__kind", flat=True)) == [
        "wallet",
        "revenue",
    ]


def test_an_hour_that_was_all_gap_is_a_line_without_entries(h100, renter):
    rental = make_running_rental(
        renter=renter,
        gpu=h100,
        ready_at=at("10:58:30"),
        hours=3,
        beats=[(NOW, at("10:58:20")), (at("11:00:00"), at("15:00:00"))],
    )
    UpSpan.objects.create(started_at=NOW, last_seen_at=at("15:00:00"))
    settled("12:05:00")
    line = Settlement.objects.get(hour=at("10:00:00"))
    assert (line.billed_seconds, line.gap_seconds, line.gross_micros, line.entry_id, line.provider_entry_id) == (
        0,
        90,
        0,
        None,
        None,
    )
    assert Settlement.objects.get(hour=at("11:00:00")).billed_seconds == 3600
    assert remaining(rental) > 0


@pytest.mark.parametrize(("heard_again", "gap_seconds"), [("10:21:00", 0), ("10:21:00.1", 61), ("10:21:01", 61)])
def test_a_gap_is_longer_than_a_minute(h100, renter, heard_again, gap_seconds):
    beats = [(NOW, at("10:20:00")), (at(heard_again), at("15:00:00"))]
    make_running_rental(renter=renter, gpu=h100, ready_at=at("10:04:30"), beats=beats)
    UpSpan.objects.create(started_at=NOW, last_seen_at=at("15:00:00"))
    settled("11:05:00")
    assert Settlement.objects.get().gap_seconds == gap_seconds


def test_a_gap_up_to_the_stop_counts_although_the_last_sweep_was_before_it(h100, renter):
    rental = make_running_rental(
        renter=renter, gpu=h100, ready_at=at("10:04:30"), hours=3, beats=[(NOW, at("10:20:00"))]
    )
    UpSpan.objects.create(started_at=NOW, last_seen_at=at("10:21:40"))
    end_rental(rental, stop_at=at("10:22:00"))
    settle_rental_now(rental_id=rental.pk, now=at("10:22:00"))
    assert Settlement.objects.get().gap_seconds == 120


def moved(renter: Organisation, *, country: str, at_: datetime) -> None:
    Organisation.objects.filter(pk=renter.pk).update(country=country)
    renter.refresh_from_db()
    decide_for(organisation=renter, now=at_)


def test_a_higher_rate_counts_from_the_next_hour_and_takes_no_more_than_was_held(h100):
    renter = make_finn(country="DE")  # 19 %
    rental = make_running_rental(
        renter=renter, gpu=h100, ready_at=at("10:00:00"), gpu_count=4, hours=3, currency="EUR", filled_at=at("09:59:00")
    )
    moved(renter, country="FI", at_=at("10:30:00"))
    settled("12:05:00")
    before, after = Settlement.objects.order_by("hour")
    assert (before.tax_rate_percent, after.tax_rate_percent, after.held_tax_rate_percent) == (
        Decimal(19),
        Decimal("25.5"),
        Decimal(19),
    )
    assert after.gross_micros == before.gross_micros
    assert after.net_micros < before.net_micros
    assert after.payable_micros == before.payable_micros
    assert before.tax_decision_id != after.tax_decision_id
    assert remaining(rental) > 0


def test_of_a_lower_rate_the_difference_is_released(h100):
    renter = make_finn()
    rental = make_running_rental(
        renter=renter, gpu=h100, ready_at=at("10:00:00"), gpu_count=4, hours=2, currency="EUR", filled_at=at("09:59:00")
    )
    moved(renter, country="DE", at_=at("10:30:00"))
    settled("12:05:00")
    line = Settlement.objects.get(hour=at("11:00:00"))
    assert (line.net_micros, line.tax_micros) == (10_038_341, 1_907_285)
    hold = Hold.objects.get(pk=rental.hold_id)
    assert hold.released_micros >= 10_038_341 * 255 // 1000 - 1_907_285


def test_held_hours_of_two_rates_in_one_utc_hour_keep_their_promises(h100):
    renter = make_finn(country="DE")
    rental = make_running_rental(
        renter=renter,
        gpu=h100,
        ready_at=at("15:42:00"),
        price="4.19",
        hours=None,
        currency="EUR",
        filled_at=at("15:40:00"),
    )
    moved(renter, country="FI", at_=at("15:50:00"))
    hold_one_more_hour(rental, fx_rate="0.8695652174", tax_rate_percent="25.5", now=at("16:32:00"))
    settled("17:05:00")
    line = Settlement.objects.get(hour=at("16:00:00"))
    assert (line.held_tax_rate_percent, line.next_held_tax_rate_percent, line.tax_rate_percent) == (
        Decimal(19),
        Decimal("25.5"),
        Decimal("25.5"),
    )
    promised = (
        Decimal("4.19")
        * (2520 * Decimal("0.8713837574") * 119 + 1080 * Decimal("0.8695652174") * Decimal("125.5"))
        / 360_000
    )
    assert abs(line.gross_micros - promised * 1_000_000) <= 1
