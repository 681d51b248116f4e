"""Which offers and asks are compared, in what order: a page of them, or all.

Offers come sorted from the database; the few asks of ours are sorted in beside them. By the cost of a job the database
sorts too: the sum is a price times hours plus what is fixed, and both follow from a handful of terms, so they are
worked out once for each (`catalog.compare.job.plan`) and joined to the offers.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from heapq import merge
from typing import Any

from django.db import connection
from django.db.models import F, Min, QuerySet, Sum

from catalog.compare.columns import JOB_COLUMN, Sorting
from catalog.compare.filters import Removed, Values, asks_where, count_removed, offers_where
from catalog.compare.job import Job, Plan, Terms, break_even_per_day, plan
from catalog.compare.lines import OFFER_COLUMNS, Known, Line, OnDemandBeside, line_of_ask, line_of_offer, terms_of_offer
from catalog.models import Cloud, Gpu, Offer, Source, SourceDocument

PAGE_LINES = 100
LAST_PAGE = 100
_ROWS_AT_ONCE = 2000
_TERMS = ("cloud_id", "market", "term_months", "gpu_count", "billing_step_seconds")
_BY_JOB = """
    SELECT o.*
    FROM ({offers}) o
    LEFT JOIN unnest(%s::bigint[], %s::text[], %s::int[], %s::numeric[], %s::int[], %s::numeric[], %s::numeric[])
        AS p(cloud_id, market, term_months, gpu_count, step, machine_hours, fixed_usd)
        ON p.cloud_id = o.cloud_id AND p.market = o.market AND p.term_months = coalesce(o.term_months, 0)
        AND p.gpu_count = o.gpu_count AND p.step = coalesce(o.billing_step_seconds, -1) AND o.is_whole
    ORDER BY round(o.price_usd_per_hour * p.machine_hours + p.fixed_usd, 6) {way} NULLS LAST, o.id {way}
    OFFSET %s::bigint LIMIT %s::bigint
"""

Row = Mapping[str, Any]
Plans = dict[Terms, Plan]


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is compared: filters, order, and the reader's job."""

    wanted: Values
    sorting: Sorting
    job: Job | None
    now: datetime


@dataclass(frozen=True, kw_only=True)
class ComparedPage:
    """One page: `first` counts from 1, 0 where nothing is found. `ours` of the lines found are our own asks."""

    lines: Sequence[Line]
    removed: Removed
    ours: int
    first: int
    page: int
    pages: int

    @property
    def found(self) -> int:
        """Offers and asks that meet all filters."""
        return self.removed.found + self.ours

    @property
    def last(self) -> int:
        """The number of the last line shown."""
        return self.first + len(self.lines) - 1 if self.lines else 0

    @property
    def best(self) -> Line | None:
        """The line to mark: the lowest live price shown for whole GPUs that can be had, or the least for the job."""
        live = [
            line
            for line in self.lines
            if line.is_live and line.is_whole and line.verified and line.availability != "no"
        ]
        if any(line.cost for line in live):
            return min((line for line in live if line.cost), key=lambda line: (line.cost.total_usd, line.id.int))  # type: ignore[union-attr]
        return min(live, key=lambda line: (line.price_usd_per_gpu_hour, line.id.int), default=None)


@dataclass(frozen=True, kw_only=True)
class KeptOut:
    """Rows of the last bodies read that no offer shows: held back with a reason, or with a name nobody could resolve."""

    held_back: int
    unmapped: int


def known_catalogue() -> Known:
    """Return clouds, GPUs and sources, each in the order a list shows them. Three queries."""
    return Known(
        clouds={cloud.pk: cloud for cloud in Cloud.objects.order_by("name")},
        gpus={gpu.pk: gpu for gpu in Gpu.objects.order_by("position")},
        sources={source.pk: source for source in Source.objects.order_by("title")},
    )


def kept_out() -> KeptOut:
    """Return what the sources held back. One query."""
    sums = SourceDocument.objects.aggregate(held_back=Sum("held_back"), unmapped=Sum("unmapped"))
    return KeptOut(held_back=sums["held_back"] or 0, unmapped=sums["unmapped"] or 0)


def compared_page(question: Question, *, page: int, known: Known) -> ComparedPage:
    """Return page `page` (the last one there is, where it lies beyond). Three to five queries."""
    plans: Plans = {}
    removed = count_removed(question.wanted, now=question.now)
    asks = _asks(question, known=known, plans=plans)
    pages = min(LAST_PAGE, -(-(removed.found + len(asks)) // PAGE_LINES)) or 1
    start = (min(page, pages) - 1) * PAGE_LINES
    skipped = max(0, start - len(asks))
    offers = [
        _with_cost(line_of_offer(row, known=known, now=question.now), question.job, plans=plans)
        for row in _offer_rows(question, skip=skipped, limit=start + PAGE_LINES - skipped, known=known)
    ]
    lines = _merged(offers, asks, skipped=skipped, start=start, sorting=question.sorting)
    return ComparedPage(
        lines=_with_on_demand(lines, question),
        removed=removed,
        ours=len(asks),
        first=start + 1 if lines else 0,
        page=start // PAGE_LINES + 1,
        pages=pages,
    )


def every_line(question: Question, *, known: Known) -> Iterator[Line]:
    """Yield every line in order, read as a stream."""
    plans: Plans = {}
    rows = _offer_rows(question, skip=0, limit=None, known=known)
    offers = (_with_cost(line_of_offer(row, known=known, now=question.now), question.job, plans=plans) for row in rows)
    yield from merge(_asks(question, known=known, plans=plans), offers, key=question.sorting.key)


def _asks(question: Question, *, known: Known, plans: Plans) -> list[Line]:
    asks = (
        _with_cost(line_of_ask(ask, known=known, now=question.now), question.job, plans=plans)
        for ask in asks_where(question.wanted, now=question.now)
    )
    return sorted(asks, key=question.sorting.key)


def _merged(
    offers: Sequence[Line], asks: Sequence[Line], *, skipped: int, start: int, sorting: Sorting
) -> Sequence[Line]:
    """Return the lines from `start` on. `offers` follow on `skipped` others, of which at least as many as there are asks
    before `start`: an ask that sorts before the first of `offers` is on an earlier page, unless nothing was skipped.
    """
    earlier = [ask for ask in asks if skipped and offers and sorting.key(ask) < sorting.key(offers[0])]
    together = sorted([*offers, *asks[len(earlier) :]], key=sorting.key)
    begin = start - skipped - len(earlier)
    return together[begin : begin + PAGE_LINES]


def _with_cost(line: Line, job: Job | None, *, plans: Plans) -> Line:
    """Return the line with the job's cost; a slice of a card has none. `plans` are remembered by their terms."""
    if job is None or not line.is_whole:
        return line
    terms = line.terms
    if terms not in plans:
        plans[terms] = plan(job, terms)
    return replace(line, cost=plans[terms].cost(line.price_usd_per_hour))


def _offer_rows(question: Question, *, skip: int, limit: int | None, known: Known) -> Iterator[Row]:
    """Yield offers in order from `skip` on: `limit` at once, or all of them as a stream."""
    offers = offers_where(question.wanted, now=question.now)
    if question.sorting.column is JOB_COLUMN:
        yield from _rows_by_job(offers, question, skip=skip, limit=limit, known=known)
        return
    rows = _in_order(offers, question.sorting).values(*OFFER_COLUMNS)
    yield from rows.iterator(chunk_size=_ROWS_AT_ONCE) if limit is None else rows[skip : skip + limit]


def _in_order(offers: QuerySet[Offer], sorting: Sorting) -> QuerySet[Offer]:
    column = sorting.column
    assert column.sort is not None
    # Saying where empty values go keeps PostgreSQL from using a plain index, so only where there can be any.
    nulls = {"nulls_last": True} if column.is_nullable else {}
    if sorting.is_descending:
        return offers.order_by(column.sort.desc(**nulls), F("pk").desc())
    return offers.order_by(column.sort.asc(**nulls), F("pk").asc())


def _rows_by_job(
    offers: QuerySet[Offer], question: Question, *, skip: int, limit: int | None, known: Known
) -> Iterator[Row]:
    assert question.job is not None
    inner, parameters = offers.order_by().values(*OFFER_COLUMNS).query.sql_with_params()
    way = "DESC" if question.sorting.is_descending else "ASC"
    statement = _BY_JOB.format(offers=inner, way=way)
    arrays = _plan_arrays(_plans(offers, question.job, known=known))
    is_stream = limit is None
    with closing(connection.chunked_cursor() if is_stream else connection.cursor()) as cursor:
        cursor.execute(statement, [*parameters, *arrays, skip, limit])
        while rows := cursor.fetchmany(_ROWS_AT_ONCE):
            yield from (dict(zip(OFFER_COLUMNS, row, strict=True)) for row in rows)


def _plans(offers: QuerySet[Offer], job: Job, *, known: Known) -> dict[tuple[Any, ...], Plan]:
    """Return a plan for each combination of terms among `offers`. One query."""
    combinations = offers.filter(is_whole=True).order_by().values(*_TERMS).distinct()
    return {tuple(terms.values()): plan(job, _terms(terms, known=known)) for terms in combinations}


def _terms(combination: Row, *, known: Known) -> Terms:
    own = {name: value for name, value in combination.items() if name != "cloud_id"}
    return terms_of_offer(known.clouds[combination["cloud_id"]], **own)


def _plan_arrays(plans: Mapping[tuple[Any, ...], Plan]) -> list[list[Any]]:
    """Return the columns of the table that `_BY_JOB` joins."""
    table = [
        (
            cloud_id,
            market,
            term_months or 0,
            gpu_count,
            -1 if step is None else step,
            each.machine_hours,
            each.fixed_usd,
        )
        for (cloud_id, market, term_months, gpu_count, step), each in plans.items()
    ]
    return [list(column) for column in zip(*table, strict=True)] if table else [[] for _ in range(len(_TERMS) + 2)]


def _with_on_demand(lines: Sequence[Line], question: Question) -> list[Line]:
    """Return the lines, spot ones with the cheapest on-demand machine of the same cloud and size beside. One query."""
    spot = [line for line in lines if line.cost and line.market == Offer.MarketKind.SPOT]
    if question.job is None or not spot:
        return list(lines)
    prices = _on_demand_prices(spot, question)
    return [_beside(line, prices, question.job) if line.market == Offer.MarketKind.SPOT else line for line in lines]


def _on_demand_prices(spot: Sequence[Line], question: Question) -> dict[tuple[int, int, Decimal], Decimal]:
    """Return the lowest price of a machine by cloud, GPU and count, among what may be shown (stale ones are not)."""
    rows = (
        offers_where({"market": (Offer.MarketKind.ON_DEMAND.value,)}, now=question.now)
        .filter(
            cloud__in={line.cloud.pk for line in spot if line.cloud},
            gpu__in={line.gpu.pk for line in spot},
            gpu_count__in={line.gpu_count for line in spot},
            is_whole=True,
        )
        .order_by()
        .values_list("cloud_id", "gpu_id", "gpu_count")
        .annotate(lowest=Min("price_usd_per_hour"))
    )
    return {(cloud_id, gpu_id, count): lowest for cloud_id, gpu_id, count, lowest in rows}


def _beside(line: Line, prices: Mapping[tuple[int, int, Decimal], Decimal], job: Job) -> Line:
    price = prices.get((line.cloud.pk, line.gpu.pk, line.gpu_count)) if line.cloud else None
    if price is None or line.cost is None:
        return line
    on_demand = OnDemandBeside(
        total_usd=plan(job, replace(line.terms, is_spot=False)).cost(price).total_usd,
        price_usd_per_gpu_hour=price / line.gpu_count,
        break_even_per_day=break_even_per_day(
            job, line.terms, spot_usd_per_hour=line.price_usd_per_hour, on_demand_usd_per_hour=price
        ),
    )
    return replace(line, on_demand=on_demand)
