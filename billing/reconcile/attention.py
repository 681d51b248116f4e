"""What an operator looks at: payments, disputes, and whatever waits for a person."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Case, Count, Min, OuterRef, Q, QuerySet, Subquery, Sum, When

from billing.models import Account, Dispute, GatewayEvent, Posting, TopUp
from users.models import AuditRecord, Organisation

_LISTED = 100


@dataclass(frozen=True, kw_only=True)
class WaitingPayment:
    """Money of one payment on the clearing account since then. Less than nothing: more left for it than had come."""

    payment_id: str
    currency: str
    open_micros: int
    since: datetime


def top_ups(state: str = "") -> QuerySet[TopUp]:
    """Return top-ups with their organisations, newest first; `disputed_micros` is what disputes hold of each, or None."""
    standing = ~Q(disputes__state=Dispute.State.WON)
    rows = TopUp.objects.filter(state=state) if state else TopUp.objects.all()
    return (
        rows.select_related("organisation")
        .annotate(disputed_micros=Sum("disputes__amount_micros", filter=standing))
        .order_by("-created_at", "-pk")
    )


def top_ups_by_state() -> dict[str, int]:
    """Return how many top-ups are in each state, in the order of the states."""
    counted = dict(TopUp.objects.values_list("state").annotate(count=Count("pk")))
    return {state: counted.get(state, 0) for state in TopUp.State.values}


def top_ups_and_waiting() -> tuple[int, int]:
    """Return how many top-ups there are, and how many of them are held for review and wait for a decision. One query."""
    is_waiting = Q(state=TopUp.State.QUARANTINED, settled_at=None)
    found = TopUp.objects.aggregate(count=Count("pk"), waiting=Count("pk", filter=is_waiting))
    return found["count"], found["waiting"]


def waiting_payments() -> Sequence[WaitingPayment]:
    """Return the payments whose money waits on the clearing account, the longest waiting first."""
    rows = (
        Posting.objects.filter(account__kind=Account.Kind.UNMATCHED, entry__reference_type="payment")
        .values("entry__reference_id", "currency")
        .annotate(micros=Sum("amount_micros"), since=Min("entry__effective_at"))
        .exclude(micros=0)
        .order_by("since", "entry__reference_id")
    )
    return [
        WaitingPayment(
            payment_id=row["entry__reference_id"],
            currency=row["currency"],
            open_micros=int(row["micros"]),
            since=row["since"],
        )
        for row in rows[:_LISTED]
    ]


def waiting_events() -> Sequence[GatewayEvent]:
    """Return messages of the gateway that are not applied yet, the longest waiting first."""
    return list(GatewayEvent.objects.filter(applied_at=None).order_by("received_at", "pk")[:_LISTED])


def disputes() -> QuerySet[Dispute]:
    """Return disputes with their organisations, open ones first, then the newest."""
    open_first = Case(When(state=Dispute.State.OPEN, then=0), default=1)
    return Dispute.objects.select_related("top_up__organisation").order_by(open_first, "-opened_at", "-pk")


def frozen_organisations() -> Sequence[Organisation]:
    """Return frozen organisations, the last one first; `frozen_reason` says why, `owes` counts open receivables."""
    why = AuditRecord.objects.filter(organisation=OuterRef("pk"), action="organisation.frozen").order_by("-at", "-pk")
    owing = Q(accounts__kind=Account.Kind.RECEIVABLE, accounts__posted_micros__lt=0)
    rows = Organisation.objects.filter(frozen_at__isnull=False).annotate(
        frozen_reason=Subquery(why.values("reason")[:1]), owes=Count("accounts", filter=owing)
    )
    return list(rows.order_by("-frozen_at", "-pk")[:_LISTED])
