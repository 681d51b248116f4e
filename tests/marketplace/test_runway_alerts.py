"""Money that runs out is told in time: at 24 hours, 3 hours and 30 minutes, once for each crossing."""

from datetime import datetime, timedelta

import pytest
from django.core import mail
from hypothesis import given
from hypothesis import strategies as st

from billing.models import Account
from marketplace.models import Rental, RunwayAlert
from marketplace.queries.rentals import open_alerts
from marketplace.rentals.alerts import tell_runway
from marketplace.rentals.runway import LEVELS_SECONDS, Hourly, changes, money_lasts_until
from marketplace.rentals.stop import request_stop
from tests.billing.conftest import paid_top_up
from tests.factories import make_member
from tests.marketplace.conftest import NOW, make_renter
from tests.marketplace.rental_clock import pass_time, rent, run
from users.models import Role

READY = NOW + timedelta(minutes=2, seconds=30)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
DAY, THREE_HOURS, HALF_AN_HOUR = LEVELS_SECONDS
AN_HOUR_COSTS = 3_484_804


def hours_of_money(hours: int) -> int:
    return hours * AN_HOUR_COSTS


@pytest.fixture
def running(h100):
    """Return a function that gives somebody so many hours of money besides the one that runs, and the rental."""

    def start(*, hours: int) -> Rental:
        renter = make_renter(name="Orla Labs B.V.", units=0)
        account = Account.objects.get(owner=renter, kind="wallet")
        paid_top_up(account, micros=hours_of_money(hours + 1))
        for role, address in ((Role.OWNER, "owner"), (Role.BILLING, "billing"), (Role.TRADER, "trader")):
            make_member(organisation=renter, role=role, email=f"{address}@example.com")
        return run(rent(h100, renter, hours=None), ready_at=READY)

    return start


def told(capture, *, at: datetime) -> list[str]:
    """Judge the runways at this time; return the subjects of the mails to the owner."""
    mail.outbox.clear()
    with capture(execute=True):
        tell_runway(now=at)
    return [message.subject for message in mail.outbox if message.to == ["owner@example.com"]]


def open_levels() -> list[int]:
    found = RunwayAlert.objects.filter(cleared_at=None).order_by("level_seconds")
    return list(found.values_list("level_seconds", flat=True))


@pytest.mark.django_db
def test_each_level_is_told_once(running):
    rental = running(hours=30)
    ends_at = rental.paid_until + 30 * HOUR
    pass_time(since=READY, until=ends_at, step=5 * MINUTE)
    heard = list(RunwayAlert.objects.order_by("raised_at").values_list("level_seconds", "raised_at"))
    assert [level for level, _ in heard] == [DAY, THREE_HOURS, HALF_AN_HOUR]
    for level, raised_at in heard:
        assert timedelta(0) < timedelta(seconds=level) - (ends_at - raised_at) <= 5 * MINUTE
    assert set(RunwayAlert.objects.values_list("lasts_until", flat=True)) == {ends_at}
    rental.refresh_from_db()
    assert (rental.state, rental.end_reason, rental.paid_until) == ("ending", "no_money", ends_at)


@pytest.mark.django_db
def test_owners_and_billing_members_get_a_mail_and_the_page_an_alert(running, django_capture_on_commit_callbacks):
    rental = running(hours=2)
    ends_at = rental.paid_until + 2 * HOUR
    subjects = told(django_capture_on_commit_callbacks, at=ends_at - 2 * HOUR)
    assert [message.to for message in mail.outbox] == [["owner@example.com"], ["billing@example.com"]]
    assert subjects == ["The money for your rentals lasts until 30 Nov 2026, 13:04 UTC"]
    text = mail.outbox[0].body
    assert "less than 3 hours" in text
    assert "Orla Labs B.V." in text
    assert "top up the USD wallet" in text
    assert [alert.level_seconds for alert in open_alerts(rental.organisation)] == [THREE_HOURS]
    assert told(django_capture_on_commit_callbacks, at=ends_at - 2 * HOUR + MINUTE) == []


@pytest.mark.django_db
def test_a_runway_that_falls_through_several_levels_is_told_of_the_lowest(running, django_capture_on_commit_callbacks):
    rental = running(hours=0)
    assert len(told(django_capture_on_commit_callbacks, at=rental.paid_until - 20 * MINUTE)) == 1
    assert "less than 30 minutes" in mail.outbox[0].body
    assert open_levels() == [HALF_AN_HOUR, THREE_HOURS, DAY]


@pytest.mark.django_db
def test_what_hovers_around_a_level_is_told_once(running, django_capture_on_commit_callbacks):
    rental = running(hours=22)
    wallet = Account.objects.get(pk=rental.wallet_id)
    assert len(told(django_capture_on_commit_callbacks, at=READY)) == 1
    for _ in range(4):  # up to 27 hours, an hour at a time
        paid_top_up(wallet, micros=AN_HOUR_COSTS)
        assert told(django_capture_on_commit_callbacks, at=READY) == []
    assert open_levels() == [DAY]


@pytest.mark.django_db
def test_after_a_clear_recovery_the_next_crossing_is_told_again(running, django_capture_on_commit_callbacks):
    rental = running(hours=22)
    wallet = Account.objects.get(pk=rental.wallet_id)
    assert len(told(django_capture_on_commit_callbacks, at=READY)) == 1
    paid_top_up(wallet, micros=hours_of_money(8))
    assert told(django_capture_on_commit_callbacks, at=READY) == []
    assert open_levels() == []
    later = READY + 8 * HOUR
    pass_time(since=READY, until=later, step=5 * MINUTE)
    assert RunwayAlert.objects.filter(level_seconds=DAY).count() == 2


@pytest.mark.django_db
def test_a_stop_clears_what_was_open(running, django_capture_on_commit_callbacks):
    rental = running(hours=2)
    told(django_capture_on_commit_callbacks, at=READY)
    assert open_levels() != []
    request_stop(organisation_id=rental.organisation_id, rental_id=rental.pk, now=READY + MINUTE)
    assert told(django_capture_on_commit_callbacks, at=READY + MINUTE) == []
    assert open_levels() == []
    assert open_alerts(rental.organisation) == []


@pytest.mark.django_db
def test_a_lot_is_paid_and_nobody_is_told_anything(h100, django_capture_on_commit_callbacks):
    renter = make_renter(name="Lot B.V.", units=4)
    make_member(organisation=renter, email="owner@example.com")
    run(rent(h100, renter, hours=1), ready_at=READY)
    assert told(django_capture_on_commit_callbacks, at=READY + MINUTE) == []
    assert not RunwayAlert.objects.exists()


@pytest.mark.django_db
def test_judging_all_wallets_takes_the_same_queries_for_one_as_for_many(h100, running, django_assert_max_num_queries):
    running(hours=100)
    for number in range(5):
        run(rent(h100, make_renter(name=f"Renter {number} B.V.", units=9), hours=None), ready_at=READY)
    tell_runway(now=READY)
    with django_assert_max_num_queries(4):
        tell_runway(now=READY)


# the rules alone

moments = st.integers(0, 59).map(lambda minutes: NOW + timedelta(minutes=minutes))
rentals = st.lists(st.builds(Hourly, paid_until=moments, hour_micros=st.integers(1, 50)), min_size=1, max_size=4)


@given(st.integers(0, 500), rentals)
def test_the_money_pays_every_hour_before_and_not_the_next(available, running):
    """Hour by hour, by hand: the first hour that cannot be held is where it says."""
    within = NOW + 100 * HOUR
    due = [(one.paid_until + number * HOUR, one.hour_micros) for one in running for number in range(100)]
    lasts_until = money_lasts_until(available, running, within=within) or within
    assert sum(micros for at, micros in due if at < lasts_until) <= available
    if lasts_until < within:
        assert sum(micros for at, micros in due if at <= lasts_until) > available


@given(st.integers(0, 500), st.integers(0, 100), rentals)
def test_more_money_never_lasts_shorter(available, more, running):
    within = NOW + 100 * HOUR
    first = money_lasts_until(available, running, within=within) or within
    second = money_lasts_until(available + more, running, within=within) or within
    assert second >= first


def test_what_ends_by_itself_needs_no_money():
    lease = Hourly(paid_until=NOW + HOUR, hour_micros=5, lease_until=NOW + HOUR)
    assert money_lasts_until(0, [lease], within=NOW + 9 * HOUR) is None


@given(st.integers(0, 200_000), st.frozensets(st.sampled_from(LEVELS_SECONDS)))
def test_an_alert_is_raised_under_its_level_and_cleared_well_above(seconds, present):
    change = changes(timedelta(seconds=seconds), present)
    assert not change.raised & present
    assert change.cleared <= present
    assert all(seconds < level for level in change.raised)
    assert all(seconds >= level * 1.25 for level in change.cleared)
    after = (present | change.raised) - change.cleared
    assert all(level in after for level in LEVELS_SECONDS if seconds < level)
    again = changes(timedelta(seconds=seconds), after)
    assert not again.raised
    assert not again.cleared
