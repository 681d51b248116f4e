"""The payment page of a top-up at the gateway: one page per row, whatever is lost on the way.

The key and all that is asked stand in the row before the call. So whoever asks again, at once or an hour later, asks
the very same, and the gateway answers with the same page. What a row does not know is whether a call that failed took
effect: nothing else is asked for it until that is known.
"""

import hashlib
import logging
from collections.abc import Collection
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from billing.gateway import client
from billing.gateway.errors import GatewayRefused, GatewayUnavailable, KeyConflict
from billing.gateway.objects import CheckoutSession
from billing.models import GatewayCustomer, TopUp
from billing.topups.states import before
from users.models import Organisation
from users.queries import owner_addresses_of

log = logging.getLogger(__name__)
_CLOCKS_DIFFER_BY = timedelta(minutes=5)


def open_checkout(top_up: TopUp, *, now: datetime) -> TopUp:
    """Ask the gateway for the top-up's payment page and note it; return the row as it is then.

    Nothing is asked for a row that has been answered. No lock; the answer is stored by conditional updates, so of two
    at once both store the same. Raises GatewayUnavailable (the row stays `created`) or GatewayRefused (it is `failed`).
    """
    if top_up.state != TopUp.State.CREATED:
        return top_up
    try:
        session = _ask_for_checkout(top_up, now=now)
    except GatewayRefused as refusal:
        log.error("The gateway refused top-up %s: %s %s", top_up.pk, refusal.code, refusal)
        reason = refusal.code or "refused"
        TopUp.objects.filter(pk=top_up.pk, state=TopUp.State.CREATED).update(
            state=TopUp.State.FAILED, failure_reason=reason[:200]
        )
        raise
    note_checkout(top_up.pk, session)
    top_up.refresh_from_db()
    return top_up


def note_checkout(top_up_id: UUID, session: CheckoutSession) -> None:
    """Store what is known of the payment page, once; a row not yet at the gateway is now. A second run changes nothing."""
    row = TopUp.objects.filter(pk=top_up_id)
    its_own = row.filter(
        checkout_session_id=session.id
    )  # another page of the same row, which we never made, counts for nothing
    with transaction.atomic():
        row.filter(checkout_session_id=None).update(checkout_session_id=session.id, expires_at=session.expires_at)
        its_own.filter(checkout_url="").update(checkout_url=session.url or "")
        its_own.filter(state__in=before(TopUp.State.OPEN)).update(state=TopUp.State.OPEN)
        if not TopUp.objects.filter(payment_intent_id=session.payment_intent_id).exists():
            its_own.filter(payment_intent_id=None).update(payment_intent_id=session.payment_intent_id)


def checkouts_of(top_up_ids: Collection[UUID], *, since: datetime) -> dict[UUID, CheckoutSession]:
    """Look for payment pages by the rows' ids that they bear, among those made since then."""
    wanted = {str(top_up_id): top_up_id for top_up_id in top_up_ids}
    sessions = client.checkouts_since(since - _CLOCKS_DIFFER_BY)
    return {wanted[session.top_up_id]: session for session in sessions if session.top_up_id in wanted}


def _ask_for_checkout(top_up: TopUp, *, now: datetime) -> CheckoutSession:
    try:
        return client.create_checkout(
            top_up_id=str(top_up.pk),
            amount_micros=top_up.amount_micros,
            currency=top_up.currency,
            customer_id=_customer_of(top_up.organisation, now=now),
            success_url=top_up.gateway_request["return_url"],
            cancel_url=top_up.gateway_request["return_url"],
            expires_at=top_up.expires_at or now,
            locale=top_up.gateway_request["locale"],
            key=top_up.gateway_key,
        )
    except KeyConflict as conflict:  # asked with other values, by an older release perhaps: what it made is the page
        found = checkouts_of([top_up.pk], since=top_up.created_at)
        if top_up.pk not in found:
            raise GatewayUnavailable(str(conflict)) from conflict
        return found[top_up.pk]


def _customer_of(organisation: Organisation, *, now: datetime) -> str:
    """Return the gateway's customer, made at the first top-up. Of two made at once the first stored is used."""
    known = GatewayCustomer.objects.filter(organisation=organisation).first()
    if known is not None:
        return known.customer_id
    email = next(iter(owner_addresses_of(organisation)), "")
    asked = f"customer:{organisation.pk}:{email}:{organisation.name}"
    customer_id = client.create_customer(
        organisation_id=organisation.pk,
        email=email,
        name=organisation.name,
        key=hashlib.sha256(asked.encode()).hexdigest(),
    )
    defaults = {"customer_id": customer_id, "created_at": now}
    return GatewayCustomer.objects.get_or_create(organisation=organisation, defaults=defaults)[0].customer_id
