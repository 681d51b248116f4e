"""`/gpus/`: every GPU of the catalogue, filtered and ordered by the address."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from catalog.forms import SORTABLE, GpuFilterForm
from catalog.history_queries import Trend
from catalog.models import Gpu
from catalog.queries import GpuPrices, price_table
from catalog.views.history import headline_trends
from catalog.views.kept import kept_page
from catalog.views.list_address import applied_filters, columns
from fx.chosen import in_chosen_currency
from sizing.engine.simple_rule import full_training_b_params

SMALLEST_FIRST = ("price", "tdp_w")


@dataclass(frozen=True, kw_only=True)
class GpuRow:
    """One line of the list. `trains_on_*`: billions of parameters by the simple rule."""

    gpu: Gpu
    prices: GpuPrices
    trains_on_1: int
    trains_on_8: int
    trend: Trend | None

    def figure(self, name: str) -> Decimal | int | None:
        """Return what the column `name` sorts by; None where nothing is published."""
        if name == "price":
            return self.prices.headline.price_usd_per_gpu_hour if self.prices.headline else None
        if name == "clouds":
            return self.prices.compared.offers if self.prices.compared else None
        if name == "trains_on_8":
            return self.trains_on_8
        value: Decimal | int | None = getattr(self.gpu, name)
        return value


@kept_page
@in_chosen_currency
def list_gpus(request: HttpRequest) -> HttpResponse:
    """Show the GPUs that match; a field that cannot be read is named and left out, the others hold."""
    now = datetime.now(UTC)
    gpus = list(Gpu.objects.order_by("position"))
    form = GpuFilterForm(request.GET, gpus=gpus)
    form.is_valid()
    wanted = form.cleaned_data
    prices = price_table(now=now)
    trends = headline_trends(now=now, prices=prices)
    rows = [gpu_row(gpu, prices[gpu.slug], trend=trends.get(gpu.slug)) for gpu in gpus]
    found = sorted_rows([row for row in rows if matches(row, wanted)], sort=wanted.get("sort", ""))
    context = {
        "now": now,
        "form": form,
        "has_trends": any(row.trend for row in rows),
        "rows": found,
        "total": len(rows),
        "wanted_sort": wanted.get("sort", ""),
        "columns": columns(wanted, sortable=SORTABLE, largest_first=set(SORTABLE) - set(SMALLEST_FIRST)),
        "applied": applied_filters(form),
        "largest": {name: max((row.figure(name) or 0 for row in rows), default=0) for name in SORTABLE},
        "marked": most_memory_for_the_money(found),
    }
    return render(request, "catalog/gpus.html", context)


def gpu_row(gpu: Gpu, prices: GpuPrices, *, trend: Trend | None) -> GpuRow:
    """Return a GPU with its prices, their trend, and what it trains."""
    return GpuRow(
        gpu=gpu,
        prices=prices,
        trains_on_1=full_training_b_params(memory_gb=gpu.memory_gb, gpu_count=1),
        trains_on_8=full_training_b_params(memory_gb=gpu.memory_gb, gpu_count=8),
        trend=trend,
    )


def matches(row: GpuRow, wanted: Mapping[str, Any]) -> bool:
    """Tell whether a row passes every filter that is set."""
    gpu = row.gpu
    words = wanted.get("search", "").lower().split()
    return (
        all(word in f"{gpu.name} {gpu.label} {gpu.architecture}".lower() for word in words)
        and all(
            wanted.get(name, "") in ("", getattr(gpu, name)) for name in ("vendor", "architecture", "software_stack")
        )
        and gpu.memory_gb >= (wanted.get("memory_gb_min") or 0)
        and (row.prices.headline is not None or not wanted.get("has_price"))
    )


def sorted_rows(rows: Sequence[GpuRow], *, sort: str) -> Sequence[GpuRow]:
    """Order by a column; rows without that figure come last either way. Blank keeps the catalogue's order."""
    if not sort:
        return rows
    name, sign = sort.removeprefix("-"), -1 if sort.startswith("-") else 1
    return sorted(rows, key=lambda row: (row.figure(name) is None, sign * (row.figure(name) or 0)))


def most_memory_for_the_money(rows: Sequence[GpuRow]) -> GpuRow | None:
    """Return the row to mark: the most memory for the money among live prices of the list as filtered."""
    live = [row for row in rows if row.prices.headline and row.prices.headline.is_live]
    return max(live, key=lambda row: row.gpu.memory_gb / (row.figure("price") or 1), default=None)
