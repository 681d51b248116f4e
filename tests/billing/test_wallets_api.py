"""`GET wallets/`: three currencies, exact figures, and how long what is available lasts."""

from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing import holds
from billing.accounts import open_account
from billing.models import Account
from billing.queries.wallets import runway_seconds
from tests.billing.conftest import NOW, UNIT, wallet_of
from tests.billing.statements import book, run_rental
from tests.factories import make_organisation
from users.api_keys import issue_key
from users.models import Organisation

pytestmark = pytest.mark.django_db
URL = "/api/v1/wallets/"
NOTHING = {
    "posted": "0.000000",
    "held": "0.000000",
    "available": "0.000000",
    "burn_per_hour": "0.000000",
    "runway_seconds": None,
}


def key_of(organisation: Organisation | None, *scopes: str) -> dict[str, str]:
    """Return the header of a new key; without scopes it may read."""
    assert organisation is not None
    issued = issue_key(
        organisation=organisation, name="t", scopes=scopes or ("read",), created_by=None, expires_at=None, now=NOW
    )
    return {"Authorization": f"Bearer {issued.secret}"}


def wallets(client, organisation: Organisation | None) -> dict[str, dict]:
    answer = client.get(URL, headers=key_of(organisation))
    assert answer.status_code == HTTPStatus.OK, answer.content
    return {row.pop("currency"): row for row in answer.json()["results"]}


def test_wallets_that_no_top_up_opened_are_there_with_zeros(client):
    assert wallets(client, make_organisation()) == {"EUR": NOTHING, "USD": NOTHING, "GBP": NOTHING}


def test_a_wallet_says_what_is_posted_held_and_available_to_the_micro(client):
    wallet = wallet_of("ana", units=100)
    book(wallet, -11_653_259)
    holds.place_hold(key="h", account_id=wallet.pk, amount_micros=37_794_362)
    shown = wallets(client, wallet.owner)
    assert shown["EUR"] == {
        **NOTHING,
        "posted": "88.346741",
        "held": "37.794362",
        "available": "50.552379",
    }
    assert shown["USD"] == NOTHING


def test_burn_and_runway_are_sums_over_the_holds_of_running_rentals(client):
    wallet = wallet_of("ana", units=1000)
    run_rental(wallet, held_units=100, burn_micros_per_hour=20_080_000)
    run_rental(wallet, held_units=50, burn_micros_per_hour=1)
    holds.place_hold(key="order", account_id=wallet.pk, amount_micros=30 * UNIT)  # burns nothing
    shown = wallets(client, wallet.owner)["EUR"]
    assert shown["burn_per_hour"] == "20.080001"
    assert shown["available"] == "820.000000"
    assert shown["runway_seconds"] == 820_000_000 * 3600 // 20_080_001


def test_a_hold_with_nothing_left_burns_nothing(client):
    wallet = wallet_of("ana", units=1000)
    hold = run_rental(wallet, held_units=100, burn_micros_per_hour=20_080_000)
    holds.release(key="over", hold_id=hold)
    assert wallets(client, wallet.owner)["EUR"]["runway_seconds"] is None


def test_a_wallet_without_available_money_has_a_runway_of_nothing(client):
    wallet = wallet_of("ana", units=100)
    run_rental(wallet, held_units=100, burn_micros_per_hour=UNIT)
    assert wallets(client, wallet.owner)["EUR"]["runway_seconds"] == 0


def test_what_an_organisation_owes_is_not_in_its_wallet(client):
    wallet = wallet_of("ana", units=100)
    receivable = open_account(kind=Account.Kind.RECEIVABLE, currency="EUR", owner_id=wallet.owner_id)
    book(receivable, -35 * UNIT, kind="dispute")
    assert wallets(client, wallet.owner)["EUR"]["posted"] == "100.000000"


def test_an_organisation_sees_its_own_wallets_alone(client):
    wallet_of("ana", units=100)
    assert wallets(client, wallet_of("bo", units=50).owner)["EUR"]["posted"] == "50.000000"


def test_wallets_take_one_query_and_no_parameter(client, django_assert_max_num_queries):
    wallet = wallet_of("ana", units=100)
    headers = key_of(wallet.owner)
    client.get(URL, headers=headers)
    with django_assert_max_num_queries(3):  # the key with its organisation, when it was last used, the wallets
        client.get(URL, headers=headers)
    answer = client.get(f"{URL}?currency=EUR", headers=headers)
    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert answer.json()["errors"][0]["code"] == "unknown_parameter"


def test_wallets_need_a_key_that_may_read(client):
    organisation = make_organisation()
    assert client.get(URL).status_code == HTTPStatus.UNAUTHORIZED
    assert client.get(URL, headers=key_of(organisation, "trade")).status_code == HTTPStatus.FORBIDDEN


@given(st.integers(0, 10**15), st.integers(1, 10**12))
def test_a_runway_is_never_longer_than_the_money_and_less_than_a_second_shorter(available, burn):
    seconds = runway_seconds(available_micros=available, burn_micros_per_hour=burn)
    assert seconds is not None
    assert seconds * burn <= available * 3600 < (seconds + 1) * burn
