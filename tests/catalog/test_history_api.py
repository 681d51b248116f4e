"""`prices/<slug>/history/`: what was recorded, oldest first, in pages or as CSV, with strict parameters."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from catalog.history_queries import hour_of
from tests.factories import make_gpu, make_snapshot

HISTORY = "/api/v1/prices/h100-sxm/history/"
HOUR, DAY = timedelta(hours=1), timedelta(days=1)

pytestmark = pytest.mark.django_db


@pytest.fixture
def gpu():
    return make_gpu()


@pytest.fixture
def this_hour() -> datetime:
    return hour_of(datetime.now(UTC))


def get(query: str = ""):
    response = Client().get(HISTORY + query)
    assert response.status_code == 200, response.content
    return json.loads(response.content)


def test_a_snapshot_has_its_hour_and_its_prices_as_text(gpu, this_hour):
    make_snapshot(gpu=gpu, at=this_hour, min="2", p25="2.685", median="3.44", p75="4.745", offers=4)
    assert get() == {
        "next": None,
        "previous": None,
        "results": [
            {
                "at": f"{this_hour:%Y-%m-%dT%H:%M:%SZ}",
                "min": "2.00",
                "p25": "2.685",
                "median": "3.44",
                "p75": "4.745",
                "offers": 4,
            }
        ],
    }


def test_thirty_days_of_on_demand_come_unless_told_otherwise_oldest_first(gpu, this_hour):
    for age, market in ((31, "on_demand"), (29, "on_demand"), (0, "on_demand"), (1, "spot")):
        make_snapshot(gpu=gpu, at=this_hour - age * DAY, market=market, price=age + 1)
    assert [row["min"] for row in get()["results"]] == ["30.00", "1.00"]
    assert [row["min"] for row in get("?days=3650")["results"]] == ["32.00", "30.00", "1.00"]
    assert [row["min"] for row in get("?market=spot")["results"]] == ["2.00"]
    assert get("?market=exchange")["results"] == get("?market=reserved")["results"] == []


def test_a_gap_has_no_row(gpu, this_hour):
    for age in (0, 5):
        make_snapshot(gpu=gpu, at=this_hour - age * HOUR)
    assert len(get()["results"]) == 2


def test_long_histories_come_in_pages(gpu, this_hour):
    for age in range(5):
        make_snapshot(gpu=gpu, at=this_hour - age * HOUR, price=age + 1)
    first = get("?limit=2")
    assert [row["min"] for row in first["results"]] == ["5.00", "4.00"]
    second = json.loads(Client().get(first["next"]).content)
    assert [row["min"] for row in second["results"]] == ["3.00", "2.00"]


@pytest.mark.parametrize("ask", [{"query_params": {"format": "csv"}}, {"headers": {"accept": "text/csv"}}])
def test_csv_holds_the_whole_window_in_one_stream(gpu, this_hour, ask):
    make_snapshot(gpu=gpu, at=this_hour, price="2.88", offers=3)
    response = Client().get(HISTORY, **ask)
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert response["Content-Disposition"] == 'attachment; filename="h100-sxm-on_demand.csv"'
    at = f"{this_hour:%Y-%m-%dT%H:%M:%SZ}"
    assert response.getvalue().decode().splitlines() == [
        "at,min,p25,median,p75,offers",
        f"{at},2.88,2.88,2.88,2.88,3",
    ]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("?days=0", "days"),
        ("?days=3651", "days"),
        ("?days=7.0", "days"),
        ("?days=week", "days"),
        ("?days=7&days=8", "days"),
        ("?market=list", "market"),
        ("?market=spot,reserved", "market"),
        ("?format=xml", "format"),
        ("?since=2026-11-01", "since"),
    ],
)
def test_bad_parameters_are_refused_by_name(gpu, query, field):
    response = Client().get(HISTORY + query)
    assert (response.status_code, response["Content-Type"]) == (400, "application/problem+json")
    assert [error["field"] for error in json.loads(response.content)["errors"]] == [field]


def test_an_unknown_gpu_is_a_404_document():
    response = Client().get("/api/v1/prices/h9000/history/")
    assert (response.status_code, response["Content-Type"]) == (404, "application/problem+json")


@pytest.mark.usefixtures("standing_clock")
def test_whoever_has_the_history_gets_304_until_the_next_snapshot(gpu, this_hour):
    make_snapshot(gpu=gpu, at=this_hour - HOUR)
    etag = Client().get(HISTORY)["ETag"]
    assert Client().get(HISTORY, headers={"if-none-match": etag}).status_code == 304
    make_snapshot(gpu=gpu, at=this_hour)
    assert Client().get(HISTORY, headers={"if-none-match": etag}).status_code == 200
