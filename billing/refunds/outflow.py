"""What refunds and disputes have taken from a payment. Whoever changes that holds the top-up's row, and reads after that.

Lock order: the top-up, then accounts by id; its refunds and disputes change under its lock alone.
"""

from uuid import UUID

from django.db.models import Sum

from billing.models import Dispute, Refund, TopUp
from billing.refunds.allocation import Share, share_outflow


def lock_top_up(top_up_id: UUID) -> TopUp:
    """Return a top-up, locked until the transaction ends. Foreign keys to it do not wait."""
    return TopUp.objects.select_for_update(no_key=True).get(pk=top_up_id)


def share_of(top_up: TopUp, *, change_micros: int) -> Share:
    """Return who bears what is about to leave the payment, or (negative) who gets what comes back to it.

    Ask before the rows change, while the top-up is locked.
    """
    before_micros = refunded_micros(top_up) + disputed_micros(top_up)
    return share_outflow(
        paid_micros=top_up.amount_micros, before_micros=before_micros, after_micros=before_micros + change_micros
    )


def refunded_micros(top_up: TopUp) -> int:
    """Return the sum of a payment's refunds that have not failed."""
    alive = Refund.objects.filter(top_up=top_up).exclude(state=Refund.State.FAILED)
    return int(alive.aggregate(micros=Sum("amount_micros"))["micros"] or 0)


def disputed_micros(top_up: TopUp) -> int:
    """Return the sum of a payment's disputes that were not won."""
    standing = Dispute.objects.filter(top_up=top_up).exclude(state=Dispute.State.WON)
    return int(standing.aggregate(micros=Sum("amount_micros"))["micros"] or 0)


def note_refunded(top_up: TopUp) -> None:
    """Store on the top-up what its refunds sum to, at most its amount, after one of them changed."""
    refunded = min(top_up.amount_micros, refunded_micros(top_up))
    TopUp.objects.filter(pk=top_up.pk).update(refunded_micros=refunded)
