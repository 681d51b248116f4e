"""Thirty days of a source: every refresh counts on its UTC day, and a day without one is no success."""

from datetime import UTC, datetime, timedelta

import pytest

from catalog.models import Source, SourceDay
from catalog.source_days import DAYS, count_refresh, last_days
from tests.factories import make_source

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def states(source: Source) -> list[str]:
    return [day.state for day in last_days(now=NOW)[source.pk]]


def test_a_day_is_as_good_as_all_its_readings():
    source = make_source()
    for days_ago, outcomes in ((0, ["whole", "whole"]), (1, ["whole", "failed"]), (2, ["failed"]), (3, ["partly"])):
        for outcome in outcomes:
            count_refresh(source=source, state=outcome, now=NOW - timedelta(days=days_ago))
    assert states(source)[-5:] == ["none", "partly", "failed", "partly", "whole"]
    assert len(states(source)) == DAYS


def test_midnight_utc_parts_the_days():
    source = make_source()
    for moment in (datetime(2026, 11, 29, 23, 59, 59, tzinfo=UTC), datetime(2026, 11, 30, tzinfo=UTC)):
        count_refresh(source=source, state="whole", now=moment)
    assert SourceDay.objects.count() == 2


def test_what_is_older_than_thirty_days_is_not_shown():
    source = make_source()
    count_refresh(source=source, state="whole", now=NOW - timedelta(days=DAYS))
    assert last_days(now=NOW) == {}


def test_the_page_says_how_many_days_were_read_whole(client):
    count_refresh(source=make_source(), state="whole", now=datetime.now(UTC))
    assert "Read whole on 1 of the last 30 days" in client.get("/sources/").content.decode()
