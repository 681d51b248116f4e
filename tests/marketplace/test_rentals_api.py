"""`rentals/`: what API.md promises of each, the proof of every hour to the micro, and a stop that is a stop."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from http import HTTPStatus

import pytest

from catalog.models import Gpu
from marketplace.models import BeatSpan, Rental
from marketplace.rentals.interrupt import interrupt
from marketplace.settlement.due import settle_due
from marketplace.sweep import sweep
from tests.marketplace.conftest import NOW, make_renter
from tests.marketplace.proven_rentals import READY, finnish_renter, stopped_lot
from tests.marketplace.rental_clock import ACCESS, beats_all_along, pass_time, rent, run, up_all_along
from users.api_keys import issue_key
from users.models import Organisation

pytestmark = pytest.mark.django_db
URL = "/api/v1/rentals/"
HOUR = timedelta(hours=1)
PROMISED = {
    "id",
    "state",
    "gpu",
    "gpu_count",
    "price_usd_per_gpu_hour",
    "filled_at",
    "ready_at",
    "ends_at",
    "paid_until",
    "access",
    "charged",
    "currency",
    "events",
    "hours",
}


def header(organisation: Organisation, *scopes: str) -> dict[str, str]:
    issued = issue_key(
        organisation=organisation, name="t", scopes=scopes or ("read",), created_by=None, expires_at=None, now=NOW
    )
    return {"Authorization": f"Bearer {issued.secret}"}


def get(client, organisation: Organisation, path: str = "") -> dict:
    answer = client.get(f"{URL}{path}", headers=header(organisation))
    assert answer.status_code == HTTPStatus.OK, answer.content
    return answer.json()


def post_stop(client, organisation: Organisation, rental: Rental, *scopes: str):
    return client.post(f"{URL}{rental.pk}/stop/", headers=header(organisation, *(scopes or ("trade",))))


@pytest.fixture
def finn(db) -> Organisation:
    return finnish_renter()


@pytest.fixture
def lot(h100: Gpu, finn: Organisation) -> Rental:
    return stopped_lot(h100, finn)


def test_a_settled_hour_says_what_its_sum_is_made_of(client, finn, lot):
    found = get(client, finn, f"{lot.pk}/")
    assert (found["state"], found["end_reason"], found["charged"], found["held"]) == (
        "ended",
        "stopped",
        "30.130498",
        "0.000000",
    )
    assert [(hour["billed_seconds"], hour["net"], hour["tax"], hour["gross"]) for hour in found["hours"]] == [
        (3330, "9.285465", "2.367794", "11.653259"),
        (3480, "9.703730", "2.474451", "12.178181"),
        (1800, "5.019170", "1.279888", "6.299058"),
    ]
    second = found["hours"][1]
    assert second["starts_at"] == "2026-11-30T11:00:00Z"
    assert second["gap_seconds"] == 120
    assert second["parts"] == [{"seconds": 3480, "fx_rate": "0.8713837574", "held_tax_rate_percent": "25.50"}]
    assert second["tax_decision"] == {
        "treatment": "consumer_state",
        "country": "FI",
        "rate_percent": "25.50",
        "is_gross_kept": False,
    }
    assert [(part["kind"], part["starts_at"], part["seconds"]) for part in second["stretches"]] == [
        ("heard", "2026-11-30T11:00:00Z", 1210),
        ("silent", "2026-11-30T11:20:10Z", 120),
        ("heard", "2026-11-30T11:22:10Z", 2270),
    ]
    assert second["is_recomputed_equal"]
    assert second["price_net"] == second["net"]


def test_the_sums_can_be_done_again_from_the_answer_alone(client, finn, lot):
    found = get(client, finn, f"{lot.pk}/")
    for hour in found["hours"]:
        seconds = sum(part["seconds"] for part in hour["parts"])
        assert (
            seconds
            == hour["billed_seconds"]
            == sum(part["seconds"] for part in hour["stretches"] if part["kind"] in ("heard", "unseen"))
        )
        net = (
            found["gpu_count"]
            * Decimal(found["price_usd_per_gpu_hour"])
            * sum(part["seconds"] * Decimal(part["fx_rate"]) for part in hour["parts"])
            / 3600
        )
        assert round(net, 6) == Decimal(hour["net"])
        assert round(Decimal(hour["net"]) * Decimal(hour["tax_decision"]["rate_percent"]) / 100, 6) == Decimal(
            hour["tax"]
        )
    assert sum(Decimal(hour["gross"]) for hour in found["hours"]) == Decimal(found["charged"])


def test_probe_beats_gaps_and_our_own_up_time_are_told(client, finn, lot):
    found = get(client, finn, f"{lot.pk}/")
    assert found["ready_at"] == "2026-11-30T10:04:30Z"
    assert found["gaps"] == [{"starts_at": "2026-11-30T11:20:10Z", "ends_at": "2026-11-30T11:22:10Z"}]
    assert [span["ends_at"] for span in found["beats"]] == ["2026-11-30T11:20:10Z", "2026-11-30T13:30:00Z"]
    assert len(found["platform_up"]) == 1
    assert [(held["first_hour"], held["hours"], held["held"], held["fx_date"]) for held in found["held_hours"]] == [
        (0, 3, "37.794362", "2026-11-30")
    ]
    assert [event["kind"] for event in found["events"]] == ["pending", "provisioning", "running", "ending", "ended"]


def test_a_list_has_what_was_promised_of_each_newest_first(client, h100, renter):
    first = rent(h100, renter, now=NOW)
    second = rent(h100, renter, now=NOW + timedelta(minutes=1))
    found = get(client, renter)
    assert [row["id"] for row in found["results"]] == [str(second.pk), str(first.pk)]
    assert all(row.keys() >= PROMISED for row in found["results"])
    assert (found["next"], found["previous"]) == (None, None)
    assert found["results"][0]["ready_at"] is None
    assert found["results"][0]["access"] is None
    assert found["results"][0]["ends_at"] == "2026-11-30T11:13:00Z"  # ten minutes to start, and an hour


def test_a_list_is_paged_and_narrowed_by_state(client, h100, renter):
    rentals = [rent(h100, renter, now=NOW + timedelta(seconds=number)) for number in range(3)]
    run(rentals[0], ready_at=READY)
    page = get(client, renter, "?limit=2")
    assert [row["id"] for row in page["results"]] == [str(rentals[2].pk), str(rentals[1].pk)]
    rest = client.get(page["next"], headers=header(renter)).json()
    assert [row["id"] for row in rest["results"]] == [str(rentals[0].pk)]
    assert [row["id"] for row in get(client, renter, "?state=running,ended")["results"]] == [str(rentals[0].pk)]
    assert client.get(f"{URL}?state=lost", headers=header(renter)).status_code == HTTPStatus.BAD_REQUEST


def test_a_list_has_the_latest_lines_of_each_and_counts_them_all(client, finn, lot, monkeypatch):
    monkeypatch.setattr("marketplace.queries.rentals.LINES_IN_A_LIST", 2)
    (row,) = get(client, finn)["results"]
    assert [hour["starts_at"] for hour in row["hours"]] == ["2026-11-30T11:00:00Z", "2026-11-30T12:00:00Z"]
    assert (row["settled_hours"], row["charged"]) == (3, "30.130498")


def test_a_list_takes_the_same_queries_whatever_its_length(client, h100, renter, django_assert_max_num_queries):
    for number in range(4):
        run(rent(h100, renter, now=NOW + timedelta(seconds=number)), ready_at=READY)
    settle_due(until=READY + HOUR, now=READY + HOUR)
    key = header(renter)
    with django_assert_max_num_queries(8):
        client.get(URL, headers=key)


def test_a_running_rental_says_how_to_reach_it_and_what_it_would_cost_to_stop(client, h100, renter):
    rental = run(rent(h100, renter, hours=None), ready_at=READY)
    found = get(client, renter, f"{rental.pk}/")
    assert (found["state"], found["access"], found["paid_until"]) == ("running", ACCESS, "2026-11-30T11:04:30Z")
    assert found["burn_per_hour"] == "3.484800"
    assert found["hours_ordered"] is None
    assert found["hours"] == []
    # The clock of these tests stands before the real one or after it: only the shape can be told here.
    assert {hour["state"] for hour in found["open_hours"]} <= {"running", "waiting"}


def test_a_rental_that_never_started_cost_nothing_and_has_no_hours(client, h100, renter):
    rental = rent(h100, renter)
    pass_time(since=NOW, until=NOW + timedelta(minutes=11))
    found = get(client, renter, f"{rental.pk}/")
    assert (found["state"], found["charged"], found["held"], found["hours"], found["open_hours"]) == (
        "failed",
        "0.000000",
        "0.000000",
        [],
        [],
    )
    assert found["end_reason"] == "not_started_in_time"


def test_an_interrupted_rental_says_what_was_given_back(client, h100, renter):
    rental = run(rent(h100, renter, hours=5), ready_at=READY)
    pass_time(since=READY, until=READY + 2 * HOUR)
    settle_due(until=READY + 2 * HOUR, now=READY + 2 * HOUR)
    interrupt(rental_id=rental.pk, reason="server_lost", now=READY + 2 * HOUR)
    found = get(client, renter, f"{rental.pk}/")
    assert found["state"] == "interrupted"
    assert [(hour["starts_at"][11:16], hour["state"]) for hour in found["hours"]] == [
        ("10:00", "settled"),
        ("11:00", "reversed"),
    ]
    assert [(hour["starts_at"][11:16], hour["state"], hour["gross"]) for hour in found["open_hours"]] == [
        ("12:00", "unbilled", "0.000000")
    ]
    assert found["charged"] == found["hours"][0]["gross"]
    assert found["credited"] == found["hours"][1]["gross"]


@pytest.mark.broken_books  # what is paid is moved by hand, past what is held
def test_a_stop_answers_with_the_state_and_the_second_billing_ended(client, h100, renter):
    rental = run(rent(h100, renter, hours=3), ready_at=READY)
    Rental.objects.filter(pk=rental.pk).update(paid_until=datetime.now(UTC) + 3 * HOUR)
    beats_all_along(rental.server, since=READY, until=datetime.now(UTC))
    up_all_along(since=READY, until=datetime.now(UTC))
    before = datetime.now(UTC).replace(microsecond=0)
    answer = post_stop(client, renter, rental)
    assert answer.status_code == HTTPStatus.OK
    found = answer.json()
    assert found["state"] == "ending"
    assert before <= datetime.fromisoformat(found["stop_requested_at"]) <= datetime.now(UTC)
    assert found["access"] is None
    again = post_stop(client, renter, rental)
    assert again.status_code == HTTPStatus.OK
    assert again.json()["stop_requested_at"] == found["stop_requested_at"]


def test_a_stop_of_what_is_over_changes_nothing(client, finn, lot):
    assert post_stop(client, finn, lot).status_code == HTTPStatus.OK
    after = get(client, finn, f"{lot.pk}/")
    assert (after["state"], after["charged"]) == ("ended", "30.130498")


def test_a_stop_takes_the_scope_trade_and_the_rental_of_the_key(client, h100, renter):
    rental = rent(h100, renter)
    assert post_stop(client, renter, rental, "read").status_code == HTTPStatus.FORBIDDEN
    other = make_renter(name="Other Labs")
    assert post_stop(client, other, rental).status_code == HTTPStatus.NOT_FOUND
    assert client.get(f"{URL}{rental.pk}/", headers=header(other)).status_code == HTTPStatus.NOT_FOUND
    rental.refresh_from_db()
    assert rental.state == "pending"


def test_a_stop_before_the_start_ends_it_at_once_and_gives_the_hold_back(client, h100, renter):
    rental = rent(h100, renter, now=datetime.now(UTC))
    found = post_stop(client, renter, rental).json()
    assert (found["state"], found["held"], found["charged"]) == ("ended", "0.000000", "0.000000")


def test_beats_are_told_from_the_rental_on_only(client, h100, renter):
    rental = rent(h100, renter)
    server = rental.server
    BeatSpan.objects.create(server=server, first_beat_at=NOW - timedelta(days=9), last_beat_at=NOW - timedelta(days=8))
    run(rental, ready_at=READY)
    sweep(now=READY)
    found = get(client, renter, f"{rental.pk}/")
    assert all(span["ends_at"] >= "2026-11-30" for span in found["beats"])
