"""`/market/`: every market at a glance."""

from dataclasses import dataclass
from datetime import UTC, datetime

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from catalog.history_queries import Trend, trends
from catalog.models import PriceSnapshot
from catalog.views.kept import kept_by
from marketplace.queries.market import Market, markets
from marketplace.version import market_version

kept_market_page = kept_by(market_version)
_SERIES = PriceSnapshot.Market.EXCHANGE.value


@dataclass(frozen=True, kw_only=True)
class MarketLine:
    """A market with the last 30 days of its best offer; `trend` None where none was recorded."""

    market: Market
    trend: Trend | None


@require_safe
@kept_market_page
def list_markets(request: HttpRequest) -> HttpResponse:
    """Show every market that has or had an offer or an order."""
    now = datetime.now(UTC)
    found = markets(now=now)
    recorded = trends(now=now, prices={(market.gpu.slug, _SERIES): market.best_ask for market in found})
    lines = [MarketLine(market=market, trend=recorded.get((market.gpu.slug, _SERIES))) for market in found]
    context = {
        "now": now,
        "lines": lines,
        "has_trends": any(line.trend for line in lines),
        "as_of": max((market.as_of for market in found if market.as_of), default=None),
    }
    return render(request, "marketplace/market.html", context)
