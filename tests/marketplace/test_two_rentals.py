"""When the demo opens first its renter has two settled rentals behind it and a thousand left in each wallet."""

import pytest

from billing.sample_wallets import AMOUNT, SPENT, open_sample_renter
from common.money import to_micros
from marketplace.book import wallet_state
from marketplace.models import Rental, Settlement
from marketplace.sample_market import build
from marketplace.sample_market.build import build_sample_market
from marketplace.sample_market.people import CURRENCY, FUNDS, open_sample_people, sample_renters
from marketplace.sample_market.rows import sample_books
from marketplace.sample_market.two_rentals import PAST, play_two_rentals
from tests.billing.conftest import paid_top_up, wallet_of
from tests.factories import make_gpu
from tests.marketplace.conftest import NOW
from users.models import Organisation

pytestmark = pytest.mark.django_db


@pytest.fixture
def renter(db, monkeypatch) -> Organisation:
    """The demo's renter with its money, and the book it rents from."""
    for slug in sample_books():
        make_gpu(slug=slug)
    monkeypatch.setattr(build, "sample_books", lambda: {past.gpu: sample_books()[past.gpu] for past in PAST})
    open_sample_renter(password="a long password", now=NOW)
    open_sample_people(now=NOW)
    for sample in sample_renters():
        wallet_of(sample.organisation.name, currency=CURRENCY, units=int(FUNDS))
    build_sample_market(now=NOW)
    organisation = Organisation.objects.get(name="Orla Labs B.V.")
    wallet = wallet_of(organisation.name, currency="USD")
    paid_top_up(wallet, micros=to_micros(AMOUNT + SPENT, currency="USD"))
    return organisation


def test_two_rentals_have_ended_and_a_thousand_is_left(renter):
    assert play_two_rentals(now=NOW) == 2
    assert set(Rental.objects.filter(organisation=renter).values_list("state", flat=True)) == {"ended"}
    lines = Settlement.objects.filter(rental__organisation=renter)
    assert sum(line.gross_micros for line in lines) == to_micros(SPENT, currency="USD")
    assert lines.count() == 10
    assert wallet_state(renter.pk, "USD").available_micros == to_micros(AMOUNT, currency="USD")


def test_a_second_run_adds_nothing(renter):
    play_two_rentals(now=NOW)
    assert play_two_rentals(now=NOW) == 0
    assert Rental.objects.filter(organisation=renter).count() == 2
