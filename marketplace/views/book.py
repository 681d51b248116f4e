"""`/market/<slug>/`: one book with its ladder, depth, trades and the ticket; and the part of it that is looked at again.

The part in `#live` is rendered by itself. Its entity tag is made of what it shows, so that a page that asks again is
told "unchanged" for as long as nothing moves; times in it are of the clock, never "a minute ago".
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from hashlib import sha256
from itertools import pairwise
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.cache import get_conditional_response
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from catalog.queries import median_elsewhere
from marketplace.book import live_asks
from marketplace.depth_chart import DepthChart, Total, depth_chart, totals
from marketplace.ladder import Ladder, ladder
from marketplace.levels import Book, ask_levels, bid_levels
from marketplace.matching import Ask
from marketplace.models import Order
from marketplace.queries.earnings import fills_of_30_days
from marketplace.queries.market import Market, OpenBid, market_at, markets, open_bids, trades_of
from marketplace.queries.orders import open_orders_at
from marketplace.trade_chart import Trade, TradeChart, trade_chart
from marketplace.views.asker import Asker, Part, asker_of
from marketplace.views.market import kept_market_page
from marketplace.views.summary import ticket_of

TRADES_SHOWN = 12
MOST_INSTEAD = 2
_TRADES_READ = 300


@dataclass(frozen=True, kw_only=True)
class TradeLine:
    """A trade and where its price went from the one before: up, down or flat; blank for the first that is known."""

    trade: Trade
    direction: str


@dataclass(frozen=True, kw_only=True)
class Live:
    """What moves: figures, both sides of the book, trades. `today`: times of another day are told with their day."""

    market: Market
    today: date
    ladder: Ladder
    depth: DepthChart | None
    bid_totals: Sequence[Total]
    ask_totals: Sequence[Total]
    trades: Sequence[TradeLine]
    chart: TradeChart | None
    has_yours: bool


@dataclass(frozen=True, kw_only=True)
class Fragment:
    """The rendered part and its entity tag."""

    html: SafeString
    etag: str


@require_safe
@kept_market_page
def show_book(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a book. Whoever may order finds a ticket to review; a visitor one that leads to signing in."""
    now, asker = datetime.now(UTC), asker_of(request)
    listed = markets(now=now)
    market = next((each for each in listed if each.gpu.slug == slug), None) or _market_or_404(slug, now)
    asks, bids = live_asks(market.gpu.pk, now=now), open_bids(market.gpu, now=now)
    live = live_of(market, asks, bids, asker, now)
    own_orders = _own_orders(market, live, asker)
    context = {
        "now": now,
        "gpu": market.gpu,
        "markets": listed,
        "live": live,
        "fragment": fragment_of(request, live),
        "asker": asker,
        "may_trade": asker.part == Part.TRADER,
        "own_orders": own_orders,
        "spread": fills_of_30_days(market.gpu.pk, now=now),
        "instead": None if market.best_ask else instead_of(market, listed, has_orders=bool(own_orders), now=now),
        "ticket": ticket_of(request.GET, market=market, asker=asker, asks=asks, now=now),
    }
    return render(request, "marketplace/book.html", context)


@require_safe
@kept_market_page
def show_live_book(request: HttpRequest, slug: str) -> HttpResponse:
    """Give the part of the page that moves, or 304 where the page shows it already."""
    now, asker = datetime.now(UTC), asker_of(request)
    market = _market_or_404(slug, now)
    asks, bids = live_asks(market.gpu.pk, now=now), open_bids(market.gpu, now=now)
    fragment = fragment_of(request, live_of(market, asks, bids, asker, now))
    response = get_conditional_response(request, etag=fragment.etag) or HttpResponse(fragment.html)
    response["ETag"] = fragment.etag
    response["X-Robots-Tag"] = "noindex"
    return response


def _market_or_404(slug: str, now: datetime) -> Market:
    found = market_at(slug, now=now)
    if found is None:
        raise Http404
    return found


def _own_orders(market: Market, live: Live, asker: Asker) -> Sequence[Order]:
    if asker.organisation is None or not live.has_yours:
        return ()
    return list(open_orders_at(asker.organisation, market.gpu))


@dataclass(frozen=True, kw_only=True)
class Instead:
    """Where to go from a book without an offer: the nearest markets with one; what other clouds ask, by their median."""

    markets: Sequence[Market]
    elsewhere: Decimal | None


def instead_of(market: Market, listed: Sequence[Market], *, has_orders: bool, now: datetime) -> Instead:
    """Return the markets with an offer whose GPU has as much memory or more, the nearest first. Two queries.

    None for a reader who has orders here: who waits in a book has looked elsewhere.
    """
    large = [each for each in listed if each.best_ask and each.gpu.memory_gb >= market.gpu.memory_gb]
    large.sort(key=lambda each: (each.gpu.memory_gb, each.best_ask))
    elsewhere = None if has_orders else median_elsewhere(market.gpu.pk, now=now)
    return Instead(markets=large[:MOST_INSTEAD], elsewhere=elsewhere)


def live_of(market: Market, asks: Sequence[Ask], bids: Sequence[OpenBid], asker: Asker, now: datetime) -> Live:
    """Return what moves on the page, as this reader sees it. One query."""
    yours = _yours(bids, asker)
    book = Book(bids=bid_levels((bid.price, bid.gpu_count) for bid in bids), asks=ask_levels(asks))
    trades = [
        Trade(price=price, gpu_count=gpus, traded_at=traded_at)
        for price, gpus, traded_at in trades_of(market.gpu).values_list(
            "price_usd_per_gpu_hour", "gpu_count", "filled_at"
        )[:_TRADES_READ]
    ]
    return Live(
        market=market,
        today=now.date(),
        ladder=ladder(book, best_ask=market.best_ask, yours=yours),
        depth=depth_chart(book),
        bid_totals=totals(book.bids),
        ask_totals=totals(book.asks),
        trades=trade_lines(trades)[:TRADES_SHOWN],
        chart=trade_chart(trades, now=now),
        has_yours=bool(yours),
    )


def trade_lines(newest_first: Sequence[Trade]) -> list[TradeLine]:
    """Return each trade with its direction against the one before it."""
    lines = [
        TradeLine(trade=trade, direction=_direction(trade.price - before.price))
        for trade, before in pairwise(newest_first)
    ]
    return lines + [TradeLine(trade=trade, direction="") for trade in newest_first[-1:]]


def _direction(change: Decimal) -> str:
    return "flat" if not change else "up" if change > 0 else "down"


def _yours(bids: Sequence[OpenBid], asker: Asker) -> Mapping[Decimal, int]:
    found: dict[Decimal, int] = defaultdict(int)
    for bid in bids:
        if asker.organisation is not None and bid.organisation_id == asker.organisation.pk:
            found[bid.price] += bid.gpu_count
    return found


def fragment_of(request: HttpRequest, live: Live) -> Fragment:
    """Render the part that moves."""
    context: dict[str, Any] = {"live": live, "gpu": live.market.gpu}
    html = render_to_string("marketplace/parts/live.html", context, request)
    return Fragment(html=html, etag=f'W/"{sha256(html.encode()).hexdigest()[:32]}"')
