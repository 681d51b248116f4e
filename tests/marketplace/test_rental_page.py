"""`/rentals/<id>/`: how it went, how to reach it, what it costs, and the proof of every hour; and stopping it."""

from decimal import Decimal
from http import HTTPStatus

import pytest

from marketplace.models import BeatSpan, HeldHours, Rental, Settlement, UpSpan
from marketplace.rentals.interrupt import interrupt
from marketplace.rentals.provision import accept_start, report_failed
from marketplace.rentals.ready import report_ready
from marketplace.settlement.due import settle_due
from tests.marketplace.on_pages import just_now, renter_with, somebody_of, words
from tests.marketplace.proven_rentals import READY, finnish_renter, raised_rental, stopped_lot
from tests.marketplace.rental_clock import ACCESS, pass_time, rent, run
from tests.marketplace.rentals_now import HOUR, MINUTE, SECOND, rented, running, stop_now, sum_after
from users.models import Organisation, Role

pytestmark = pytest.mark.django_db


@pytest.fixture
def orla(db) -> Organisation:
    return renter_with(USD=1000)


def path_of(rental: Rental, rest: str = "") -> str:
    return f"/rentals/{rental.pk}/{rest}"


def page_of(rental: Rental, *, role: Role = Role.TRADER, rest: str = ""):
    answer = somebody_of(rental.organisation, role=role).get(path_of(rental, rest))
    assert answer.status_code == HTTPStatus.OK
    return answer


def hour_of(text: str, clock: str) -> str:
    """Return what the page says of one hour."""
    told = text[text.index("Hour by hour") :]
    starts = told.index(f"{clock} 30 Nov 2026")
    return told[starts : told.index("The hour 3600", starts) + 30]


def test_an_hour_spells_its_sum_with_its_numbers(h100):
    text = words(page_of(stopped_lot(h100, finnish_renter())))
    hour = hour_of(text, "11:00")
    assert "Silent 11:20:10 to 11:22:10: 120 seconds not billed. 3480 seconds billed." in hour
    assert "12.178181 settled" in hour
    assert "4 × 2.88 USD × 3480 s × 0.8713837574 ÷ 3600 = 9.703730" in hour
    assert "9.703730 × 25.5% = 2.474451 VAT 25.5%, Finland" in hour
    assert "9.703730 + 2.474451 = 12.178181 EUR" in hour
    assert "done again for this page from seconds and rates: the same" in hour


def test_the_strip_has_its_twin_in_a_table(h100):
    page = page_of(stopped_lot(h100, finnish_renter()))
    hour = hour_of(words(page), "11:00")
    assert "11:00:00 11:20:10 heard 1210 1210 11:20:10 11:22:10 silent 120 0 11:22:10 12:00:00 heard 2270 2270" in hour
    assert "The hour 3600 3480" in hour
    assert b'<rect class="silent" x="1210" y="44" width="120" height="16"/>' in page.content


def test_the_first_and_the_last_hour_say_where_billing_began_and_ended(h100):
    text = words(page_of(stopped_lot(h100, finnish_renter())))
    assert "Ready 10:04:30. 3330 seconds billed." in hour_of(text, "10:00")
    assert "Billing ended 12:30:00. 1800 seconds billed." in hour_of(text, "12:00")
    assert "It is over: 30.13 EUR in all, tax included." in text
    assert "Stopped by you." in text


def test_an_hour_of_two_held_hours_has_both_rates(h100):
    text = words(page_of(raised_rental(h100, finnish_renter())))
    hour = hour_of(text, "16:00")
    assert "1 × 4.19 USD × (2520 s × 0.8713837574 + 1080 s × 0.8695652174) ÷ 3600 = 3.648812" in hour
    assert "3.648812 × 25.5% = 0.930447" in hour


def test_a_rate_of_tax_that_rose_is_taken_out_of_the_gross(h100, renter):
    rental = rent(h100, renter, hours=3)
    HeldHours.objects.filter(rental=rental).update(tax_rate_percent="9")
    run(rental, ready_at=READY)
    pass_time(since=READY, until=READY + 70 * MINUTE)
    settle_due(until=READY + 70 * MINUTE, now=READY + 70 * MINUTE)
    line = Settlement.objects.get(rental=rental)
    hour = hour_of(words(page_of(rental)), "10:00")
    assert "Net by price 1 × 2.88 USD × 3330 s ÷ 3600 = 2.664000" in hour
    assert "2.664000 + 2.664000 × 9% = 2.903760" in hour
    assert "2.903760 × 21 ÷ (100 + 21) = 0.503958 VAT 21%, Netherlands" in hour
    assert "2.903760 − 0.503958 = 2.399802" in hour
    assert (line.net_micros, line.tax_micros) == (2_399_802, 503_958)


def test_a_sum_of_the_books_that_differs_is_said_so(h100, monkeypatch):
    rental = stopped_lot(h100, finnish_renter())
    monkeypatch.setattr("marketplace.queries.evidence.HourLine.is_equal", False)
    assert "it differs. Please write to us." in words(page_of(rental))


def test_time_when_we_were_down_ourselves_is_no_gap(h100, orla):
    rental = running(orla, h100, ago=50 * MINUTE, hours=3)
    down_at, back_at = rental.ready_at + 10 * MINUTE, rental.ready_at + 20 * MINUTE
    span = BeatSpan.objects.get(server=rental.server_id)
    BeatSpan.objects.create(server_id=rental.server_id, first_beat_at=back_at, last_beat_at=span.last_beat_at)
    BeatSpan.objects.filter(pk=span.pk).update(last_beat_at=down_at)
    up = UpSpan.objects.get()
    UpSpan.objects.create(started_at=back_at, last_seen_at=up.last_seen_at)
    UpSpan.objects.filter(pk=up.pk).update(last_seen_at=down_at)
    text = words(page_of(rental))
    assert "We were down" in text
    assert "not billed" not in text[text.index("Hour by hour") : text.index("How to read")].replace("not billed 0", "")


def test_a_running_rental_says_how_to_reach_it(h100, orla):
    page = page_of(running(orla, h100, ago=10 * MINUTE, hours=3))
    assert "ssh -p 2201 root@203.0.113.7" in words(page)
    assert "Go on only if it is the same: ssh-ed25519 AAAA" in words(page)
    assert "Then it ends; the hours ordered are paid for already." in words(page)


def test_what_a_host_says_of_itself_adds_nothing_to_the_command(h100, orla):
    rental = running(orla, h100, ago=MINUTE, hours=3)
    Rental.objects.filter(pk=rental.pk).update(
        access={**ACCESS, "ssh_user": "-oProxyCommand=x", "ssh_host": "y; rm -rf /"}
    )
    assert "ssh -p 2201 'oProxyCommand=x@y; rm -rf /'" in words(page_of(rental))


def test_a_rental_that_is_over_is_reached_no_more(h100, orla):
    rental = stop_now(running(orla, h100, ago=10 * MINUTE))
    assert "ssh" not in words(page_of(rental))


def test_an_open_ended_rental_says_when_the_next_hour_is_held_and_what_is_missing(h100):
    poor = renter_with(name="Poor Labs", USD=6)
    text = words(page_of(running(poor, h100, ago=10 * MINUTE, hours=None)))
    assert "0.97 USD are missing for one more hour" in text
    assert "3.48 USD are held for one more hour." in text


def test_a_start_says_that_nothing_is_billed_before_the_machine_answers(h100, orla):
    rental = rented(orla, h100)
    accept_start(rental_id=rental.pk, now=just_now())
    text = words(page_of(rental))
    by = (rental.filled_at + 10 * MINUTE).strftime("%H:%M")
    assert f"if it has not by {by} UTC, the rental has failed and costs nothing." in text
    assert "Hour by hour" not in text


def test_a_failed_start_says_why_and_that_nothing_was_charged(h100, orla):
    rental = rented(orla, h100)
    report_failed(rental_id=rental.pk, reason="image_pull_failed", now=just_now())
    text = words(page_of(rental))
    assert "Nothing was charged, and all that was held came back." in text
    assert "The machine reported: image pull failed." in text
    assert "Held now 0.00" in text


def test_an_interrupted_rental_says_what_was_credited(h100, renter):
    rental = run(rent(h100, renter, hours=5), ready_at=READY)
    pass_time(since=READY, until=READY + 2 * HOUR)
    settle_due(until=READY + 2 * HOUR, now=READY + 2 * HOUR)
    interrupt(rental_id=rental.pk, reason="server_lost", now=READY + 2 * HOUR + 6 * MINUTE)
    text = words(page_of(rental))
    assert "The hour of its last beat costs nothing and 3.48 USD were given back; 3.22 USD remain charged." in text
    assert "3.484800 given back" in hour_of(text, "11:00")
    assert "the machine was lost" in hour_of(text, "11:00")
    assert "The machine was lost: not billed from 12:00:00. 0 seconds billed. 0.000000 not billed" in hour_of(
        text, "12:00"
    )


def test_hours_are_paged_newest_first(h100, monkeypatch):
    monkeypatch.setattr("marketplace.views.rental.HOURS_PER_PAGE", 2)
    rental = stopped_lot(h100, finnish_renter())
    first = words(page_of(rental))
    assert "Sum and seconds of 12:00" in first
    assert "Sum and seconds of 10:00" not in first
    assert "Sum and seconds of 10:00" in words(page_of(rental, rest="?page=2"))
    client = somebody_of(rental.organisation)
    assert client.get(path_of(rental, "?page=3")).status_code == HTTPStatus.NOT_FOUND


def test_hours_held_one_by_one_are_one_step(h100):
    text = words(page_of(raised_rental(h100, finnish_renter())))
    assert "1 more hour held" in text
    assert "the machine confirmed the stop" in text


@pytest.mark.parametrize("kind", ["running", "stopped", "starting"])
def test_the_page_takes_few_queries(kind, h100, orla, django_assert_max_num_queries):
    rental = rented(orla, h100) if kind == "starting" else running(orla, h100, ago=50 * MINUTE, hours=None)
    if kind == "stopped":
        stop_now(rental)
    client = somebody_of(orla)
    with django_assert_max_num_queries(12):
        client.get(path_of(rental))


def test_the_part_that_moves_is_answered_with_304_while_it_stands_still(h100):
    rental = stopped_lot(h100, finnish_renter())
    client = somebody_of(rental.organisation)
    live = client.get(path_of(rental, "live/"))
    assert live.status_code == HTTPStatus.OK
    assert (
        f'data-etag="{live["ETag"]}"'.replace('W/"', "W/&quot;").replace('""', '&quot;"')
        in client.get(path_of(rental)).content.decode()
    )
    again = client.get(path_of(rental, "live/"), headers={"If-None-Match": live["ETag"]})
    assert again.status_code == HTTPStatus.NOT_MODIFIED
    assert "no-store" in live["Cache-Control"]


def test_stopping_asks_first_and_says_what_it_costs(h100, orla):
    rental = running(orla, h100, ago=30 * MINUTE, gpu_count=2, hours=3)
    page = page_of(rental, rest="stop/")
    text = words(page)
    assert Decimal("3.48") <= sum_after(text, "It then costs") < Decimal("3.60")
    assert Decimal("17.30") < sum_after(text, "USD in all, and") <= Decimal("17.43")
    assert "Everything on the machine is lost." in text
    rental.refresh_from_db()
    assert rental.state == "running", "looking stops nothing"


def test_a_confirmed_stop_ends_billing_and_says_what_it_cost(h100, orla):
    rental = running(orla, h100, ago=30 * MINUTE, hours=3)
    client = somebody_of(orla)
    text = words(client.post(path_of(rental, "stop/"), follow=True))
    cost = sum_after(text, "Stopped. It cost")
    assert Decimal("1.74") <= cost < Decimal("1.80")
    assert f"{cost} USD in all; what is left of the hold comes back." in text
    rental.refresh_from_db()
    assert rental.state == "ending"
    assert just_now() - rental.stop_requested_at < 10 * SECOND
    again = client.post(path_of(rental, "stop/"), follow=True)
    assert sum_after(words(again), "It cost") == cost
    assert "There is nothing to stop any more." in words(client.get(path_of(rental, "stop/"), follow=True))


def test_a_stop_before_the_start_costs_nothing(h100, orla):
    rental = rented(orla, h100)
    assert "It has not started: it costs nothing, and 3.48 USD come back." in words(page_of(rental, rest="stop/"))
    answer = somebody_of(orla).post(path_of(rental, "stop/"), follow=True)
    assert "Stopped before it started. It cost nothing, and its hold is released." in words(answer)


def test_who_may_only_look_cannot_stop(h100, orla):
    rental = running(orla, h100, ago=MINUTE)
    assert "Owners and traders of your organisation can stop it." in words(page_of(rental, role=Role.VIEWER))
    assert (
        b"<form" not in page_of(rental, role=Role.VIEWER, rest="stop/").content.split(b"<main")[1].split(b"</main")[0]
    )
    answer = somebody_of(orla, role=Role.VIEWER).post(path_of(rental, "stop/"))
    assert answer.status_code == HTTPStatus.FORBIDDEN


def test_another_organisation_finds_nothing(h100, orla):
    rental = rented(orla, h100)
    stranger = somebody_of(renter_with(name="Other", USD=1))
    for rest in ("", "live/", "stop/"):
        assert stranger.get(path_of(rental, rest)).status_code == HTTPStatus.NOT_FOUND
    assert stranger.post(path_of(rental, "stop/")).status_code == HTTPStatus.NOT_FOUND


def test_a_machine_of_the_demo_fleet_says_so(h100, orla):
    assert "demo fleet" in words(page_of(rented(orla, h100, is_sample=True)))
    assert "demo fleet" not in words(page_of(rented(orla, h100)))


def test_an_order_leads_to_its_rental_and_says_that_it_starts(h100, orla):
    rental = rented(orla, h100, is_sample=True)
    page = somebody_of(orla).get(f"/orders/{rental.order_id}/")
    assert f'href="/rentals/{rental.pk}/"' in page.content.decode()
    assert "Starting: a machine is ready within minutes. Nothing is billed before it answers;" in words(page)
    assert "demo fleet" in words(page)
    accept_start(rental_id=rental.pk, now=just_now())
    report_ready(rental_id=rental.pk, access=ACCESS, now=just_now())
    assert "Starting:" not in words(somebody_of(orla).get(f"/orders/{rental.order_id}/"))


def test_the_hour_of_now_is_told_as_far_as_it_has_come(h100, orla):
    text = words(page_of(running(orla, h100, ago=MINUTE, hours=3)))
    assert "so far" in text
    assert "still to come" in text
