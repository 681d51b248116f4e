"""Alerts for tests, and what telling them sends."""

from datetime import datetime, timedelta
from decimal import Decimal

from django.core import mail

from catalog.alerts.ask import ask_alert
from catalog.alerts.tell import tell_alerts
from catalog.models import Gpu, Offer, PriceAlert
from tests.factories import NOW, make_gpu, make_member
from users.models import User

SITE = "https://bourse.example"


def make_alert(*, price: str = "2.00", place: str = "either", gpu: Gpu | None = None, by: User | None = None, **values):
    """Return an open alert of `by`, or of a new owner, for an H100 unless told otherwise."""
    person = by or make_member()
    defaults = {"language": "en", "site": SITE, "now": NOW - timedelta(hours=1), **values}
    return ask_alert(
        organisation=person.membership.organisation,
        asked_by=person,
        gpu=gpu or Gpu.objects.filter(slug="h100-sxm").first() or make_gpu(),
        at_most_usd_per_gpu_hour=Decimal(price),
        place=place,
        **defaults,
    )


def told(capture, *, at: datetime = NOW) -> list[str]:
    """Look at all alerts; return the subjects of the mails that went out."""
    mail.outbox.clear()
    with capture(execute=True):
        tell_alerts(now=at)
    return [str(message.subject) for message in mail.outbox]


def price_is(price: str, *, at: datetime = NOW) -> None:
    """Let every offer cost this much, read at that time."""
    Offer.objects.update(
        price_usd_per_gpu_hour=Decimal(price), price_usd_per_hour=Decimal(price), observed_at=at - timedelta(minutes=5)
    )


def state_of(alert: PriceAlert) -> tuple[bool, datetime | None]:
    """Return whether the price is there, and when the alert was last told."""
    alert.refresh_from_db()
    return alert.met_since is not None, alert.told_at
