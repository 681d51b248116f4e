"""The books are checked after every test here, and people with wallets are one call away."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from django.db import connection, transaction
from uuid6 import uuid7

from billing import ledger
from billing.accounts import open_account
from billing.checks import run_checks
from billing.ledger import Line, Reference
from billing.models import Account, TopUp
from users.models import Organisation

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
UNIT = 1_000_000


@contextmanager
def refused(error: type[Exception]) -> Iterator[None]:
    """Expect a refusal, in a transaction of its own: what was refused leaves nothing behind, and the test goes on."""
    with pytest.raises(error), transaction.atomic():
        yield


@pytest.fixture(autouse=True)
def books_balance(request: pytest.FixtureRequest) -> Iterator[None]:
    """After each test that touched the database every invariant holds, or the test says why not (`broken_books`)."""
    uses_database = request.node.get_closest_marker("django_db") is not None
    if uses_database:
        transactional = request.node.get_closest_marker("django_db").kwargs.get("transaction")
        request.getfixturevalue("transactional_db" if transactional else "db")
    yield
    if uses_database and not request.node.get_closest_marker("broken_books"):
        # What a deferred constraint would say at the commit must be said here too.
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        assert [check for check in run_checks(now=NOW) if not check.ok] == []


def wallet_of(name: str, *, currency: str = "EUR", units: int = 0) -> Account:
    """Open a renter's wallet and, with `units`, pay a top-up into it."""
    owner, _ = Organisation.objects.get_or_create(
        name=name, defaults={"kind": "renter", "type": "business", "country": "NL"}
    )
    wallet = open_account(kind=Account.Kind.WALLET, currency=currency, owner_id=owner.pk)
    if units:
        paid_top_up(wallet, units=units)
        wallet.refresh_from_db()
    return wallet


def paid_top_up(wallet: Account, *, units: int = 0, micros: int = 0, paid_at: datetime = NOW) -> TopUp:
    """Pay money into a wallet, as the gateway's payment of the top-up's own id: the row and its entry."""
    top_up_id, amount_micros = uuid7(), micros or units * UNIT
    gateway = open_account(kind=Account.Kind.GATEWAY, currency=wallet.currency)
    entry_id = ledger.post(
        key=f"topup:{top_up_id}",
        kind="topup",
        lines=[Line(gateway.pk, -amount_micros), Line(wallet.pk, amount_micros)],
        effective_at=paid_at,
        reference=Reference(type="top_up", id=str(top_up_id)),
    )
    return TopUp.objects.create(
        id=top_up_id,
        organisation_id=wallet.owner_id or 0,
        wallet=wallet,
        currency=wallet.currency,
        amount_micros=amount_micros,
        state=TopUp.State.PAID,
        gateway_key=f"checkout:{top_up_id}",
        payment_intent_id=f"pi_{top_up_id.hex}",
        created_at=paid_at,
        paid_at=paid_at,
        credit_entry_id=entry_id,
    )


@pytest.fixture
def books() -> SimpleNamespace:
    """Ana with 100 EUR, bo with 50 EUR, and the accounts of the house."""
    return SimpleNamespace(
        ana=wallet_of("ana", units=100),
        bo=wallet_of("bo", units=50),
        revenue=open_account(kind=Account.Kind.REVENUE, currency="EUR"),
        tax=open_account(kind=Account.Kind.TAX, currency="EUR"),
        gateway=open_account(kind=Account.Kind.GATEWAY, currency="EUR"),
    )
