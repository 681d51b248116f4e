"""`/market/<slug>/order/`: from a ticket to an order in two steps: the review says everything, its button does it.

Nothing is held before the second step. The review makes the order's id and signs it, so that its button, pressed
twice or sent again by a reload, places one order. What was agreed to is sent back with it: where the most that can be
held has grown meanwhile, the review is shown anew with both figures.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_CEILING, Decimal
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.views import redirect_to_login
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from catalog.models import Gpu
from common.money import from_micros
from marketplace.book import live_asks
from marketplace.forms import LIMIT, ConfirmForm, OrderForm, as_sent
from marketplace.matching import Ask
from marketplace.models import Order
from marketplace.orders.instruction import Instruction, InstructionRefused
from marketplace.orders.place import QuoteExpired, place_order
from marketplace.pricing import Terms, hold_micros, is_far_above
from marketplace.queries.market import reference_of
from marketplace.queries.orders import last_ssh_key
from marketplace.quotes import Circumstances, quote_seen
from marketplace.rates import order_rate
from marketplace.review import Review, review
from marketplace.tax import OrderTax, order_tax, order_tax_percent
from marketplace.views.asker import Asker, Part, asker_in, asker_of
from marketplace.views.summary import sent_form, summary_of
from marketplace.words import FAR_ABOVE, OBSTACLES, REFUSALS, refused_field
from users.access import PAYERS, TRADERS, for_members, may
from users.models import Membership

_ANY_LIMIT = Decimal(1)
SIGN_UP = "sign-up"


@dataclass(frozen=True, kw_only=True)
class Moved:
    """What changed between two reviews: the price of the best offer, or the most that is held; before and now."""

    old_price: Decimal | None = None
    old_micros: int | None = None


@dataclass(frozen=True, kw_only=True)
class Desk:
    """A ticket that was sent: whose, for which GPU, and the book it meets."""

    membership: Membership
    asker: Asker
    gpu: Gpu
    asks: Sequence[Ask]
    sent: QueryDict
    form: OrderForm
    now: datetime

    def instruction(self, limit: Decimal | None = None) -> Instruction:
        """Return what the form asks for; of a best offer the limit comes with its quote."""
        asked = limit or self.form.cleaned_data["price"] or _ANY_LIMIT
        return self.form.instruction(self.gpu.pk, limit=asked, now=self.now)


@require_http_methods(["GET", "HEAD", "POST"])
def order(request: HttpRequest, slug: str) -> HttpResponseBase:
    """POST reviews a ticket. GET leads back to it filled in; a visitor signs in or up on the way."""
    if request.method == "POST":
        return review_ticket(request, slug)
    query = request.GET.copy()
    way = query.pop("way", [])
    book = f"{reverse('marketplace:book', args=[slug])}?{query.urlencode()}#ticket"
    if request.user.is_authenticated:
        return _see_other(book)
    return redirect_to_login(book, reverse("account_signup") if SIGN_UP in way else None)


@require_POST
@for_members(*TRADERS)
def review_ticket(request: HttpRequest, membership: Membership, slug: str) -> HttpResponse:
    """Show all that an order means, with the button that places it; or what is wrong with the ticket."""
    desk = _desk(request, membership, slug)
    return _show_review(request, desk) if desk.form.is_valid() else _show(request, desk, {})


@require_POST
@for_members(*TRADERS)
def place(request: HttpRequest, membership: Membership, slug: str) -> HttpResponse:
    """Place the order that was reviewed and lead to its page; or show the review anew, saying why."""
    desk = _desk(request, membership, slug)
    confirm = ConfirmForm(request.POST, organisation_id=membership.organisation_id)
    if not desk.form.is_valid():
        return _show(request, desk, {})
    if desk.asker.part != Part.TRADER or not confirm.is_valid():
        return _show_review(
            request, desk, confirm=confirm, trouble=" ".join(str(error) for error in confirm.non_field_errors())
        )
    if Order.objects.filter(pk=confirm.order_id, organisation=membership.organisation).exists():
        return _see_other(reverse("marketplace:order", args=[confirm.order_id]))
    return _place(request, desk, confirm)


@require_safe
def preview(request: HttpRequest, slug: str) -> HttpResponse:
    """Give the ticket's sentence and sum for what is typed into it at this moment. Nothing is stored."""
    now, asker = datetime.now(UTC), asker_of(request)
    gpu = get_object_or_404(Gpu, slug=slug)
    asks = live_asks(gpu.pk, now=now)
    form = sent_form(request.GET, asker=asker, asks=asks)
    summary = summary_of(form, gpu=gpu, asker=asker, asks=asks, now=now)
    context = {"summary": summary, "gpu": gpu, "asker": asker, "faults": form.errors, "is_update": True}
    response = render(request, "marketplace/parts/summary.html", context)
    response["Cache-Control"] = "private, no-store"
    response["X-Robots-Tag"] = "noindex"
    return response


def _desk(request: HttpRequest, membership: Membership, slug: str) -> Desk:
    now, asker = datetime.now(UTC), asker_in(membership)
    gpu = get_object_or_404(Gpu, slug=slug)
    asks = live_asks(gpu.pk, now=now)
    form = sent_form(request.POST, asker=asker, asks=asks)
    return Desk(membership=membership, asker=asker, gpu=gpu, asks=asks, sent=request.POST, form=form, now=now)


def _place(request: HttpRequest, desk: Desk, confirm: ConfirmForm) -> HttpResponse:
    """Place it, or show the review anew with what came between."""
    values = confirm.cleaned_data
    try:
        instruction = _instruction(desk, values)
        if not desk.form.is_best and _most_micros(desk, instruction) > values["agreed_micros"]:
            return _show_review(request, desk, moved=Moved(old_micros=values["agreed_micros"]))
        place_order(
            organisation_id=desk.membership.organisation_id,
            instruction=instruction,
            now=desk.now,
            placed_by_id=desk.membership.user_id,
            order_id=confirm.order_id,
        )
    except QuoteExpired:
        return _show_review(request, desk, moved=Moved(old_price=values["shown_price"]))
    except InstructionRefused as refused:
        return _ask_again(request, desk, confirm, refused)
    except tuple(REFUSALS) as refused:
        return _show_review(request, desk, trouble=REFUSALS[type(refused)])
    except IntegrityError:
        if not Order.objects.filter(pk=confirm.order_id).exists():
            raise
    return _see_other(reverse("marketplace:order", args=[confirm.order_id]))


def _ask_again(request: HttpRequest, desk: Desk, confirm: ConfirmForm, refused: InstructionRefused) -> HttpResponse:
    """Ask for a second word about a strange price; whatever else is out of place is corrected in the ticket."""
    if refused.code == FAR_ABOVE:
        confirm.add_error("confirm_price", _("Say that you mean this price."))
        return _show_review(request, desk, confirm=confirm)
    desk.form.add_error(*refused_field(refused))
    return _show(request, desk, {})


def _instruction(desk: Desk, agreed: dict[str, Any]) -> Instruction:
    """Return the order as it was agreed to. Raises QuoteExpired for a best offer without its quote."""
    if desk.form.is_best and (agreed["quote"] is None or agreed["shown_price"] is None):
        raise QuoteExpired
    plain = desk.instruction(agreed["shown_price"] if desk.form.is_best else None)
    return Instruction(
        **{
            **vars(plain),
            "quote_id": agreed["quote"] if desk.form.is_best else None,
            "confirm_price": agreed["confirm_price"],
            "ssh_public_key": agreed["ssh_public_key"],
        }
    )


def _most_micros(desk: Desk, instruction: Instruction) -> int:
    """Return the most that an order at its own price holds at the rates of now."""
    terms = Terms(
        gpu_count=instruction.gpu_count,
        hours=instruction.hours,
        fx_rate=order_rate(instruction.currency, now=desk.now).rate,
        tax_rate_percent=order_tax_percent(desk.membership.organisation_id, now=desk.now),
    )
    return hold_micros(instruction.limit, terms) * instruction.server_count


def _show_review(
    request: HttpRequest,
    desk: Desk,
    *,
    confirm: ConfirmForm | None = None,
    moved: Moved | None = None,
    trouble: str | Promise = "",
) -> HttpResponse:
    """Quote the ticket and show what it means."""
    organisation_id = desk.membership.organisation_id
    if desk.asker.part != Part.TRADER:
        return _show(request, desk, {})
    try:
        instruction, tax = desk.instruction(), order_tax(organisation_id, now=desk.now)
        seen = Circumstances(
            asks=desk.asks,
            rate=order_rate(instruction.currency, now=desk.now),
            tax_rate_percent=tax.rate_percent,
            wallet=desk.asker.wallet_state(instruction.currency),
        )
        quoted = quote_seen(organisation_id=organisation_id, instruction=instruction, seen=seen, now=desk.now)
    except InstructionRefused as refused:
        desk.form.add_error(*refused_field(refused))
        return _show(request, desk, {})
    except tuple(REFUSALS) as refused:
        return _show(request, desk, {"trouble": REFUSALS[type(refused)]})
    reviewed = review(instruction, quoted, is_best=desk.form.is_best)
    obstacle = OBSTACLES.get(quoted.obstacle.reason) if quoted.obstacle else None
    shown = {
        "review": reviewed,
        "moved": moved,
        "trouble": trouble or (REFUSALS[obstacle] if obstacle else ""),
        "can_place": obstacle is None and reviewed.can_be_placed,
        "missing": _missing(reviewed),
        **_confirmation(desk, reviewed, tax, confirm),
    }
    return _show(request, desk, shown)


def _confirmation(desk: Desk, reviewed: Review, tax: OrderTax, confirm: ConfirmForm | None) -> dict[str, Any]:
    """Return the form that agrees to a review, and what is said beside the figures."""
    quote = reviewed.quoted.quote
    reference = None if reviewed.is_best else reference_of(desk.gpu, asks=desk.asks, now=desk.now)
    agreed = {
        "quote": quote.pk if quote and reviewed.is_best else None,
        "shown_price": reviewed.price,
        "agreed_micros": reviewed.sums.hold_micros if reviewed.sums else 0,
    }
    return {
        "confirm": _confirm_form(desk, agreed, confirm),
        "tax": tax,
        "reference": reference,
        "is_far_above": reviewed.price is not None and is_far_above(reviewed.price, reference=reference),
    }


def _confirm_form(desk: Desk, agreed: dict[str, Any], sent: ConfirmForm | None) -> ConfirmForm:
    """Return the form with a fresh ticket; what was typed before stays, with what is wrong with it."""
    organisation = desk.membership.organisation
    if sent is None:
        initial = {**agreed, "ssh_public_key": last_ssh_key(organisation)}
        return ConfirmForm(organisation_id=organisation.pk, initial=initial)
    typed = {name: sent.data.get(name, "") for name in ("ssh_public_key", "confirm_price")}
    ticket = ConfirmForm.new_ticket(organisation.pk)
    form = ConfirmForm(as_sent({**agreed, **typed, "ticket": ticket}), organisation_id=organisation.pk)
    for error in sent.errors.get("confirm_price", ()):
        form.add_error("confirm_price", error)
    return form


def _show(request: HttpRequest, desk: Desk, context: dict[str, Any]) -> HttpResponse:
    """Show the review page. `review` is missing where the ticket itself has to be corrected."""
    page = {
        "gpu": desk.gpu,
        "asker": desk.asker,
        "form": desk.form,
        "now": desk.now,
        "may_pay": may(desk.membership, *PAYERS),
        "back": _ticket_href(desk),
        "own_price": _ticket_href(desk, kind=LIMIT),
    }
    found = context["review"].fills_now if "review" in context else ()
    if found:
        page["fewer"] = _ticket_href(desk, server_count=str(len(found)))
    return render(request, "marketplace/ticket.html", page | context)


def _ticket_href(desk: Desk, **changes: str) -> str:
    """Return the address of the ticket as it was sent, with changes."""
    sent = desk.sent
    named = [(name, value) for name in OrderForm.base_fields for value in sent.getlist(name) if value]
    query = urlencode([*((name, value) for name, value in named if name not in changes), *changes.items()])
    return f"{reverse('marketplace:book', args=[desk.gpu.slug])}?{query}#ticket"


def _missing(reviewed: Review) -> str:
    """Return what the wallet lacks as an amount to top up, in whole cents."""
    return f"{from_micros(reviewed.missing_micros).quantize(Decimal('0.01'), rounding=ROUND_CEILING)}"


def _see_other(href: str) -> HttpResponseRedirect:
    return HttpResponseRedirect(href, status=HTTPStatus.SEE_OTHER)  # whatever was sent, the next page is fetched
