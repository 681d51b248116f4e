"""Starting a top-up: a row first, then a page at the gateway where it is paid."""

import hashlib
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Q, Sum
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from uuid6 import uuid7

from billing.accounts import WALLET_CURRENCIES, open_account
from billing.gateway import client
from billing.models import Account, Dispute, TopUp
from billing.topups.checkout import open_checkout
from billing.topups.limits import History, Limits, Tier, breach_of, left_micros
from common import formats
from common.money import MICROS, TooFine, from_micros, to_micros
from users.models import Organisation, User
from users.queries import lock_organisation

OPEN_FOR = timedelta(hours=2)
CLEAN_AFTER = timedelta(days=7)
_HOUR, _DAY, _WEEK = timedelta(hours=1), timedelta(days=1), timedelta(days=7)
_LARGEST = Decimal(10) ** 9  # beyond any limit, and well within a bigint of micros


class TopUpsOff(Exception):
    """This site has no payment gateway."""


class TopUpRefused(Exception):
    """It may not be started, and nothing was written: `code` says why, `message` in words, `field` where."""

    def __init__(self, *, field: str | None, code: str, message: str) -> None:
        super().__init__(message)
        self.field, self.code, self.message = field, code, message


class AmountRefused(TopUpRefused):
    """The amount is not one that may be paid in: `invalid`, `too_fine`, `below_minimum` or `above_limit`."""


class CurrencyRefused(TopUpRefused):
    """There are no wallets in this currency."""


class NotARenter(TopUpRefused):
    """Only who rents has wallets: a provider is paid, and pays nothing in."""


class TooManyTopUps(TopUpRefused):
    """As many as may be were started within an hour; the next may in `wait_seconds`."""

    def __init__(self, *, wait_seconds: int) -> None:
        message = _("Too many top-ups were started within an hour. Finish one of them, or try again later.")
        super().__init__(field=None, code="too_many_top_ups", message=message)
        self.wait_seconds = wait_seconds


class OtherTopUp(Exception):
    """The id belongs to another top-up."""


def start_top_up(
    *,
    organisation: Organisation,
    currency: str,
    amount: Decimal,
    created_by: User | None,
    now: datetime,
    return_url_of: Callable[[UUID], str],
    locale: str,
    top_up_id: UUID | None = None,
) -> TopUp:
    """Write a top-up and open its payment page; return it with `checkout_url`.

    1. Check currency and amount (whole cents); lock the organisation, so that two at once cannot pass a limit together.
    2. Check its kind and its limits; write the row with the gateway's key and all that will be asked there. Commit.
    3. Ask the gateway, outside any transaction, and note its answer (`checkout.open_checkout`).

    `return_url_of` makes the address, from the row's id, where the payer comes back to. A second run with the same
    `top_up_id` goes on with the same row, so the same page; without one each run is another top-up. A frozen
    organisation may pay in: what it owes is paid first, and that may be what it was frozen for.

    Raises TopUpsOff or TopUpRefused, nothing written then; OtherTopUp; GatewayUnavailable: the row stays `created` and
    is tried again with the same key by beat or by the same `top_up_id`; GatewayRefused: the row is `failed`.
    """
    if not client.is_on():
        raise TopUpsOff
    amount_micros = _checked_micros(amount, currency=currency)
    new_id = top_up_id or uuid7()
    with transaction.atomic():
        locked = lock_organisation(organisation.pk)
        top_up = TopUp.objects.filter(pk=new_id).first()
        if top_up is None:
            _check_may_pay(locked, amount_micros, currency=currency, now=now)
            top_up = TopUp.objects.create(
                id=new_id,
                organisation=locked,
                wallet=open_account(kind=Account.Kind.WALLET, currency=currency, owner_id=locked.pk),
                currency=currency,
                amount_micros=amount_micros,
                gateway_key=hashlib.sha256(f"checkout:{new_id}:1".encode()).hexdigest(),
                gateway_request={"return_url": return_url_of(new_id), "locale": locale},
                created_by=created_by,
                created_at=now,
                expires_at=now + OPEN_FOR,
            )
        elif (top_up.organisation_id, top_up.currency, top_up.amount_micros) != (locked.pk, currency, amount_micros):
            raise OtherTopUp
    return open_checkout(top_up, now=now)


def _checked_micros(amount: Decimal, *, currency: str) -> int:
    if currency not in WALLET_CURRENCIES:
        message = _("Choose one of these: %s.") % ", ".join(WALLET_CURRENCIES)
        raise CurrencyRefused(field="currency", code="unknown_currency", message=message)
    if not amount.is_finite():
        raise _amount_refused("invalid", _("Give the amount as a number."))
    if abs(amount) > _LARGEST:
        raise _amount_refused("above_limit", _("This is more than can be paid in at once."))
    try:
        return to_micros(amount, currency=currency)
    except TooFine:
        raise _amount_refused("too_fine", _("Give the amount in whole cents.")) from None


def _check_may_pay(organisation: Organisation, amount_micros: int, *, currency: str, now: datetime) -> None:
    if organisation.kind != Organisation.Kind.RENTER:
        message = _("Only organisations that rent have wallets.")
        raise NotARenter(field=None, code="not_a_renter", message=message)
    history, limits = history_of(organisation, now=now), limits_in_force()
    match breach_of(amount_micros, history=history, limits=limits):
        case "below_minimum":
            least = _in_words(limits.minimum_micros, currency)
            raise _amount_refused("below_minimum", _("The smallest top-up is %s.") % least)
        case "above_limit":
            most = _in_words(left_micros(history=history, limits=limits), currency)
            message = _("You can pay in at most %s now. The limit grows with time and with payments made.") % most
            raise _amount_refused("above_limit", message)
        case "too_many":
            raise TooManyTopUps(wait_seconds=_seconds_until_next(organisation, now=now))
        case None:
            return


def history_of(organisation: Organisation, *, now: datetime) -> History:
    """Return what limits are judged by. Two queries."""
    counts = ~Q(state__in=[TopUp.State.FAILED, TopUp.State.EXPIRED])
    own = TopUp.objects.filter(organisation=organisation)
    recent = own.filter(created_at__gt=now - _WEEK).aggregate(
        week=Sum("amount_micros", filter=counts),
        day=Sum("amount_micros", filter=counts & Q(created_at__gt=now - _DAY)),
        started=Count("pk", filter=Q(created_at__gt=now - _HOUR)),
    )
    disputed = Dispute.objects.exclude(state=Dispute.State.WON).values("top_up_id")
    clean = own.filter(state=TopUp.State.PAID, paid_at__lte=now - CLEAN_AFTER).exclude(pk__in=disputed)
    return History(
        age=max(timedelta(0), now - organisation.created_at),
        clean_payments=clean.count(),
        day_micros=int(recent["day"] or 0),
        week_micros=int(recent["week"] or 0),
        started_in_hour=recent["started"],
    )


def limits_in_force() -> Limits:
    """Return the limits from the settings."""
    return Limits(
        minimum_micros=settings.TOP_UP_MINIMUM * MICROS,
        per_hour=settings.TOP_UPS_PER_HOUR,
        tiers=[
            Tier(
                age=timedelta(days=days),
                clean_payments=payments,
                per_day_micros=per_day * MICROS,
                per_week_micros=per_week * MICROS,
            )
            for days, payments, per_day, per_week in settings.TOP_UP_TIERS
        ],
    )


def _seconds_until_next(organisation: Organisation, *, now: datetime) -> int:
    newest = TopUp.objects.filter(organisation=organisation, created_at__gt=now - _HOUR).order_by("-created_at")
    counted = list(newest.values_list("created_at", flat=True)[: settings.TOP_UPS_PER_HOUR])
    return int((min(counted, default=now) + _HOUR - now).total_seconds()) + 1


def _amount_refused(code: str, message: str) -> AmountRefused:
    return AmountRefused(field="amount", code=code, message=message)


def _in_words(micros: int, currency: str) -> str:
    return formats.total(from_micros(micros), currency, language=get_language() or settings.LANGUAGE_CODE)
