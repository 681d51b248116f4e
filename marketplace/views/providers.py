"""`/providers/`: what selling here takes and brings, for companies with servers; and one provider, for renters."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from catalog.models import BestAsk, Gpu
from catalog.queries import median_elsewhere
from marketplace import limits, provider_terms
from marketplace.earnings_estimate import DAYS, HOURS, USUAL_UTILISATION, Brought, Lent, at_price
from marketplace.price_spread import PriceSpread
from marketplace.provider_forms import CalculatorForm
from marketplace.providers.fleet import MOST_DEVICES
from marketplace.queries.earnings import fills_of_30_days
from marketplace.queries.sellers import seller_of

_USUAL = {"gpu": "h100-sxm", "gpus": "8", "utilisation": str(USUAL_UTILISATION)}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One price with what it brings. `kind`: p25, median, p75 of our fills; ask: the best offer now; elsewhere."""

    kind: str
    brought: Brought


@dataclass(frozen=True, kw_only=True)
class Calculated:
    """The calculator's answer for one GPU; `rows` empty where no price of it is known."""

    gpu: Gpu
    lent: Lent
    spread: PriceSpread | None
    rows: Sequence[Row]

    @property
    def headline(self) -> Row | None:
        """The row that the answer's sentence names: what was paid here, else what is asked here; never other clouds."""
        return next((row for kind in ("median", "ask") for row in self.rows if row.kind == kind), None)


@require_safe
def show_selling(request: HttpRequest) -> HttpResponse:
    """Show how selling works, with the calculator. Seven queries."""
    now = datetime.now(UTC)
    form = CalculatorForm({**_USUAL, **{name: request.GET[name] for name in _USUAL if name in request.GET}})
    context = {
        "now": now,
        "form": form,
        "calculated": _calculated(form, now=now) if form.is_valid() else None,
        "fee_percent": settings.PROVIDER_FEE_PERCENT,
        "days": DAYS,
        "hours": HOURS,
        "limits": limits,
        "live_seconds": int(limits.LIVE_FOR.total_seconds()),
        "start_minutes": int(limits.START_WITHIN.total_seconds()) // 60,
        "lost_minutes": int(limits.LOST_AFTER.total_seconds()) // 60,
        "most_devices": MOST_DEVICES,
        "terms_in_force": provider_terms,
    }
    return render(request, "marketplace/providers.html", context)


@require_safe
def show_seller(request: HttpRequest, organisation_id: int) -> HttpResponse:
    """Show a provider to renters: who it is, since when, and what became of the hours it sold."""
    seller = seller_of(organisation_id)
    if seller is None:
        raise Http404
    return render(request, "marketplace/seller.html", {"now": datetime.now(UTC), "seller": seller})


def _calculated(form: CalculatorForm, *, now: datetime) -> Calculated:
    gpu, lent = form.cleaned_data["gpu"], form.lent(settings.PROVIDER_FEE_PERCENT)
    spread = fills_of_30_days(gpu.pk, now=now)
    ask = BestAsk.objects.filter(gpu=gpu).first()
    prices: list[tuple[str, Decimal | None]] = [
        *([("p25", spread.p25), ("median", spread.median), ("p75", spread.p75)] if spread else []),
        ("ask", ask.price_usd_per_gpu_hour if ask else None),
        ("elsewhere", median_elsewhere(gpu.pk, now=now)),
    ]
    rows = [Row(kind=kind, brought=at_price(price, lent)) for kind, price in prices if price is not None]
    return Calculated(gpu=gpu, lent=lent, spread=spread, rows=rows)
