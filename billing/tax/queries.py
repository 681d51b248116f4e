"""What the tax page shows of an organisation."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db.models import F

from billing.models import TaxDecision, TaxDetails, VatCheck
from billing.tax.amounts import add_tax
from billing.tax.record import preview, vat_state
from billing.tax.seller import SellerUnknown
from billing.tax.wording import LEGAL_TEXTS, REASONS
from common.money import from_micros, round_to_micros
from users.models import Organisation

# A best price of our list, as every page's example.
EXAMPLE_USD_PER_HOUR = Decimal("2.88")
MOST_DECISIONS = 50


@dataclass(frozen=True, kw_only=True)
class Example:
    """One GPU-hour in USD."""

    net: Decimal
    tax: Decimal
    gross: Decimal


@dataclass(frozen=True, kw_only=True)
class Told:
    """A decision in words; `example` is None where nothing is sold."""

    row: TaxDecision
    reasons: list[str]
    legal_text: str
    example: Example | None


@dataclass(frozen=True, kw_only=True)
class TaxPage:
    """What holds now, what will hold next, what is known about the number, and everything that held before.

    `current` is None where nothing can be decided, because the seller has not said where it is. `is_stored` is false
    until the first decision is stored: what is shown is what it will be.
    """

    current: Told | None
    is_stored: bool
    coming: Told | None
    details: TaxDetails
    vat_state: str
    last_check: VatCheck | None
    history: list[TaxDecision]


def tax_page(organisation: Organisation, *, now: datetime) -> TaxPage:
    """Return the page's content; four queries, and none is written."""
    details = (
        TaxDetails.objects.select_related("organisation", "last_answer").filter(organisation=organisation).first()
    ) or TaxDetails(organisation=organisation)
    last_check = VatCheck.objects.filter(organisation=organisation, vat_id=details.vat_id).order_by("-asked_at").first()
    rows = list(
        TaxDecision.objects.filter(organisation=organisation)
        .exclude(valid_to=F("valid_from"))
        .order_by("-valid_from")[:MOST_DECISIONS]
    )
    holding = next((row for row in rows if row.valid_from <= now), None)
    coming = [row for row in rows if row.valid_from > now]
    current = holding or _preview(organisation, now=now)
    return TaxPage(
        current=_told(current) if current else None,
        is_stored=holding is not None,
        coming=_told(coming[-1]) if coming else None,
        details=details,
        vat_state=vat_state(details, at=now).value,
        last_check=last_check,
        history=rows,
    )


def _preview(organisation: Organisation, *, now: datetime) -> TaxDecision | None:
    try:
        return preview(organisation, now=now)
    except (LookupError, SellerUnknown):
        return None


def _told(row: TaxDecision) -> Told:
    return Told(
        row=row,
        reasons=[str(REASONS[reason]) for reason in row.reasons],
        legal_text=str(LEGAL_TEXTS.get(row.legal_text_key, "")),
        example=None if row.rate_percent is None else _example(row.rate_percent),
    )


def _example(rate_percent: Decimal) -> Example:
    amounts = add_tax(round_to_micros(EXAMPLE_USD_PER_HOUR), rate_percent=rate_percent)
    return Example(
        net=from_micros(amounts.net_micros),
        tax=from_micros(amounts.tax_micros),
        gross=from_micros(amounts.gross_micros),
    )
