"""`/prices/<slug>/`: what a GPU cost, hour by hour as recorded; and the 30-day trends that other pages print."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TypeVar
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from catalog.history_queries import HOURLY_FOR, SeriesKey, Tracking, Trend, Window, hour_of, tracking, trends, window
from catalog.models import Gpu, PriceSnapshot
from catalog.queries import GpuPrices, price_table
from catalog.step_chart import HOUR, StepChart, step_chart
from catalog.views.kept import kept_page
from catalog.views.machine_use import describe_history, page_picture

WINDOWS_DAYS = (7, 30, 90, 365)
DEFAULT_DAYS = 30
DEFAULT_MARKET = PriceSnapshot.Market.ON_DEMAND
Choice = TypeVar("Choice")


@dataclass(frozen=True, kw_only=True)
class MarketRow:
    """One market of the GPU. `price` is its lowest now; `tracking` and `trend` are None where nothing was recorded."""

    market: PriceSnapshot.Market
    href: str
    is_shown: bool
    price: Decimal | None
    offers: int | None
    tracking: Tracking | None
    trend: Trend | None


@dataclass(frozen=True, kw_only=True)
class WindowLink:
    """A window of the chart, and its address."""

    days: int
    href: str
    is_shown: bool


@kept_page
def show_price_history(request: HttpRequest, slug: str) -> HttpResponse:
    """Show one market of a GPU over `?days=` days; a choice that does not exist is named, and the usual one shown."""
    now = datetime.now(UTC)
    gpu = get_object_or_404(Gpu, slug=slug)
    days = _known(request.GET.get("days"), {str(days): days for days in WINDOWS_DAYS}, default=DEFAULT_DAYS)
    market = _known(
        request.GET.get("market"), {item.value: item for item in PriceSnapshot.Market}, default=DEFAULT_MARKET
    )
    shown = window(gpu=gpu, market=market, days=days, now=now)
    markets = _market_rows(gpu, market=market, days=days, now=now)
    on_page = next(row for row in markets if row.is_shown)
    api_query = urlencode({"days": days, "market": market.value})
    context = {
        "now": now,
        "gpu": gpu,
        "days": days,
        "shown": on_page,
        "window": shown,
        "chart": chart_of(shown, days=days, now=now),
        "markets": markets,
        "windows": [
            WindowLink(days=length, href=_address(market=market, days=length), is_shown=length == days)
            for length in WINDOWS_DAYS
        ],
        "hourly_days": HOURLY_FOR.days,
        "unknown": _unknown(request, days=days, market=market),
        "api_query": api_query,
        "json_ld": describe_history(request, gpu, tracking=on_page.tracking, api_query=api_query),
        "picture": page_picture(request, "catalog:history-picture", gpu),
    }
    return render(request, "catalog/price_history.html", context)


def _known(wanted: str | None, choices: Mapping[str, Choice], *, default: Choice) -> Choice:
    return choices.get(wanted or "", default)


def _unknown(request: HttpRequest, *, days: int, market: PriceSnapshot.Market) -> Sequence[str]:
    """Return the parameters that were given and not understood."""
    given = {name: request.GET[name] for name in ("days", "market") if request.GET.get(name)}
    read = {"days": str(days), "market": market.value}
    return [name for name, value in given.items() if value != read[name]]


def chart_of(shown: Window, *, days: int, now: datetime) -> StepChart | None:
    """Draw the window, from its first point where tracking began within it; None with fewer than two points."""
    if len(shown.points) < 2:
        return None
    ends_at = hour_of(now) + HOUR
    starts_at = max(ends_at - timedelta(days=days), shown.points[0].at)
    return step_chart(shown.points, starts_at=starts_at, ends_at=ends_at)


def _market_rows(gpu: Gpu, *, market: PriceSnapshot.Market, days: int, now: datetime) -> list[MarketRow]:
    """Return every market of the GPU: its price now, how long it is tracked, and its trend. Six queries or seven."""
    prices = price_table(now=now, gpu_slugs=[gpu.slug])[gpu.slug]
    lowest = {item: _lowest(prices, item) for item in PriceSnapshot.Market}
    tracked = tracking(gpu=gpu, now=now)
    found = trends(now=now, prices={(gpu.slug, item.value): price for item, price in lowest.items()})
    return [
        MarketRow(
            market=item,
            href=_address(market=item, days=days),
            is_shown=item == market,
            price=price,
            offers=_offers(prices, item),
            tracking=tracked.get(item),
            trend=found.get((gpu.slug, item.value)),
        )
        for item, price in lowest.items()
    ]


def _lowest(prices: GpuPrices, market: PriceSnapshot.Market) -> Decimal | None:
    if market is PriceSnapshot.Market.EXCHANGE:
        return prices.exchange.best_ask_per_gpu_hour if prices.exchange else None
    stats = prices.elsewhere[market.value]
    return stats.min if stats else None


def _offers(prices: GpuPrices, market: PriceSnapshot.Market) -> int | None:
    """Return how many clouds sell it now; the exchange is one place, so there is nothing to count."""
    stats = None if market is PriceSnapshot.Market.EXCHANGE else prices.elsewhere[market.value]
    return stats.offers if stats else None


def _address(*, market: PriceSnapshot.Market, days: int) -> str:
    return "?" + urlencode({"market": market.value, "days": days})


def headline_trends(*, now: datetime, prices: Mapping[str, GpuPrices]) -> dict[str, Trend]:
    """Return by GPU slug the trend of what its price column shows. A dated list price has none. One query or two."""
    wanted: dict[SeriesKey, Decimal | None] = {
        (slug, row.headline.kind): row.headline.price_usd_per_gpu_hour
        for slug, row in prices.items()
        if row.headline and row.headline.is_live
    }
    return {slug: trend for (slug, _), trend in trends(now=now, prices=wanted).items()} if wanted else {}
