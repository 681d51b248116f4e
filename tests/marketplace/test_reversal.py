"""An interruption: the hour of the last beat costs nothing, the line before it is given back, and never more than that."""

from datetime import datetime

import pytest
from django.db import transaction

from billing import ledger
from billing.models import Account, Hold, JournalEntry, Posting
from billing.receivables import claw_back
from marketplace.models import Rental, Settlement
from marketplace.settlement.due import settle_due
from marketplace.settlement.reverse import NotInterrupted, reverse_last_lines
from marketplace.settlement.settle import settle_rental_now
from tests.marketplace.conftest import end_rental, make_running_rental

pytestmark = pytest.mark.django_db


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-30T{text}Z")


@pytest.fixture
def rental(h100, renter) -> Rental:
    """Four devices from 10:04:30 on, for six hours."""
    return make_running_rental(renter=renter, gpu=h100, ready_at=at("10:04:30"), gpu_count=4, hours=6)


def interrupted(rental: Rental, *, last_beat: str, now: str) -> int:
    end_rental(rental, stop_at=at(now), state="interrupted")
    return reverse_last_lines(rental_id=rental.pk, last_beat_at=at(last_beat), now=at(now))


def lines() -> list[tuple[int, bool]]:
    return [(line.hour.hour, line.reversed_at is not None) for line in Settlement.objects.order_by("hour")]


def wallet(rental: Rental) -> tuple[int, int]:
    account = Account.objects.get(pk=rental.wallet_id)
    return account.posted_micros, account.held_micros


def charged() -> int:
    return sum(line.gross_micros for line in Settlement.objects.filter(reversed_at__isnull=True))


def test_the_hour_of_the_last_beat_is_not_billed_and_the_line_before_it_is_reversed(rental):
    before = wallet(rental)[0]
    settle_due(until=at("12:05:00"), now=at("12:05:00"))
    assert interrupted(rental, last_beat="12:20:00", now="12:25:10") == 1
    assert lines() == [(10, False), (11, True)]
    assert wallet(rental) == (before - charged(), 0)
    assert charged() == Settlement.objects.get(hour=at("10:00:00")).gross_micros


def test_an_hour_that_was_settled_already_is_reversed_with_the_one_before(rental):
    """The last beat came a minute before the hour was over, and the silence was judged after it was settled."""
    settle_due(until=at("13:05:00"), now=at("13:05:00"))
    assert interrupted(rental, last_beat="12:59:00", now="13:06:00") == 2
    assert lines() == [(10, False), (11, True), (12, True)]


def test_without_a_line_before_nothing_more_is_given_back(rental):
    before = wallet(rental)[0]
    assert interrupted(rental, last_beat="10:40:00", now="10:46:00") == 0
    assert lines() == []
    assert wallet(rental) == (before, 0)
    assert Rental.objects.get().fully_settled_at == at("10:46:00")


def test_it_comes_to_the_same_when_the_hours_were_not_settled_yet(rental):
    before = wallet(rental)[0]
    assert interrupted(rental, last_beat="12:20:00", now="12:25:10") == 1
    assert lines() == [(10, False), (11, True)]
    assert wallet(rental) == (before - charged(), 0)


def test_both_sides_are_reversed_by_entries_that_mirror_them(rental):
    settle_due(until=at("12:05:00"), now=at("12:05:00"))
    interrupted(rental, last_beat="12:20:00", now="12:25:10")
    line = Settlement.objects.get(hour=at("11:00:00"))
    for entry_id, reversal_id, kind in (
        (line.entry_id, line.reversal_entry_id, "rental_hour:reversal"),
        (line.provider_entry_id, line.provider_reversal_entry_id, "provider_hour:reversal"),
    ):
        reversal = JournalEntry.objects.get(pk=reversal_id)
        assert (reversal.kind, reversal.reverses_id, reversal.effective_at) == (kind, entry_id, at("12:25:10"))
        mirrored = {(account, -micros) for account, micros in amounts(reversal_id)}
        assert mirrored == set(amounts(entry_id))
    payable = Account.objects.get(kind="payable")
    assert payable.posted_micros == Settlement.objects.get(hour=at("10:00:00")).payable_micros


def amounts(entry_id: int | None) -> list[tuple[int, int]]:
    return list(Posting.objects.filter(entry=entry_id).values_list("account_id", "amount_micros"))


def test_what_was_captured_stays_captured_and_the_money_goes_to_the_wallet(rental):
    settle_due(until=at("12:05:00"), now=at("12:05:00"))
    interrupted(rental, last_beat="12:20:00", now="12:25:10")
    hold = Hold.objects.get(pk=rental.hold_id)
    assert (hold.captured_micros, hold.remaining_micros) == (
        sum(Settlement.objects.values_list("gross_micros", flat=True)),
        0,
    )


def test_a_second_run_reverses_nothing_more_whatever_beat_it_tells(rental):
    settle_due(until=at("13:05:00"), now=at("13:05:00"))
    assert interrupted(rental, last_beat="13:20:00", now="13:25:10") == 1
    before = lines(), wallet(rental)
    assert reverse_last_lines(rental_id=rental.pk, last_beat_at=at("12:20:00"), now=at("13:30:00")) == 0
    assert settle_rental_now(rental_id=rental.pk, now=at("13:30:00")) == 0
    assert settle_due(until=at("16:00:00"), now=at("16:00:00"))["hours"] == 0
    assert (lines(), wallet(rental)) == before


@pytest.mark.parametrize(
    "last_beat", ["10:05:00", "10:59:59", "11:00:00", "11:30:00", "12:00:00", "12:59:00", "13:02:00"]
)
def test_a_renter_never_gets_back_more_than_was_charged(rental, last_beat):
    before = wallet(rental)[0]
    settle_due(until=at("13:05:00"), now=at("13:05:00"))
    interrupted(rental, last_beat=last_beat, now="13:08:00")
    assert wallet(rental) == (before - charged(), 0)
    assert charged() >= 0
    hour = at(last_beat).hour
    assert [hour for hour, is_reversed in lines() if not is_reversed] == list(range(10, hour - 1))


def test_what_comes_back_pays_what_is_owed_first(rental, renter):
    settle_due(until=at("12:05:00"), now=at("12:05:00"))
    with transaction.atomic():
        amount = Account.objects.get(pk=rental.wallet_id).available_micros + 1_000_000
        taken = claw_back(organisation_id=renter.pk, currency="USD", amount_micros=amount)
        losses = Account.objects.create(kind="losses", currency="USD", entries_only=True)
        ledger.post(
            key="lost",
            kind="dispute",
            lines=[*taken.lines, ledger.Line(losses.pk, amount)],
            effective_at=at("12:10:00"),
        )
    interrupted(rental, last_beat="12:20:00", now="12:25:10")
    assert Account.objects.get(kind="receivable").posted_micros == 0


def test_only_an_interrupted_rental_is_reversed(rental):
    settle_due(until=at("12:05:00"), now=at("12:05:00"))
    with pytest.raises(NotInterrupted):
        reverse_last_lines(rental_id=rental.pk, last_beat_at=at("12:20:00"), now=at("12:25:10"))
    assert lines() == [(10, False), (11, False)]
