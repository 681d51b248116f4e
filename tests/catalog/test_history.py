"""The price history: once an hour from what is live, never changed, thinned after 90 days, gaps left as they are."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import ProtectedError

from catalog import history, tasks
from catalog.history import take_snapshots, thin_snapshots
from catalog.history_queries import tracking, trends, window
from catalog.models import Gpu, Offer, PriceSnapshot, Source
from catalog.queries import price_table
from catalog.refresh import DocumentReport, RefreshReport
from catalog.sources import ALL_SOURCES
from tests.factories import NOW, make_best_ask, make_gpu, make_list_offer, make_offer, make_snapshot, make_source

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
THIS_HOUR = datetime(2026, 11, 30, 14, tzinfo=UTC)
TODAY = datetime(2026, 11, 30, tzinfo=UTC)

pytestmark = pytest.mark.django_db


@pytest.fixture
def gpu() -> Gpu:
    return make_gpu()


@pytest.fixture
def every_source_tried() -> None:
    for source in ALL_SOURCES:
        make_source(name=source.name, last_attempt_at=datetime.now(UTC))


def rows() -> list[tuple]:
    return list(PriceSnapshot.objects.order_by("market", "at").values_list("market", "at", "min", "p75", "offers"))


def hours_left() -> list[datetime]:
    return list(PriceSnapshot.objects.order_by("at").values_list("at", flat=True))


def test_a_snapshot_holds_the_live_statistics_of_each_market_at_the_hour(gpu):
    for cloud, price in (("lambda", "2.10"), ("vast", "2.88"), ("nebius", "4.00"), ("aws", "6.98")):
        make_offer(gpu=gpu, price=price, cloud=cloud)
    make_offer(gpu=gpu, price="1.00", market="spot")
    make_list_offer(gpu=gpu, price="0.90")
    assert take_snapshots(now=NOW) == 2
    on_demand = PriceSnapshot.objects.get(market="on_demand")
    assert on_demand.at == THIS_HOUR
    assert [on_demand.min, on_demand.p25, on_demand.median, on_demand.p75, on_demand.offers] == [
        Decimal("2.10"),
        Decimal("2.685"),
        Decimal("3.44"),
        Decimal("4.745"),
        4,
    ]
    assert PriceSnapshot.objects.filter(market="spot").count() == 1


def test_the_exchange_is_recorded_from_its_best_ask_and_counts_as_one(gpu):
    make_best_ask(gpu=gpu, price="2.88", devices=16)
    take_snapshots(now=NOW)
    assert rows() == [("exchange", THIS_HOUR, Decimal("2.88"), Decimal("2.88"), 1)]


def test_a_best_ask_that_nobody_confirmed_for_half_a_day_is_not_recorded(gpu):
    make_best_ask(gpu=gpu, price="2.88", observed_at=NOW - 12 * HOUR)
    assert take_snapshots(now=NOW) == 0


def test_a_second_run_in_the_hour_changes_nothing_though_prices_moved(gpu):
    offer = make_offer(gpu=gpu, price="2.10")
    take_snapshots(now=THIS_HOUR)
    before = rows()
    offer.price_usd_per_gpu_hour = Decimal("9.00")
    offer.save()
    assert take_snapshots(now=THIS_HOUR + timedelta(minutes=59, seconds=59)) == 0
    assert rows() == before


def test_the_next_hour_begins_on_the_hour_and_has_its_own_row(gpu):
    make_offer(gpu=gpu, price="2.10")
    take_snapshots(now=THIS_HOUR + timedelta(minutes=59, seconds=59))
    take_snapshots(now=THIS_HOUR + HOUR)
    assert hours_left() == [THIS_HOUR, THIS_HOUR + HOUR]


def test_a_market_that_comes_to_life_within_the_hour_still_gets_its_row(gpu):
    make_offer(gpu=gpu, price="2.10")
    take_snapshots(now=NOW)
    make_offer(gpu=gpu, price="1.10", market="spot")
    assert take_snapshots(now=NOW + timedelta(minutes=10)) == 1


def test_a_doubled_run_that_saw_nothing_recorded_yet_changes_nothing(gpu, monkeypatch):
    make_offer(gpu=gpu, price="2.10")

    def prices_read_while_another_worker_records(*, now):
        monkeypatch.undo()
        take_snapshots(now=now)
        Offer.objects.update(price_usd_per_gpu_hour=Decimal("9.00"))
        return price_table(now=now)

    monkeypatch.setattr(history, "price_table", prices_read_while_another_worker_records)
    take_snapshots(now=NOW)
    assert rows() == [("on_demand", THIS_HOUR, Decimal("2.10"), Decimal("2.10"), 1)]


def test_what_was_not_live_leaves_a_gap(gpu):
    make_offer(gpu=gpu, price="2.10", observed_at=NOW)
    for hours in (0, 5, 13, 14):
        take_snapshots(now=NOW + hours * HOUR)
    assert hours_left() == [THIS_HOUR, THIS_HOUR + 5 * HOUR]


def test_snapshots_come_right_after_a_refresh_that_read_something(gpu, monkeypatch, every_source_tried):
    make_offer(gpu=gpu, price="2.10", observed_at=datetime.now(UTC))
    reports = [RefreshReport(source_name="skypilot", documents=[DocumentReport(key="all", error="cut")])]
    monkeypatch.setattr(tasks, "refresh_sources_due_at", lambda **_: reports)
    tasks.refresh_due_sources()
    assert rows() == []
    reports.append(RefreshReport(source_name="azure", documents=[DocumentReport(key="all", rows_read=1)]))
    tasks.refresh_due_sources()
    assert len(rows()) == 1


@pytest.mark.parametrize("last_attempt_at", [None, datetime(2026, 1, 1, tzinfo=UTC)])
def test_the_quickest_source_does_not_speak_for_those_still_being_read(
    gpu, monkeypatch, every_source_tried, last_attempt_at
):
    make_offer(gpu=gpu, price="2.10", observed_at=datetime.now(UTC))
    Source.objects.filter(name="azure").update(last_attempt_at=last_attempt_at)
    report = RefreshReport(source_name="vast", documents=[DocumentReport(key="all", rows_read=1)])
    monkeypatch.setattr(tasks, "refresh_sources_due_at", lambda **_: [report])
    tasks.refresh_due_sources()
    assert rows() == []
    tasks.take_snapshots()
    assert len(rows()) == 1


def test_the_beat_may_come_twice(gpu):
    make_offer(gpu=gpu, price="2.10", observed_at=datetime.now(UTC))
    tasks.take_snapshots()
    tasks.take_snapshots()
    tasks.thin_snapshots()
    assert len(set(hours_left())) == len(hours_left()) > 0


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE catalog_pricesnapshot SET min = 1",
        "DELETE FROM catalog_pricesnapshot",
        "TRUNCATE catalog_pricesnapshot",
    ],
)
def test_the_database_itself_refuses_to_change_a_snapshot(gpu, statement):
    make_snapshot(gpu=gpu, at=THIS_HOUR)
    with pytest.raises(IntegrityError, match="stay as they were taken"), transaction.atomic():
        connection.cursor().execute(f"SET CONSTRAINTS ALL IMMEDIATE; {statement}")
    assert len(rows()) == 1


def test_thinning_opens_no_door_for_the_rest_of_the_transaction(gpu):
    make_snapshot(gpu=gpu, at=THIS_HOUR)
    thin_snapshots(now=NOW)
    with pytest.raises(IntegrityError), transaction.atomic():
        PriceSnapshot.objects.all().delete()


def test_a_gpu_with_history_stays(gpu):
    make_snapshot(gpu=gpu, at=THIS_HOUR)
    with pytest.raises(ProtectedError):
        gpu.delete()


@pytest.mark.parametrize(
    "values",
    [
        {"at": NOW},
        {"at": THIS_HOUR, "offers": 0},
        {"at": THIS_HOUR, "price": "0"},
        {"at": THIS_HOUR, "p25": Decimal("2.00")},
        {"at": THIS_HOUR, "p75": Decimal("2.00")},
    ],
)
def test_a_snapshot_that_cannot_be_is_refused(gpu, values):
    with pytest.raises(IntegrityError), transaction.atomic():
        make_snapshot(gpu=gpu, **values)


def test_one_series_has_one_row_an_hour(gpu):
    make_snapshot(gpu=gpu, at=THIS_HOUR)
    make_snapshot(gpu=gpu, at=THIS_HOUR, market="spot")
    with pytest.raises(IntegrityError), transaction.atomic():
        make_snapshot(gpu=gpu, at=THIS_HOUR)


def test_a_day_is_thinned_to_its_last_snapshot_once_it_ended_90_days_before_today(gpu):
    thinned, kept = TODAY - 91 * DAY, TODAY - 90 * DAY
    for day in (thinned, kept):
        for hour in (0, 7, 21):
            make_snapshot(gpu=gpu, at=day + hour * HOUR, price=hour + 1)
    assert thin_snapshots(now=TODAY - timedelta(seconds=1)) == 0
    assert thin_snapshots(now=TODAY) == 2
    assert hours_left() == [thinned + 21 * HOUR, *(kept + hour * HOUR for hour in (0, 7, 21))]
    assert PriceSnapshot.objects.order_by("at")[0].min == 22
    assert thin_snapshots(now=TODAY) == 0


def test_series_are_thinned_each_on_its_own(gpu):
    day, other = TODAY - 200 * DAY, make_gpu(slug="l4")
    make_snapshot(gpu=gpu, at=day + HOUR)
    make_snapshot(gpu=gpu, at=day + 2 * HOUR, market="spot")
    make_snapshot(gpu=other, at=day + 3 * HOUR)
    assert thin_snapshots(now=NOW) == 0


def trend_of(gpu: Gpu, *, price: str | None = "2.88"):
    key = (gpu.slug, "on_demand")
    return trends(now=NOW, prices={key: Decimal(price) if price else None}).get(key)


def test_changes_compare_the_price_now_with_the_snapshot_of_that_very_hour(gpu):
    for age, price in ((0, "2.80"), (7, "2.40"), (30, "3.20")):
        make_snapshot(gpu=gpu, at=THIS_HOUR - age * DAY, price=price)
    make_snapshot(gpu=gpu, at=THIS_HOUR - 7 * DAY + HOUR, price="99")
    trend = trend_of(gpu)
    assert (trend.week.percent, trend.week.direction) == (Decimal("20.0"), "up")
    assert (trend.month.percent, trend.month.size, trend.month.direction) == (Decimal("-10.0"), Decimal("10.0"), "down")


def test_a_snapshot_up_to_a_day_older_still_answers_for_a_week_ago_and_not_longer(gpu):
    make_snapshot(gpu=gpu, at=THIS_HOUR - DAY)
    make_snapshot(gpu=gpu, at=THIS_HOUR - 7 * DAY - 23 * HOUR)
    assert trend_of(gpu).week.direction == "flat"
    other = make_gpu(slug="l4")
    make_snapshot(gpu=other, at=THIS_HOUR - DAY)
    make_snapshot(gpu=other, at=THIS_HOUR - 7 * DAY - 24 * HOUR)
    assert trend_of(other).week is None


def test_without_a_live_price_there_is_no_change(gpu):
    make_snapshot(gpu=gpu, at=THIS_HOUR - 7 * DAY)
    assert trend_of(gpu, price=None).week is None


def test_a_sparkline_needs_two_snapshots(gpu):
    assert trend_of(gpu) is None
    make_snapshot(gpu=gpu, at=THIS_HOUR - 2 * HOUR)
    assert trend_of(gpu).spark is None
    assert trend_of(gpu).since == THIS_HOUR - 2 * HOUR
    make_snapshot(gpu=gpu, at=THIS_HOUR)
    assert trend_of(gpu).spark.path
    assert trend_of(gpu).since == THIS_HOUR - 2 * HOUR


def test_a_day_without_a_snapshot_is_a_gap_in_the_sparkline(gpu):
    for age in (0, 1, 2, 9, 10):
        make_snapshot(gpu=gpu, at=THIS_HOUR - age * DAY)
    assert trend_of(gpu).spark.path.count("M") == 2


def test_trends_of_many_series_take_one_query(gpu, django_assert_num_queries):
    for slug in ("a", "b", "c"):
        for age in range(3):
            make_snapshot(gpu=Gpu.objects.filter(slug=slug).first() or make_gpu(slug=slug), at=THIS_HOUR - age * DAY)
    with django_assert_num_queries(1):
        found = trends(now=NOW, prices={(slug, "on_demand"): Decimal(3) for slug in ("a", "b", "c", "none")})
    assert {slug for slug, _ in found} == {"a", "b", "c"}


def test_coverage_counts_the_hours_since_tracking_began(gpu):
    for age in (0, 1, 5, 9):
        make_snapshot(gpu=gpu, at=THIS_HOUR - age * HOUR)
    found = tracking(gpu=gpu, now=NOW)["on_demand"]
    assert (found.since, found.until) == (THIS_HOUR - 9 * HOUR, THIS_HOUR)
    assert (found.hours, found.expected_hours, found.coverage_percent) == (4, 10, 40)


def test_the_hour_at_hand_is_not_missed_before_its_snapshot_is_taken(gpu):
    make_snapshot(gpu=gpu, at=THIS_HOUR - HOUR)
    assert tracking(gpu=gpu, now=NOW)["on_demand"].coverage_percent == 100
    assert tracking(gpu=gpu, now=NOW + HOUR)["on_demand"].coverage_percent == 50


def test_thinned_days_do_not_count_against_coverage(gpu):
    make_snapshot(gpu=gpu, at=TODAY - 300 * DAY)
    for hours in range(90 * 24 + 15):
        make_snapshot(gpu=gpu, at=THIS_HOUR - hours * HOUR)
    found = tracking(gpu=gpu, now=NOW)["on_demand"]
    assert (found.since, found.coverage_percent) == (TODAY - 300 * DAY, 100)


def test_a_short_window_is_read_by_the_hour_and_lists_every_day(gpu):
    for age in (0, 1, 50):
        make_snapshot(gpu=gpu, at=THIS_HOUR - age * HOUR)
    make_snapshot(gpu=gpu, at=THIS_HOUR - 8 * DAY)
    found = window(gpu=gpu, market="on_demand", days=7, now=NOW)
    assert found.is_by_hour
    assert [point.at for point in found.points] == [THIS_HOUR - age * HOUR for age in (50, 1, 0)]
    assert [(on.day, point and point.at.hour) for on, point in found.by_day] == [(30, 14), (29, None), (28, 12)]


def test_a_long_window_is_read_by_the_utc_day(gpu):
    for day in (0, 1, 3):
        for hour in (2, 13):
            make_snapshot(gpu=gpu, at=TODAY - day * DAY + hour * HOUR)
    found = window(gpu=gpu, market="on_demand", days=365, now=NOW)
    assert not found.is_by_hour
    assert [point.at for point in found.points] == [TODAY - day * DAY + 13 * HOUR for day in (3, 1, 0)]
    assert [point.stands_from for point in found.points] == [TODAY - day * DAY for day in (3, 1, 0)]
    assert [point is None for _, point in found.by_day] == [False, False, True, False]
