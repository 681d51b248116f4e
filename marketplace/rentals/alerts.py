"""Tell an organisation in time that its money runs out: at 24 h, 3 h and 30 min before the first rental would stop.

Per wallet with open-ended rentals that run: see how long its money lasts (`runway`), raise and clear alerts, mail the
owners and the billing members once for the lowest level that was crossed. One transaction a wallet; the row of an alert
decides who tells. A second run tells nothing again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Count, F, QuerySet, Sum
from django.utils.translation import get_language

from marketplace.limits import HOLD_SPARE_MICROS_PER_HOUR
from marketplace.models import HeldHours, Rental, RunwayAlert
from marketplace.pricing import hold_micros
from marketplace.rentals.burn import terms_of
from marketplace.rentals.runway import HOUR, LOOKS_AHEAD, Hourly, changes, money_lasts_until
from marketplace.webhooks import tell_of_low_balance
from users.mails import mail_after_commit
from users.models import Organisation, Role


@dataclass(frozen=True, kw_only=True)
class _Wallet:
    """A wallet to be judged, with its open-ended rentals that run and the levels whose alerts are open."""

    account_id: int
    organisation_id: int
    currency: str
    available_micros: int
    rentals: list[Rental] = field(default_factory=list)
    open_levels: set[int] = field(default_factory=set)


def tell_runway(*, now: datetime) -> int:
    """Raise and clear the alerts of every wallet; return how many wallets were told something. Four queries and the news."""
    wallets = _wallets()
    latest = _latest_held([rental for wallet in wallets for rental in wallet.rentals])
    told = 0
    for wallet in wallets:
        hourly = [_hourly(rental, latest[rental.pk]) for rental in wallet.rentals]
        told += _tell(wallet, money_lasts_until(wallet.available_micros, hourly, within=now + LOOKS_AHEAD), now)
    return told


def _wallets() -> list[_Wallet]:
    """Return the wallets whose money may last too short for such rentals, and those with an alert that is open."""
    found: dict[int, _Wallet] = {}
    for alert in RunwayAlert.objects.filter(cleared_at__isnull=True).select_related("wallet"):
        found.setdefault(alert.wallet_id, _wallet(alert)).open_levels.add(alert.level_seconds)
    running = Rental.objects.filter(state=Rental.State.RUNNING, hours__isnull=True)
    near = {*found, *_short_of_money(running)}
    for rental in running.filter(wallet__in=near).select_related("wallet").order_by("pk"):
        found.setdefault(rental.wallet_id, _wallet(rental)).rentals.append(rental)
    return list(found.values())


def _short_of_money(running: QuerySet[Rental]) -> Iterable[int]:
    """Return the wallets that have less than as many hours of all their rentals as we look ahead, and some more."""
    hours = LOOKS_AHEAD // HOUR + 2
    spare = F("rentals") * HOLD_SPARE_MICROS_PER_HOUR * 2
    by_wallet = (
        running.order_by()
        .values("wallet_id")
        .annotate(
            available=F("wallet__posted_micros") - F("wallet__held_micros"),
            burn=Sum("hold__burn_micros_per_hour"),
            rentals=Count("pk"),
        )
    )
    return by_wallet.filter(available__lt=hours * (F("burn") + spare)).values_list("wallet_id", flat=True)


def _wallet(row: Rental | RunwayAlert) -> _Wallet:
    return _Wallet(
        account_id=row.wallet_id,
        organisation_id=row.organisation_id,
        currency=row.currency,
        available_micros=row.wallet.available_micros,
    )


def _latest_held(rentals: Sequence[Rental]) -> dict[UUID, HeldHours]:
    held = HeldHours.objects.filter(rental__in=rentals).order_by("rental_id", "-first_hour").distinct("rental_id")
    return {row.rental_id: row for row in held}


def _hourly(rental: Rental, held: HeldHours) -> Hourly:
    assert rental.paid_until is not None  # the database holds it for whatever runs
    return Hourly(
        paid_until=rental.paid_until,
        hour_micros=hold_micros(rental.price_usd_per_gpu_hour, terms_of(rental, held)),
        lease_until=rental.lease_until,
    )


def _tell(wallet: _Wallet, lasts_until: datetime | None, now: datetime) -> bool:
    change = changes(None if lasts_until is None else lasts_until - now, frozenset(wallet.open_levels))
    if not change.raised and not change.cleared:
        return False
    present = RunwayAlert.objects.filter(wallet=wallet.account_id, cleared_at__isnull=True)
    with transaction.atomic():
        present.filter(level_seconds__in=change.cleared).update(cleared_at=now)
        if lasts_until is None:
            return False
        fresh = [level for level in change.raised if _is_new(wallet, level, lasts_until, now)]
        if fresh:
            _mail(wallet, level_seconds=min(fresh), lasts_until=lasts_until)
            tell_of_low_balance(
                organisation_id=wallet.organisation_id,
                currency=wallet.currency,
                available_micros=wallet.available_micros,
                level_seconds=min(fresh),
                lasts_until=lasts_until,
                now=now,
            )
    return bool(fresh)


def _is_new(wallet: _Wallet, level_seconds: int, lasts_until: datetime, now: datetime) -> bool:
    _, created = RunwayAlert.objects.get_or_create(
        wallet_id=wallet.account_id,
        level_seconds=level_seconds,
        cleared_at=None,
        defaults={
            "organisation_id": wallet.organisation_id,
            "currency": wallet.currency,
            "lasts_until": lasts_until,
            "raised_at": now,
        },
    )
    return created


def _mail(wallet: _Wallet, *, level_seconds: int, lasts_until: datetime) -> None:
    organisation = Organisation.objects.get(pk=wallet.organisation_id)
    people = organisation.memberships.filter(role__in=[Role.OWNER, Role.BILLING], user__is_active=True)
    mail_after_commit(
        template="marketplace/mail/runway.txt",
        context={
            "organisation": organisation,
            "currency": wallet.currency,
            "hours": level_seconds // 3600,
            "minutes": level_seconds // 60,
            "lasts_until": lasts_until,
        },
        to=list(people.order_by("pk").values_list("user__email", flat=True)),
        language=get_language() or settings.LANGUAGE_CODE,
        is_optional=True,
    )
