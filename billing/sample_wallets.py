"""The demo's renter: a Dutch business with a person, a key, and a thousand in each wallet, paid at the test gateway.

The money comes the way all money comes: a top-up, a payment on its page, the one crediting path.
"""

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID, uuid5

from allauth.account.models import EmailAddress
from django.conf import settings
from django.db import transaction

from billing.accounts import WALLET_CURRENCIES
from billing.models import TopUp
from billing.topups.look import refresh_top_up
from billing.topups.start import start_top_up
from users.api_keys import issue_key
from users.models import Membership, Organisation, Scope, User
from users.sign_up import open_organisation

EMAIL = "renter@demo.example"
NAME = "Orla Labs B.V."
AMOUNT = Decimal("1000.00")
SPENT = Decimal("36.30")  # in USD, by the two sample rentals that have ended when the demo opens first
PAID_BEFORE = timedelta(days=2)
_SERIES = UUID("6f0c5f6e-5a35-4d0e-9d2a-9a1f6f0d3c11")  # of the ids of sample top-ups
_TEST_CARD = "4242424242424242"
_MOST_TRIES = 5
# A proxy for the outside world does not lead to our own machine.
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True, kw_only=True)
class Renter:
    """How the renter signs in and calls the API."""

    email: str
    password: str = field(repr=False)
    api_key: str = field(repr=False)


class SamplePaymentFailed(RuntimeError):
    """The test gateway did not take a sample payment."""


def open_sample_renter(*, password: str, now: datetime) -> Renter:
    """Store the renter with this password and a new key; return both. All or nothing.

    A second run finds person and organisation, sets the password and issues another key: the first one's were lost.
    """
    with transaction.atomic():
        user = User.objects.filter(email=EMAIL).first() or User.objects.create_user(EMAIL)
        user.set_password(password)
        user.save(update_fields=["password"])
        EmailAddress.objects.get_or_create(user=user, email=EMAIL, defaults={"verified": True, "primary": True})
        membership = Membership.objects.filter(user=user).first() or open_organisation(
            user=user,
            name=NAME,
            kind=Organisation.Kind.RENTER,
            type=Organisation.Type.BUSINESS,
            country="NL",
            now=now,
        )
        issued = issue_key(
            organisation=membership.organisation,
            name="Demo",
            scopes=[Scope.READ, Scope.TRADE, Scope.BILLING],
            created_by=user,
            expires_at=None,
            now=now,
        )
    return Renter(email=EMAIL, password=password, api_key=issued.secret)


def fill_sample_wallets(*, now: datetime) -> None:
    """Pay the sample amount into each wallet of the renter, once, two days before. Raises GatewayError, SamplePaymentFailed."""
    membership = Membership.objects.select_related("organisation", "user").get(user__email=EMAIL)
    paid = TopUp.objects.filter(organisation=membership.organisation, state=TopUp.State.PAID)
    if set(WALLET_CURRENCIES) <= set(paid.values_list("currency", flat=True)):
        return
    with _gateway_at(now - PAID_BEFORE, now=now):
        for currency in WALLET_CURRENCIES:
            amount = AMOUNT + SPENT if currency == "USD" else AMOUNT
            pay_sample_top_up(membership=membership, currency=currency, amount=amount, now=now - PAID_BEFORE)


@contextmanager
def _gateway_at(moment: datetime, *, now: datetime) -> Iterator[None]:
    """Turn the test gateway's clock back, and on again afterwards."""
    _control("clock", now=int(moment.timestamp()))
    try:
        yield
    finally:
        _control("clock", now=int(now.timestamp()))


def pay_sample_top_up(*, membership: Membership, currency: str, amount: Decimal, now: datetime) -> None:
    """Pay an amount into a wallet of a sample organisation at the test gateway, once.

    Start a top-up whose id follows from the organisation, pay it, look. Each step may have been done by a run before;
    a wallet whose sample top-up is paid is left alone. Raises GatewayError, SamplePaymentFailed.
    """
    top_up = _sample_top_up(membership, currency=currency, amount=amount, now=now)
    if top_up.state == TopUp.State.PAID:
        return
    if refresh_top_up(top_up, now=now).state != TopUp.State.PAID:
        _pay(top_up.checkout_session_id or "")
        if refresh_top_up(top_up, now=now).state != TopUp.State.PAID:
            raise SamplePaymentFailed(f"The sample payment in {currency} is {top_up.state}.")


def _sample_top_up(membership: Membership, *, currency: str, amount: Decimal, now: datetime) -> TopUp:
    """Return the first sample top-up that has not ended without money, started if need be."""
    organisation = membership.organisation
    ids = [uuid5(_SERIES, f"{organisation.pk}:{currency}:{number}") for number in range(_MOST_TRIES)]
    rows = TopUp.objects.in_bulk(ids)
    for top_up_id in ids:
        row = rows.get(top_up_id)
        if row is not None and row.state == TopUp.State.PAID:
            return row
        if row is None or row.state not in (TopUp.State.FAILED, TopUp.State.EXPIRED):
            return start_top_up(
                organisation=organisation,
                currency=currency,
                amount=amount,
                created_by=membership.user,
                now=now,
                return_url_of=lambda row_id: f"http://localhost/wallet/top-up/{row_id}/",
                locale="en",
                top_up_id=top_up_id,
            )
    raise SamplePaymentFailed(f"{_MOST_TRIES} sample payments in {currency} have failed.")


def _pay(checkout_session_id: str) -> None:
    _control(f"sessions/{checkout_session_id}/pay", method=_TEST_CARD)


def _control(path: str, **wishes: object) -> None:
    request = urllib.request.Request(  # noqa: S310  # our own loopback address
        f"{settings.FAKE_STRIPE_URL}/_control/{path}",
        data=json.dumps(wishes).encode(),
        headers={"Content-Type": "application/json"},
        method="POST",
    )
    with _direct.open(request, timeout=settings.STRIPE_TIMEOUT_SECONDS) as answer:
        answer.read()
