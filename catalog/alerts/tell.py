"""Tell who waits for a price that it is there: by mail to the person, by webhook to the organisation's programs.

Per open alert: the price now, the decision (`crossing`), a conditional update that takes it, and in the same
transaction the webhook's event, the message with its link, and the mail that leaves after the commit. The row of the
alert decides who tells: a doubled or late run tells nothing twice.
"""

import logging
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db import DatabaseError, transaction
from django.db.models import F
from django.urls import reverse
from django.utils.translation import override

from catalog.alerts.crossing import Step, next_step
from catalog.alerts.end import sha256_of
from catalog.freshness import LIVE_FOR
from catalog.models import AlertMessage, Cloud, Offer, PriceAlert
from catalog.queries import GpuPrices, price_table
from users.mails import mail_after_commit
from users.models import EventType
from users.webhooks.events import emit
from users.webhooks.signing import rfc3339

_TOKEN_BYTES = 32
_Place = PriceAlert.Place
log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """The lowest live price of where an alert looks, USD per GPU-hour, and when it was read."""

    price: Decimal
    is_exchange: bool
    observed_at: datetime


def tell_alerts(*, now: datetime) -> int:
    """Tell every alert whose price has fallen to it; return how many were told. Five queries and the news.

    An alert that fails is logged and looked at again with the next run; the others go on.
    """
    alerts = _open_alerts()
    prices = price_table(now=now, gpu_slugs={alert.gpu.slug for alert in alerts}) if alerts else {}
    return sum(_look_at(alert, prices, now=now) for alert in alerts)


def _open_alerts() -> list[PriceAlert]:
    """Return the open alerts of people who still act for the organisation they asked for."""
    open_ones = PriceAlert.objects.filter(
        ended_at__isnull=True, asked_by__is_active=True, asked_by__membership__organisation=F("organisation")
    )
    return list(open_ones.select_related("gpu", "asked_by", "organisation").order_by("pk"))


def _look_at(alert: PriceAlert, prices: Mapping[str, GpuPrices], *, now: datetime) -> bool:
    seen = _lowest(alert, prices[alert.gpu.slug], now=now)
    step = next_step(
        alert.at_most_usd_per_gpu_hour, is_met=alert.met_since is not None, price=None if seen is None else seen.price
    )
    if step is Step.WAIT_AGAIN:
        PriceAlert.objects.filter(pk=alert.pk, met_since=alert.met_since).update(met_since=None)
    if step is not Step.TELL or seen is None:
        return False
    try:
        return _tell(alert, seen, now=now)
    except DatabaseError:
        log.exception("Price alert %s could not be told", alert.pk)
        return False


def _lowest(alert: PriceAlert, prices: GpuPrices, *, now: datetime) -> _Seen | None:
    found = [seen for seen in _live(prices, now=now) if alert.place in (_Place.EITHER, _place_of(seen))]
    return min(found, key=lambda seen: (seen.price, not seen.is_exchange), default=None)


def _live(prices: GpuPrices, *, now: datetime) -> Iterable[_Seen]:
    ask, elsewhere = prices.exchange, prices.elsewhere["on_demand"]
    if ask and now - ask.observed_at < LIVE_FOR:
        yield _Seen(price=ask.best_ask_per_gpu_hour, is_exchange=True, observed_at=ask.observed_at)
    if elsewhere:
        yield _Seen(price=elsewhere.min, is_exchange=False, observed_at=elsewhere.observed_at)


def _place_of(seen: _Seen) -> PriceAlert.Place:
    return _Place.EXCHANGE if seen.is_exchange else _Place.ELSEWHERE


def _tell(alert: PriceAlert, seen: _Seen, *, now: datetime) -> bool:
    cloud = None if seen.is_exchange else _cloud_of(alert, seen, now=now)
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    with transaction.atomic():
        waiting = PriceAlert.objects.filter(pk=alert.pk, met_since__isnull=True, ended_at__isnull=True)
        if not waiting.update(met_since=now, told_at=now):
            return False
        AlertMessage.objects.create(
            alert=alert,
            price_usd_per_gpu_hour=seen.price,
            cloud_name=cloud.name if cloud else "",
            token_sha256=sha256_of(token),
            told_at=now,
        )
        _emit(alert, seen, cloud=cloud, now=now)
        _mail(alert, seen, cloud=cloud, token=token)
    return True


def _cloud_of(alert: PriceAlert, seen: _Seen, *, now: datetime) -> Cloud | None:
    """Return the cloud that sells at this price; None where it has changed its price meanwhile."""
    offers = Offer.objects.eligible().live(now).filter(gpu=alert.gpu, market=Offer.MarketKind.ON_DEMAND)
    lowest = offers.filter(price_usd_per_gpu_hour=seen.price).select_related("cloud").order_by("cloud__slug").first()
    return lowest.cloud if lowest else None


def _emit(alert: PriceAlert, seen: _Seen, *, cloud: Cloud | None, now: datetime) -> None:
    data = {
        "alert": str(alert.pk),
        "gpu": alert.gpu.slug,
        "at_most_usd_per_gpu_hour": f"{alert.at_most_usd_per_gpu_hour:.4f}",
        "price_usd_per_gpu_hour": f"{seen.price:f}",
        "place": _place_of(seen).value,
        "cloud": cloud.slug if cloud else None,
        "observed_at": rfc3339(seen.observed_at),
    }
    emit(
        organisation_id=alert.organisation_id,
        type=EventType.PRICE_BELOW,
        data=data,
        subject_id=alert.pk,
        key=now.isoformat(),
        now=now,
    )


def _mail(alert: PriceAlert, seen: _Seen, *, cloud: Cloud | None, token: str) -> None:
    with override(alert.language):
        link = f"{alert.site}{reverse('catalog:end-alert-by-link', args=[token])}"
    mail_after_commit(
        template="catalog/mail/price_alert.txt",
        context={"alert": alert, "seen": seen, "cloud": cloud, "link": link},
        to=[alert.asked_by.email],
        language=alert.language,
        is_optional=True,
        headers={"List-Unsubscribe": f"<{link}>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click"},
    )
