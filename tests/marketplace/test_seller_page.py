"""`/providers/<number>/`: a provider as a renter sees it, counted from the books; trades still name nobody."""

from datetime import timedelta

import pytest
from django.db import transaction

from marketplace.models import Provider, Rental
from marketplace.queries.sellers import seller_of
from marketplace.settlement.due import settle_due
from marketplace.settlement.reverse import reverse_last_lines
from tests.factories import make_operator
from tests.marketplace.companies import applied, approved, make_company
from tests.marketplace.conftest import NOW, end_rental, make_provider, make_renter, make_running_rental
from tests.marketplace.on_pages import on_offer, placed_by, renter_with, somebody_of, words
from tests.marketplace.rental_clock import up_all_along

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
START = NOW.replace(minute=0)


def page_of(provider: Provider) -> str:
    return f"/providers/{provider.pk}/"


def sold_an_hour(h100, renter, *, gpu_count: int = 2, state: str = "ended") -> Rental:
    """An hour of two GPUs, silent for ten minutes of it, settled."""
    beats = [(NOW, START + HOUR + timedelta(minutes=20)), (START + HOUR + timedelta(minutes=30), START + 4 * HOUR)]
    up_all_along(since=NOW - HOUR, until=START + 4 * HOUR)
    rental = make_running_rental(
        renter=renter, gpu=h100, ready_at=START + HOUR, hours=1, gpu_count=gpu_count, beats=beats
    )
    settle_due(until=START + 3 * HOUR, now=START + 3 * HOUR)
    end_rental(rental, stop_at=START + 2 * HOUR, state=state)
    return rental


def test_it_says_name_country_since_when_and_what_was_delivered_and_failed(client, h100, renter):
    sold_an_hour(h100, renter)
    provider = make_provider()
    text = words(client.get(page_of(provider)))
    assert "Noord Compute B.V. A company in Netherlands that sells here since 31 Oct" in text
    assert "GPU-hours delivered 1.7 GPU-hours failed 0.3 Delivered, of all sold 83 % Given back, USD net 0.00" in text
    seller = seller_of(provider.pk)
    assert (seller.rentals, seller.failed_starts, seller.interrupted) == (1, 0, 0)


def test_hours_that_were_given_back_count_as_failed_with_their_sum(client, h100, renter):
    rental = sold_an_hour(h100, renter, state="interrupted")
    line = rental.settlements.get()
    with transaction.atomic():
        reverse_last_lines(rental_id=rental.pk, last_beat_at=START + 2 * HOUR, now=START + 3 * HOUR)
    seller = seller_of(make_provider().pk)
    assert seller.delivered_hours == 0
    assert (seller.failed_hours, seller.credited_micros) == (2, line.usd_net_micros)
    assert seller.percent_delivered == 0
    assert "Given back, USD net 4.80" in words(client.get(page_of(make_provider())))


def test_who_has_sold_nothing_has_no_percentage(client):
    provider = make_provider()
    assert seller_of(provider.pk).percent_delivered is None
    assert "Delivered, of all sold none yet" in words(client.get(page_of(provider)))


def test_only_companies_that_were_approved_are_shown(client):
    assert client.get("/providers/999999/").status_code == 404
    assert client.get(f"/providers/{make_renter().pk}/").status_code == 404
    company = make_company(name="Waiting B.V.")
    applied(company)
    assert client.get(f"/providers/{company.pk}/").status_code == 404
    provider = approved(make_company(name="Approved B.V."), operator=make_operator())
    page = client.get(page_of(provider))
    assert page.status_code == 200
    assert 'name="robots" content="noindex"' in page.content.decode()


@pytest.mark.parametrize(("state", "told"), [("suspended", "It is suspended now"), ("closed", "It sells no more.")])
def test_a_state_that_stops_selling_is_told(client, state, told):
    provider = make_provider(state=state)
    assert told in words(client.get(page_of(provider)))


def test_nothing_private_of_the_application_is_shown(client):
    company = make_company()
    provider = approved(company, operator=make_operator())
    html = client.get(page_of(provider)).content.decode()
    for private in ("NL..4300", "KvK 12345678", "noor@noord.example", "Keizersgracht", "+31 20 123 4567"):
        assert private not in html


def test_a_renter_finds_it_from_the_rental_and_from_the_order(h100):
    renter = renter_with(USD=1000)
    listing = on_offer(h100)
    placed = placed_by(renter, h100)
    rental = Rental.objects.get(order_id=placed.order_id)
    link = f'href="/providers/{listing.server.provider_id}/"'
    reader = somebody_of(renter)
    assert link in reader.get(f"/rentals/{rental.pk}/").content.decode()
    assert link in reader.get(f"/orders/{placed.order_id}/").content.decode()


def test_trades_and_books_name_no_provider(client, h100):
    renter = renter_with(USD=1000)
    on_offer(h100)
    placed_by(renter, h100)
    for path in ("/market/h100-sxm/", "/market/", "/api/v1/market/h100-sxm/trades/", "/api/v1/market/h100-sxm/book/"):
        assert "Noord Compute" not in client.get(path).content.decode()


def test_the_page_takes_few_queries(client, h100, renter, django_assert_max_num_queries):
    sold_an_hour(h100, renter)
    with django_assert_max_num_queries(12):
        client.get(page_of(make_provider()))
