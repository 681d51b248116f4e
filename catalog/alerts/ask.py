"""Asking to be told when a price falls."""

from datetime import datetime
from decimal import Decimal

from django.conf import settings
from django.db import transaction

from catalog.models import Gpu, PriceAlert
from users.models import Organisation, User
from users.queries import lock_organisation


class AlertRefused(Exception):
    """This alert cannot be kept; the kinds below say why."""


class AlreadyAsked(AlertRefused):
    """The person waits for the very same already."""


class TooManyAlerts(AlertRefused):
    """The organisation has as many open alerts as it may have."""


def ask_alert(
    *,
    organisation: Organisation,
    asked_by: User,
    gpu: Gpu,
    at_most_usd_per_gpu_hour: Decimal,
    place: str,
    language: str,
    site: str,
    now: datetime,
) -> PriceAlert:
    """Keep an alert and return it; `site` is the scheme and host under which the person reads it.

    1. Lock the organisation: two at once cannot pass the limit together. 2. Refuse the same again, and too many.
    3. Write the row. What is that cheap already is told with the next look. A second run raises AlreadyAsked.
    """
    with transaction.atomic():
        lock_organisation(organisation.pk)
        open_alerts = PriceAlert.objects.filter(organisation=organisation, ended_at__isnull=True)
        same = {"gpu": gpu, "place": place, "at_most_usd_per_gpu_hour": at_most_usd_per_gpu_hour}
        if open_alerts.filter(asked_by=asked_by, **same).exists():
            raise AlreadyAsked
        if open_alerts.count() >= settings.PRICE_ALERTS_PER_ORGANISATION:
            raise TooManyAlerts
        return PriceAlert.objects.create(
            organisation=organisation, asked_by=asked_by, language=language, site=site, created_at=now, **same
        )
