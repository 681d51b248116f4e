"""`/rentals/`: what runs first, what it burns, how long the money lasts, what stopping gives back; then what is over."""

from decimal import Decimal
from http import HTTPStatus

import pytest

from marketplace.models import RunwayAlert
from marketplace.rentals.provision import report_failed
from tests.factories import make_organisation
from tests.marketplace.on_pages import just_now, renter_with, somebody_of, words
from tests.marketplace.rentals_now import HOUR, MINUTE, rented, running, stop_now, sum_after
from users.models import Organisation, Role

pytestmark = pytest.mark.django_db
URL = "/rentals/"


@pytest.fixture
def orla(db) -> Organisation:
    return renter_with(USD=1000)


def page_of(organisation: Organisation, *, role: Role = Role.TRADER, path: str = URL):
    answer = somebody_of(organisation, role=role).get(path)
    assert answer.status_code == HTTPStatus.OK
    return answer


def test_who_has_rented_nothing_is_sent_to_the_market(orla):
    text = words(page_of(orla))
    assert "Nothing rented yet." in text
    assert "To the market" in text


def test_a_provider_rents_nothing():
    assert "Providers rent nothing." in words(page_of(make_organisation(name="Noord", kind="provider")))


def test_what_runs_comes_first_with_what_it_burns_and_what_stopping_gives_back(h100, orla):
    running(orla, h100, ago=30 * MINUTE, gpu_count=2, hours=3)
    rented(orla, h100)
    text = words(page_of(orla))
    assert "1 rental is running." in text
    assert "Burning an hour, tax included 6.97 USD" in text  # 2 x 2.88 x 1.21
    first, second = text.index("2 × H100-SXM"), text.index("1 × H100-SXM")
    assert first < second
    row = text[first:second]
    assert "running since" in row
    assert Decimal("3.48") <= sum_after(row, "6.97 USD") < Decimal("3.60")  # half an hour
    assert Decimal("17.30") < sum_after(row, "then it ends") <= Decimal("17.43")  # of 20.91 held the rest
    assert "then it ends" in row
    assert "not started" in text[second:]


def test_a_lot_needs_no_more_money(h100, orla):
    running(orla, h100, ago=MINUTE, hours=3)
    assert "That lasts to the end every hour ordered is held already" in words(page_of(orla))


def test_an_open_ended_rental_says_how_long_the_money_lasts(h100):
    poor = renter_with(name="Poor Labs", USD=12)
    running(poor, h100, ago=10 * MINUTE, hours=None)
    text = words(page_of(poor))
    # One hour is held; 8.51 are left for two more of 3.48.
    assert "That lasts 2 hrs, 49 mins" in text or "That lasts 2 hrs, 48 mins" in text
    assert "one more hour from" in text


def test_an_open_alert_is_told_with_a_way_to_pay_in(h100, orla):
    rental = running(orla, h100, ago=10 * MINUTE, hours=None)
    now = just_now()
    for level_seconds in (10800, 86400):
        RunwayAlert.objects.create(
            organisation=orla,
            wallet=rental.wallet,
            currency="USD",
            level_seconds=level_seconds,
            lasts_until=now + 2 * HOUR,
            raised_at=now,
        )
    page = page_of(orla)
    assert words(page).count("The USD wallet has money until") == 1
    assert b'href="/wallet/top-up/?currency=USD"' in page.content


def test_what_is_over_says_why_and_what_it_cost(h100, orla):
    stopped = running(orla, h100, ago=30 * MINUTE, hours=3)
    stop_now(stopped)
    failed = rented(orla, h100)
    report_failed(rental_id=failed.pk, reason="image_pull_failed", now=just_now())
    text = words(page_of(orla))
    assert "Nothing is running, so nothing is being billed." in text
    over = text[text.index("Over") :]
    assert "failed to start The machine reported: image pull failed." in over
    assert "ended Stopped by you." in over
    assert Decimal("1.74") <= sum_after(over[over.index("Stopped by you.") :], "UTC") < Decimal("1.80")


def test_machines_of_the_demo_fleet_say_so(h100, orla):
    rented(orla, h100, is_sample=True)
    assert "demo fleet" in words(page_of(orla))
    rented(renter_with(name="Other", USD=100), h100)
    assert "demo fleet" not in words(page_of(Organisation.objects.get(name="Other")))


def test_only_who_may_trade_finds_a_way_to_stop(h100, orla):
    rental = rented(orla, h100)
    link = f'href="/rentals/{rental.pk}/stop/"'.encode()
    assert link in page_of(orla, role=Role.TRADER).content
    assert link not in page_of(orla, role=Role.VIEWER).content


def test_another_organisation_sees_nothing_of_it(h100, orla):
    rental = rented(orla, h100)
    assert str(rental.pk).encode() not in page_of(renter_with(name="Other", USD=1)).content


def test_what_is_over_is_paged(h100, orla, monkeypatch):
    monkeypatch.setattr("marketplace.views.rentals.PER_PAGE", 1)
    for _ in range(2):
        report_failed(rental_id=rented(orla, h100).pk, reason="broken", now=just_now())
    client = somebody_of(orla)
    assert "page 1 of 2" in words(client.get(URL))
    assert client.get(f"{URL}?page=2").status_code == HTTPStatus.OK
    assert client.get(f"{URL}?page=3").status_code == HTTPStatus.NOT_FOUND
    assert client.get(f"{URL}?page=x").status_code == HTTPStatus.NOT_FOUND


def test_the_page_takes_few_queries_whatever_runs(h100, orla, django_assert_max_num_queries):
    for number in range(4):
        running(orla, h100, ago=(20 + number) * MINUTE, hours=None if number % 2 else 3)
    for _ in range(4):
        report_failed(rental_id=rented(orla, h100).pk, reason="broken", now=just_now())
    client = somebody_of(orla)
    with django_assert_max_num_queries(12):
        client.get(URL)


def test_the_wallet_says_what_burns_and_leads_here(h100, orla):
    running(orla, h100, ago=10 * MINUTE, hours=None)
    page = page_of(orla, path="/wallet/")
    assert "Burning 3.48 an hour, tax included; the grey part is the next day. 1 rental runs" in words(page)
    assert b'href="/rentals/"' in page.content


def test_a_line_of_the_wallet_leads_to_its_rental(h100, orla):
    rental = running(orla, h100, ago=30 * MINUTE, hours=3)
    stop_now(rental)
    page = page_of(orla, path="/wallet/")
    assert f'<a href="/rentals/{rental.pk}/">GPU-hours</a>' in page.content.decode()
