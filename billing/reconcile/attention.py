"""What an operator looks at: payments, disputes, and whatever waits for a person."""

from collections.abc import Sequence

from django.db.models import Case, Count, OuterRef, Q, QuerySet, Subquery, Sum, When

from billing.models import Account, Dispute, GatewayEvent, TopUp
from users.models import AuditRecord, Organisation

_LISTED = 100


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
