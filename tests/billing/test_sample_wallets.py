"""The demo's renter and its money: once, whatever was cut off before."""

from datetime import UTC, datetime

import pytest
from django.contrib.auth import authenticate

from billing import sample_wallets
from billing.models import Account, JournalEntry, TopUp
from billing.sample_wallets import EMAIL, SamplePaymentFailed, fill_sample_wallets, open_sample_renter
from tests.billing.conftest import UNIT
from users.api_keys import key_of
from users.models import Membership, Organisation, Role

pytestmark = pytest.mark.django_db


@pytest.fixture
def now(settings) -> datetime:
    settings.TOP_UP_TIERS = [(0, 0, 100_000, 500_000)]
    return datetime.now(UTC)


def balances() -> dict[str, int]:
    wallets = Account.objects.filter(kind=Account.Kind.WALLET)
    return {wallet.currency: wallet.posted_micros // UNIT for wallet in wallets}


def test_the_renter_is_a_dutch_business_whose_owner_signs_in_and_whose_key_works(now):
    renter = open_sample_renter(password="a long password", now=now)
    membership = Membership.objects.get(user__email=renter.email)
    organisation = membership.organisation
    assert (organisation.name, organisation.kind, organisation.type, organisation.country) == (
        "Orla Labs B.V.",
        "renter",
        "business",
        "NL",
    )
    assert membership.role == Role.OWNER
    assert authenticate(email=renter.email, password="a long password") == membership.user
    key = key_of(renter.api_key, now=now)
    assert (key.organisation, key.scopes) == (organisation, ["read", "trade", "billing"])


def test_a_renter_whose_secrets_were_lost_gets_new_ones(now):
    open_sample_renter(password="a long password", now=now)
    renter = open_sample_renter(password="another password", now=now)
    assert authenticate(email=EMAIL, password="another password") is not None
    assert key_of(renter.api_key, now=now).name == "Demo"
    assert Organisation.objects.count() == 1


def test_each_wallet_gets_its_amount_by_a_payment_once(fake_stripe, now):
    open_sample_renter(password="a long password", now=now)
    for _run in range(2):
        fill_sample_wallets(now=now)
    assert balances() == {"EUR": 1000, "USD": 1036, "GBP": 1000}
    assert JournalEntry.objects.filter(kind="topup").count() == 3
    assert set(TopUp.objects.values_list("state", flat=True)) == {"paid"}


def test_a_run_that_was_cut_off_between_payment_and_credit_is_finished_by_the_next(fake_stripe, now, monkeypatch):
    open_sample_renter(password="a long password", now=now)
    with monkeypatch.context() as cut:
        cut.setattr(sample_wallets, "refresh_top_up", lambda top_up, **_: top_up)
        with pytest.raises(SamplePaymentFailed):
            fill_sample_wallets(now=now)
    fill_sample_wallets(now=now)
    assert balances() == {"EUR": 1000, "USD": 1036, "GBP": 1000}


def test_a_sample_page_that_expired_unpaid_is_followed_by_another(fake_stripe, now, monkeypatch):
    open_sample_renter(password="a long password", now=now)
    with monkeypatch.context() as cut:
        cut.setattr(sample_wallets, "_pay", lambda session_id: fake_stripe.expire(session_id))
        with pytest.raises(SamplePaymentFailed):
            fill_sample_wallets(now=now)
    fill_sample_wallets(now=now)
    assert balances() == {"EUR": 1000, "USD": 1036, "GBP": 1000}
