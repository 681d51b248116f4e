"""The ticket as it stands, in a sentence and a sum, from the book and the rates of this moment. Nothing is stored."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.http import QueryDict
from django.utils.functional import Promise

from catalog.models import Gpu
from marketplace.forms import BEST, LIMIT, LOT, OrderForm, as_sent, wished
from marketplace.matching import Ask
from marketplace.queries.market import Market
from marketplace.quotes import Circumstances, price_order
from marketplace.rates import FxTooOld, order_rate
from marketplace.review import Review, review
from marketplace.tax import NotSold, OrderTax, stored_order_tax
from marketplace.views.asker import Asker
from marketplace.words import REFUSALS

USUAL_HOURS = 24
_ANY_LIMIT = Decimal(1)  # of a best offer the quote finds the price


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What the ticket means. `tax` None: not decided yet, sums are net then. `trouble`: why there is nothing to say."""

    review: Review | None = None
    tax: OrderTax | None = None
    trouble: str | Promise = ""


@dataclass(frozen=True, kw_only=True)
class Ticket:
    """A ticket to begin with, and what it means as it stands."""

    form: OrderForm
    summary: Summary


def ticket_of(query: QueryDict, *, market: Market, asker: Asker, asks: Sequence[Ask], now: datetime) -> Ticket:
    """Return a ticket that starts with what the address asks for, as far as it makes sense, else with the usual."""
    usual_price = market.last_price if market.best_ask is None else market.best_ask
    initial = wished(
        query,
        {
            "kind": LIMIT if market.best_ask is None else BEST,
            "gpu_count": 1,
            "server_count": 1,
            "term": LOT,
            "hours": USUAL_HOURS,
            "price": usual_price,
            "wallet": asker.usual_currency,
            "valid": str(USUAL_HOURS),
        },
    )
    filled = sent_form(as_sent(initial), asker=asker, asks=asks)
    return Ticket(
        form=_form(None, asker, asks, initial=initial),
        summary=summary_of(filled, gpu=market.gpu, asker=asker, asks=asks, now=now),
    )


def sent_form(data: QueryDict, *, asker: Asker, asks: Sequence[Ask]) -> OrderForm:
    """Return the ticket as it was sent."""
    return _form(data, asker, asks)


def _form(
    data: QueryDict | None, asker: Asker, asks: Sequence[Ask], initial: dict[str, Any] | None = None
) -> OrderForm:
    return OrderForm(data, initial=initial, wallets=asker.wallet_choices(), offered_in=free_gpus_by_country(asks))


def free_gpus_by_country(asks: Sequence[Ask]) -> Mapping[str, int]:
    """Return how many GPUs are free where."""
    found: Counter[str] = Counter()
    for ask in asks:
        found[ask.country] += len(ask.free_device_ids)
    return found


def summary_of(form: OrderForm, *, gpu: Gpu, asker: Asker, asks: Sequence[Ask], now: datetime) -> Summary:
    """Return what a ticket means now; a form that is not right means nothing. At most two queries."""
    if not form.is_valid():
        return Summary()
    instruction = form.instruction(gpu.pk, limit=form.cleaned_data["price"] or _ANY_LIMIT, now=now)
    try:
        tax = None if asker.organisation is None else stored_order_tax(asker.organisation.pk, now=now)
        seen = Circumstances(
            asks=asks,
            rate=order_rate(instruction.currency, now=now),
            tax_rate_percent=Decimal(0) if tax is None else tax.rate_percent,
            wallet=asker.wallet_state(instruction.currency),
        )
    except (NotSold, FxTooOld) as refused:
        return Summary(trouble=REFUSALS[type(refused)])
    quoted = price_order(instruction, seen, now=now)
    return Summary(review=review(instruction, quoted, is_best=form.is_best), tax=tax)
