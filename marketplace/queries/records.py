"""What operators look through: the record of decisions, listings of every provider, prices that wait for a person."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Case, CharField, Count, Exists, OuterRef, QuerySet, When
from django.db.models.functions import Cast

from catalog.models import Offer, UnmappedName
from marketplace.models import Listing
from users.models import AuditRecord

RULED = "price.name_ruled"
_LISTED = 100


@dataclass(frozen=True, kw_only=True)
class UnclearName:
    """A name of the review queue with what an operator said of it last; None: it waits."""

    name: UnmappedName
    ruling: AuditRecord | None


def records(
    *,
    action: str = "",
    organisation_id: int | None = None,
    actor: str = "",
    subject: str = "",
    since: datetime | None = None,
    until: datetime | None = None,
) -> QuerySet[AuditRecord]:
    """Return recorded decisions, newest first, with who and about which organisation; blank filters keep all."""
    wanted: dict[str, Any] = {
        "action": action,
        "organisation_id": organisation_id,
        "actor__email__iexact": actor,
        "subject_id": subject,
        "at__gte": since,
        "at__lt": until,
    }
    found = AuditRecord.objects.filter(**{name: value for name, value in wanted.items() if value})
    return found.select_related("actor", "organisation").order_by("-at", "-pk")


def listings_in(state: str = "") -> QuerySet[Listing]:
    """Return every provider's listings, or those in a state: for rent first, then paused, the newest first."""
    order = Case(When(state=Listing.State.ACTIVE, then=0), When(state=Listing.State.PAUSED, then=1), default=2)
    found = Listing.objects.filter(state=state) if state else Listing.objects.all()
    return found.select_related("gpu", "server__provider__organisation").order_by(order, "-listed_at", "-pk")


def listings_by_state() -> Mapping[str, int]:
    """Return the number of listings in each state. One query."""
    counts = dict(Listing.objects.order_by().values_list("state").annotate(Count("pk")))
    return {state: counts.get(state, 0) for state in Listing.State.values}


def unclear_names() -> QuerySet[UnmappedName]:
    """Return the names that no rule could read, those with the most rows first."""
    return UnmappedName.objects.select_related("source").order_by("-rows", "cloud_slug", "gpu_name", "pk")


def with_rulings(names: Sequence[UnmappedName]) -> list[UnclearName]:
    """Return names with the last ruling on each. One query."""
    ids = [str(name.pk) for name in names]
    told = AuditRecord.objects.filter(action=RULED, subject_type="gpu_name", subject_id__in=ids)
    last = {record.subject_id: record for record in told.order_by("at", "pk")}
    return [UnclearName(name=name, ruling=last.get(str(name.pk))) for name in names]


def names_waiting() -> int:
    """Return how many unclear names nobody has ruled on. One query."""
    ruled = AuditRecord.objects.filter(action=RULED, subject_type="gpu_name", subject_id=OuterRef("number"))
    return UnmappedName.objects.annotate(number=Cast("pk", CharField())).exclude(Exists(ruled)).count()


def held_back_offers() -> Sequence[Offer]:
    """Return the newest prices that the sanity rules keep out, each with its reason."""
    held = Offer.objects.filter(gone_at__isnull=True).exclude(held_back="")
    return list(held.select_related("cloud", "gpu", "source").order_by("-first_seen_at", "-pk")[:_LISTED])
