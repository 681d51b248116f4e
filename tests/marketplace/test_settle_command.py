"""`manage.py settle`: what the task does, asked for by hand, with JSON for programs."""

import json
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from config.schedule import SCHEDULE
from marketplace.models import Settlement, UpSpan
from marketplace.tasks import settle_rentals
from tests.billing.conftest import wallet_of
from tests.factories import make_organisation
from tests.marketplace.conftest import make_running_rental

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def settle(*arguments: str) -> dict[str, object]:
    out = StringIO()
    call_command("settle", *arguments, stdout=out)
    return json.loads(out.getvalue())


@pytest.fixture
def hours_ago(h100):
    """A rental that runs for three and a half hours already, by the clock on the wall."""
    now = datetime.now(UTC).replace(minute=30, second=0, microsecond=0) - HOUR
    renter = make_organisation(name="orla")
    wallet_of("orla", currency="USD", units=1000)
    make_running_rental(
        renter=renter, gpu=h100, ready_at=now - 3 * HOUR, hours=200, filled_at=now - 3 * HOUR - timedelta(minutes=1)
    )
    return now


def test_it_settles_what_is_due_and_a_second_run_finds_nothing(hours_ago):
    first = settle()
    assert first["hours"] in (3, 4), "the last hour is due five minutes past"
    assert Settlement.objects.count() == first["hours"]
    again = settle()
    assert (again["hours"], again["chunks"], again["above_hold"]) == (0, 0, 0)


def test_it_settles_up_to_a_time(hours_ago):
    until = hours_ago.replace(minute=5) - 2 * HOUR
    assert settle("--until", until.isoformat()) == {
        "until": until.isoformat(),
        "hours": 1,
        "chunks": 1,
        "above_hold": 0,
    }
    assert settle("--until", (until - timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%SZ"))["hours"] == 0


def test_a_time_without_a_zone_is_utc(hours_ago):
    until = hours_ago.replace(minute=5) - 2 * HOUR
    assert settle("--until", until.strftime("%Y-%m-%dT%H:%M"))["hours"] == 1


@pytest.mark.parametrize("text", ["soon", "2026-13-01", "2026-11-30T25:00Z"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(CommandError, match="is not a time like"):
        settle("--until", text)


def test_a_time_to_come_is_refused_and_nothing_is_settled(hours_ago):
    ahead = datetime.now(UTC) + timedelta(minutes=10)
    with pytest.raises(CommandError, match="still to come"):
        settle("--until", ahead.isoformat())
    assert not Settlement.objects.exists()


def test_the_sweep_runs_before_it(hours_ago):
    settle()
    assert UpSpan.objects.count() == 1


def test_beat_asks_for_it_every_minute(hours_ago):
    line = next(line for line in SCHEDULE.values() if line["task"] == settle_rentals.name)
    assert line["schedule"] == timedelta(minutes=1)
    settle_rentals()
    assert Settlement.objects.count() in (3, 4)
