"""Where a provider stands on its way to the next sold hour: what it has said, what is missing, how its review went."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q

from marketplace.limits import LIVE_FOR
from marketplace.models import Listing, Provider, ProviderApplication, ProviderReview, Server
from marketplace.providers.application import application_of, stated_in
from marketplace.providers.missing import Fleet, Next, missing_fields, next_steps
from users.models import Organisation


@dataclass(frozen=True, kw_only=True)
class Onboarding:
    """A provider and its way. `provider` is not stored where the organisation has not begun yet."""

    provider: Provider
    application: ProviderApplication | None
    missing: Sequence[str]
    steps: Sequence[Next]
    fleet: Fleet
    reviews: Sequence[ProviderReview]

    @property
    def last_reason(self) -> str:
        """Why the provider is where it is, as an operator said; "" where nobody had to."""
        return self.reviews[0].reason if self.reviews else ""


def onboarding_of(organisation: Organisation, *, now: datetime) -> Onboarding:
    """Return where a provider's organisation stands. Four queries; nothing is written."""
    provider = Provider.objects.filter(pk=organisation.pk).first() or Provider(
        organisation=organisation, created_at=now
    )
    application = application_of(provider)
    stated = stated_in(application, country=organisation.country)
    fleet = fleet_of(provider.pk, now=now)
    return Onboarding(
        provider=provider,
        application=application,
        missing=missing_fields(stated),
        steps=next_steps(state=provider.state, stated=stated, fleet=fleet),
        fleet=fleet,
        reviews=list(ProviderReview.objects.filter(provider_id=provider.pk).order_by("-at", "-pk")),
    )


def fleet_of(provider_id: int, *, now: datetime) -> Fleet:
    """Return how far a provider's servers came. One query."""
    is_verified = Q(verified_at__isnull=False)
    is_listed = Q(listings__state=Listing.State.ACTIVE)
    counts = Server.objects.filter(provider_id=provider_id, withdrawn_at=None).aggregate(
        servers=Count("pk", distinct=True),
        verified=Count("pk", filter=is_verified, distinct=True),
        listed=Count("pk", filter=is_verified & is_listed, distinct=True),
        selling=Count("pk", filter=is_verified & is_listed & Q(last_beat_at__gte=now - LIVE_FOR), distinct=True),
    )
    return Fleet(**counts)
