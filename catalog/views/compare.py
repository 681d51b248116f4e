"""`/compare/`: every offer and the exchange's own asks in one table, filtered, ordered and added up by the address."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from catalog.compare.columns import COLUMNS, JOB, JOB_COLUMN, PRICE
from catalog.compare.columns import Column as TableColumn
from catalog.compare.lines import Line
from catalog.compare.presets import PRESETS
from catalog.compare.rows import ComparedPage, compared_page, every_line, kept_out, known_catalogue
from catalog.serializers import Price
from catalog.views.compare_address import Asked, read_address
from catalog.views.compare_cells import shown_lines
from catalog.views.compare_controls import applied_filters, errors_in_words, first_controls, has_more, more_controls
from catalog.views.kept import kept_page
from catalog.views.list_address import Column
from common.csv_lines import csv_lines
from fx.chosen import in_chosen_currency

_PRICE = Price()


@kept_page
@in_chosen_currency
def compare_offers(request: HttpRequest) -> HttpResponse:
    """Show a page of what matches."""
    now = datetime.now(UTC)
    known = known_catalogue()
    asked = read_address(request.GET, known=known)
    page = compared_page(asked.question(now=now), page=asked.page, known=known)
    columns = table_columns(asked)
    context = {
        "now": now,
        "asked": asked,
        "page": page,
        "lines": shown_lines(page.lines, columns, best=page.best, now=now),
        "presets": [(preset, preset_address(asked, preset.slug)) for preset in PRESETS.values()],
        "controls": first_controls(asked, known=known),
        "more_controls": more_controls(asked, known=known),
        "has_more": has_more(asked),
        "errors": errors_in_words(asked),
        "applied": applied_filters(asked, removed=page.removed, known=known),
        "columns": [(column, sort_link(asked, column)) for column in columns],
        "last_column": (last := JOB_COLUMN if asked.job else COLUMNS[PRICE], sort_link(asked, last)),
        "every_column": [(column, column in asked.columns) for column in COLUMNS.values() if column.name != PRICE],
        "kept_out": kept_out(),
        **page_links(asked, page),
    }
    return render(request, "catalog/compare.html", context)


def table_columns(asked: Asked) -> list[TableColumn]:
    """Return the columns between the offer and the last one, which is the price, or the job's total beside it."""
    columns = [column for column in asked.columns if column.name != PRICE]
    return [*columns, COLUMNS[PRICE]] if asked.job else columns


def sort_link(asked: Asked, column: TableColumn) -> Column | None:
    """Return the link of a header: the first click puts the useful end on top, the second turns it round."""
    if column.sort is None and column.name != JOB:
        return None
    first, other = (column.name, f"-{column.name}")
    if column.largest_first:
        first, other = other, first
    now = asked.sorting.name
    aria = {column.name: "ascending", f"-{column.name}": "descending"}.get(now, "")
    return Column(href=asked.address(sort=other if now == first else first), aria_sort=aria)


def preset_address(asked: Asked, slug: str) -> str:
    """Return the address of a use: its filters alone, the job kept; without it where it is the one that is on."""
    is_on = asked.preset is not None and asked.preset.slug == slug
    return asked.address(**dict.fromkeys(asked.texts), use_case=None if is_on else slug)


def page_links(asked: Asked, page: ComparedPage) -> dict[str, str | None]:
    """Return where a page leads: before, after, the whole as CSV, the outside offers as JSON, nothing applied."""
    csv_address = reverse("catalog:compare-csv")
    return {
        "before": asked.address(page=str(page.page - 1)) if page.page > 1 else None,
        "after": asked.address(page=str(page.page + 1)) if page.page < page.pages else None,
        "csv_href": csv_address + asked.address(),
        "json_href": reverse("api-offers") + asked.as_parameters(),
        "clear_href": asked.address(**dict.fromkeys(asked.texts), use_case=None),
    }


@require_safe
def download_offers(request: HttpRequest) -> StreamingHttpResponse:
    """Stream every line of a comparison as CSV, in its order; prices in USD."""
    now = datetime.now(UTC)
    known = known_catalogue()
    asked = read_address(request.GET, known=known)
    lines = every_line(asked.question(now=now), known=known)
    return StreamingHttpResponse(
        csv_lines(csv_header(asked), csv_rows(lines, asked)),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="compare.csv"', "Cache-Control": "no-cache"},
    )


_CSV: Mapping[str, Any] = {
    "offer": lambda line: "" if line.is_ours else line.id,
    "cloud": lambda line: line.cloud.slug if line.cloud else "gpu-bourse",
    "gpu": lambda line: line.gpu.slug,
    "instance_type": lambda line: line.instance_type,
    **{
        name: column.value for name, column in COLUMNS.items() if column.kind not in ("price", "market", "seen", "text")
    },
    "interconnect": lambda line: line.interconnect,
    "fabric": COLUMNS["fabric"].value,
    "market": lambda line: line.market,
    "region": lambda line: line.region,
    "availability": lambda line: line.availability,
    "price_usd_per_hour": lambda line: _PRICE.to_representation(line.price_usd_per_hour),
    "price_usd_per_gpu_hour": lambda line: _PRICE.to_representation(line.price_usd_per_gpu_hour),
    "freshness": lambda line: line.freshness.value,
    "observed_at": lambda line: line.observed_at.isoformat().replace("+00:00", "Z"),
    "priced_on": lambda line: line.priced_on,
    "source": lambda line: line.source.name if line.source else "gpu-bourse",
    "url": lambda line: line.url,
}
_JOB_CSV: Mapping[str, Any] = {
    "job_total_usd": lambda cost: _PRICE.to_representation(cost.total_usd),
    "job_machines": lambda cost: cost.plan.machines,
    "job_billed_hours": lambda cost: f"{cost.plan.billed_hours.normalize():f}",
    "job_not_known": lambda cost: " ".join(cost.plan.unknown),
}


def csv_header(asked: Asked) -> list[str]:
    """Return the names of the columns of the file."""
    return [*_CSV, *(_JOB_CSV if asked.job else ())]


def csv_rows(lines: Iterable[Line], asked: Asked) -> Iterator[list[object]]:
    """Yield the values of each line."""
    for line in lines:
        row = [_csv_value(read(line)) for read in _CSV.values()]
        if asked.job:
            row += [read(line.cost) if line.cost else None for read in _JOB_CSV.values()]
        yield row


def _csv_value(value: Any) -> object:
    return f"{value.normalize():f}" if hasattr(value, "normalize") else value
