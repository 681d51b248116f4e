"""`/`: eight GPUs with their price, and one mark on the best of the live ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from catalog.history_queries import Trend
from catalog.models import Gpu
from catalog.queries import GpuPrices, price_table
from catalog.views.history import headline_trends
from catalog.views.kept import kept_page
from catalog.views.machine_use import describe_site
from fx.chosen import in_chosen_currency
from sizing.engine.simple_rule import full_training_b_params

BOARD_SLUGS = ("b300", "b200", "mi325x", "h200-sxm", "mi300x", "h100-nvl", "h100-sxm", "a100-sxm-80gb")


@dataclass(frozen=True, kw_only=True)
class BoardRow:
    """One GPU of the board. `trains_on_*`: billions of parameters by the simple rule."""

    gpu: Gpu
    prices: GpuPrices
    trains_on_1: int
    trains_on_8: int
    trend: Trend | None

    @property
    def gb_per_usd(self) -> Decimal | None:
        """Memory for the money: GB for each USD per hour; None without a price."""
        headline = self.prices.headline
        return self.gpu.memory_gb / headline.price_usd_per_gpu_hour if headline else None


@kept_page
@in_chosen_currency
def show_board(request: HttpRequest) -> HttpResponse:
    """Show the board, in its own order or as `?sort=price` or `?sort=memory` asks."""
    now = datetime.now(UTC)
    rows = board_rows(now=now)
    sort = request.GET.get("sort", "")
    marked = most_memory_for_the_money(rows)
    context = {
        "now": now,
        "json_ld": describe_site(request),
        "has_trends": any(row.trend for row in rows),
        "rows": sorted_rows(rows, sort=sort),
        "sort": sort,
        "marked": marked,
        "runner_up": most_memory_for_the_money([row for row in rows if row is not marked]),
        "read_at": max((row.prices.headline.observed_at for row in rows if row.prices.headline), default=None),
        "smallest": min((row.trains_on_1 for row in rows), default=None),
        "largest": max((row.trains_on_8 for row in rows), default=None),
    }
    return render(request, "catalog/board.html", context)


def board_rows(*, now: datetime) -> list[BoardRow]:
    """Return the board's GPUs in its own order, those the catalogue holds."""
    gpus = Gpu.objects.in_bulk(BOARD_SLUGS, field_name="slug")
    prices = price_table(now=now, gpu_slugs=BOARD_SLUGS)
    trends = headline_trends(now=now, prices=prices)
    return [
        BoardRow(
            gpu=gpus[slug],
            prices=prices[slug],
            trains_on_1=full_training_b_params(memory_gb=gpus[slug].memory_gb, gpu_count=1),
            trains_on_8=full_training_b_params(memory_gb=gpus[slug].memory_gb, gpu_count=8),
            trend=trends.get(slug),
        )
        for slug in BOARD_SLUGS
        if slug in gpus
    ]


def sorted_rows(rows: Sequence[BoardRow], *, sort: str) -> Sequence[BoardRow]:
    """Order by price (lowest first, none last) or memory (largest first); anything else keeps the board's order."""
    if sort == "price":
        return sorted(
            rows, key=lambda row: row.prices.headline.price_usd_per_gpu_hour if row.prices.headline else Decimal("inf")
        )
    if sort == "memory":
        return sorted(rows, key=lambda row: -row.gpu.memory_gb)
    return rows


def most_memory_for_the_money(rows: Sequence[BoardRow]) -> BoardRow | None:
    """Return the row to mark: the most GB per USD among live prices. A dated list price is never marked."""
    live = [row for row in rows if row.prices.headline and row.prices.headline.is_live]
    return max(live, key=lambda row: row.gb_per_usd or 0, default=None)
