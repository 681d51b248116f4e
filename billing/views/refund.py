"""`/wallet/refund/`: unspent money back to the payments it came from, shown payment by payment before anything moves."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from http import HTTPStatus

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from billing.books import BooksStopped, open_stop
from billing.forms import RefundForm
from billing.models import Refund
from billing.queries.payments import Refundable, has_open_dispute, recent_refunds, refundable_by_currency
from billing.queries.wallets import Wallet, wallets_of
from billing.refunds.allocation import Payment, allocate
from billing.refunds.request import MoreThanIsLeft, RefundRefused, request_refund
from common import formats
from common.money import from_micros, from_minor_units
from users.access import PAYERS, for_members, may
from users.idempotency import Claim, KeptAnswer, OtherRequest, StillRunning, forget, keep, once
from users.models import Membership, Organisation

_RECENT = 50


class Block(StrEnum):
    """Why nothing can go back now."""

    PROVIDER = "provider"
    FROZEN = "frozen"
    OWING = "owing"
    DISPUTED = "disputed"
    STOPPED = "stopped"
    NOTHING = "nothing"


@dataclass(frozen=True, kw_only=True)
class Share:
    """What of a refund goes back to one payment."""

    payment: Payment
    amount_micros: int


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What could go back, by currency, and why it cannot now."""

    block: Block | None
    wallets: Sequence[Wallet]
    refundable: Sequence[Refundable]

    @property
    def open(self) -> list[Refundable]:
        """The currencies with something to give back."""
        return [each for each in self.refundable if each.most_micros > 0]


@require_http_methods(["GET", "HEAD", "POST"])
@for_members(*PAYERS)
def refund(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show what can go back; with an amount in the address, to which payments. POST sends it, once for each form."""
    offer = _offer(membership.organisation)
    form = _form(request, membership, offer)
    if request.method == "POST" and offer.block is None and form.is_valid() and _send(request, membership, form):
        return HttpResponseRedirect(f"{reverse('billing:refund')}#refunds", status=HTTPStatus.SEE_OTHER)
    context = {
        "organisation": membership.organisation,
        "offer": offer,
        "form": form,
        "shares": _shares(form, offer),
        "refunds": recent_refunds(membership.organisation, limit=_RECENT),
        "may_pay": may(membership, *PAYERS),
    }
    return render(request, "billing/refund.html", context)


def _offer(organisation: Organisation) -> Offer:
    if organisation.kind == Organisation.Kind.PROVIDER:
        return Offer(block=Block.PROVIDER, wallets=[], refundable=[])
    wallets = wallets_of(organisation.pk)
    refundable = refundable_by_currency(organisation, {each.currency: each.available_micros for each in wallets})
    return Offer(block=_block(organisation, wallets, refundable), wallets=wallets, refundable=refundable)


def _block(organisation: Organisation, wallets: Sequence[Wallet], refundable: Sequence[Refundable]) -> Block | None:
    """Return the first reason why nothing can go back, in the order of what helps most to know."""
    if any(wallet.owed_micros for wallet in wallets):
        return Block.OWING
    if has_open_dispute(organisation):
        return Block.DISPUTED
    if organisation.frozen_at is not None:
        return Block.FROZEN
    if not any(each.most_micros for each in refundable):
        return Block.NOTHING
    return Block.STOPPED if open_stop() is not None else None


def _form(request: HttpRequest, membership: Membership, offer: Offer) -> RefundForm:
    """Return the form as sent; as asked for in the address, with a ticket for sending it; or new, with all there is."""
    organisation_id = membership.organisation_id
    most_micros = {each.currency: each.most_micros for each in offer.open}
    data: Mapping[str, str] | None = request.POST if request.method == "POST" else None
    if data is None and request.GET.get("amount"):
        data = {**request.GET.dict(), "ticket": RefundForm.new_ticket(organisation_id)}
    first = next((each for each in offer.open if each.currency == request.GET.get("currency")), None)
    wished = first or next(iter(offer.open), None)
    initial = {"currency": wished.currency, "amount": f"{from_micros(wished.most_micros):.2f}"} if wished else None
    return RefundForm(data, organisation_id=organisation_id, most_micros=most_micros, initial=initial)


def _shares(form: RefundForm, offer: Offer) -> Sequence[Share]:
    """Return what of the amount asked for goes back to which payment, oldest first."""
    if not form.is_bound or not form.is_valid():
        return []
    currency = form.cleaned_data["currency"]
    source = next(each for each in offer.refundable if each.currency == currency)
    parts = allocate(
        source.payments,
        wanted_micros=form.amount_micros,
        available_micros=source.most_micros,
        step_micros=from_minor_units(1, currency=currency),
    )
    payments = {payment.top_up_id: payment for payment in source.payments}
    return [Share(payment=payments[part.top_up_id], amount_micros=part.amount_micros) for part in parts]


def _send(request: HttpRequest, membership: Membership, form: RefundForm) -> bool:
    """Send the refund of a form, unless this very form was sent before; say what became of it. False: see the form."""
    asked = f"{form.cleaned_data['currency']} {form.amount_micros}"
    try:
        with once(
            organisation=membership.organisation,
            key=f"refund-form:{form.cleaned_data['ticket']}",
            request_sha256=hashlib.sha256(asked.encode()).hexdigest(),
            now=datetime.now(UTC),
        ) as claim:
            if claim.answer is None:
                _say(request, _request(membership, form, claim))
        return True
    except MoreThanIsLeft as refusal:
        form.refuse_amount(refusal.refundable_micros)
    except (RefundRefused, BooksStopped):
        form.add_error(None, _("This has changed a moment ago. Nothing was sent back. Look again."))
    except (OtherRequest, StillRunning):
        form.renew()
        form.add_error(None, _("This form was sent before. Look at the list below, then send it again if need be."))
    return False


def _request(membership: Membership, form: RefundForm, claim: Claim) -> list[Refund]:
    """Ask for the refund. One that is refused has moved nothing, so the same form may be sent again."""
    try:
        refunds = request_refund(
            organisation=membership.organisation,
            currency=form.cleaned_data["currency"],
            amount=form.cleaned_data["amount"],
            requested_by=membership.user,
            now=datetime.now(UTC),
            request_id=claim.object_id,
        )
    except (RefundRefused, BooksStopped):
        forget(claim)
        raise
    keep(claim, KeptAnswer(status=HTTPStatus.SEE_OTHER, body=""))
    return refunds


def _say(request: HttpRequest, refunds: Sequence[Refund]) -> None:
    language = get_language() or settings.LANGUAGE_CODE
    for is_failed in (False, True):
        told = [each for each in refunds if (each.state == Refund.State.FAILED) == is_failed]
        if not told:
            continue
        micros = sum(each.amount_micros for each in told)
        amount = formats.total(from_micros(micros), told[0].top_up.currency, language=language)
        if is_failed:
            messages.error(
                request, _("The payment partner refused to send %s back. It is in your wallet again.") % amount
            )
        else:
            messages.success(request, _("%s has left your wallet and is on its way back.") % amount)
