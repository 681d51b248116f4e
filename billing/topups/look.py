"""Asking the gateway how a top-up stands, and moving its row on: forward only, money by `credit` alone.

The gateway is asked first, outside any transaction; what it said is then written by one conditional update. So a
second run, or another at the same time, ends in the same state.
"""

from datetime import datetime
from uuid import UUID

from billing.gateway import client
from billing.gateway.objects import CheckoutSession, Payment
from billing.models import TopUp
from billing.topups.checkout import note_checkout
from billing.topups.credit import credit_top_up, named_by
from billing.topups.match import row_id_of
from billing.topups.states import Seen, before, state_of


def refresh_top_up(top_up: TopUp, *, now: datetime) -> TopUp:
    """Ask about one top-up and return it as it is then. One that is not yet at the gateway, or is paid, is not asked for.

    Raises GatewayError.
    """
    if top_up.checkout_session_id and top_up.state != TopUp.State.PAID:
        follow_checkout(client.get_checkout(top_up.checkout_session_id), now=now)
        top_up.refresh_from_db()
    return top_up


def follow_checkout(session: CheckoutSession, *, now: datetime) -> None:
    """Bring the top-up of a payment page to where the page and its payment are. Raises GatewayError."""
    payment = client.get_payment(session.payment_intent_id) if session.payment_intent_id else None
    top_up_id = _noted(session)
    if top_up_id is not None:
        state = state_of(Seen(checkout=session.status, payment=payment.status if payment else ""))
        TopUp.objects.filter(pk=top_up_id, state__in=before(state)).update(state=state)
    if payment is not None:
        credit_top_up(payment=payment, now=now)


def follow_payment(payment: Payment, *, now: datetime) -> None:
    """Bring the top-up of a payment to where the payment is. Raises GatewayError.

    What a payment without money means is told by its page, which is asked for; for one without a top-up nothing is done.
    """
    if payment.status == "succeeded":
        credit_top_up(payment=payment, now=now)
        return
    for top_up in TopUp.objects.filter(named_by(payment)):
        refresh_top_up(top_up, now=now)


def _noted(session: CheckoutSession) -> UUID | None:
    """Return the row of a payment page, which then knows its page; None for a page that is no row's or another's."""
    row_id = row_id_of(session.top_up_id)
    if row_id is not None:
        note_checkout(row_id, session)
    return TopUp.objects.filter(checkout_session_id=session.id).values_list("pk", flat=True).first()
