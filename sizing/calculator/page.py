"""One calculation for the page: what was asked, estimated over the GPUs and prices of this moment."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from catalog.models import Gpu
from catalog.queries import NO_PRICES, GpuPrices, Headline
from marketplace.limits import MOST_HOURS
from sizing.calculator.address import NAMES, address
from sizing.calculator.answer import Answer, CardPrice, GpuSet, Memory, Part, Row, answer_of
from sizing.calculator.form import CalculatorForm
from sizing.calculator.remedies import Remedy, remedies_for
from sizing.calculator.spot import SpotRow, spot_rows
from sizing.calculator.words import PARTS, PHASES, REMEDIES, Assumption, Words, assumptions_of
from sizing.engine.architecture import Architecture
from sizing.engine.estimate import Estimate, Request
from sizing.engine.interruptions import Interruptions, machines
from sizing.engine.job import Job
from sizing.engine.request import read_request
from sizing.estimates import Market, card_of, market_now
from sizing.facts import presets

SHOWN_ROWS = 12
_OF_THE_ADDRESS = {"micro_batch": "batch"}  # fields of the engine that the address calls otherwise


@dataclass(frozen=True, kw_only=True)
class GpuRow:
    """A card's row with its GPU and price column. An order is for `MOST_HOURS` at most, also where more are needed."""

    row: Row
    gpu: Gpu
    headline: Headline | None

    @property
    def best(self) -> GpuSet | None:
        """The set to take."""
        return self.row.best

    @property
    def rent_hours(self) -> int:
        """Hours of the order: begun ones are full ones."""
        return min(self.best.whole_hours, MOST_HOURS) if self.best else 0

    @property
    def rent_query(self) -> str:
        """The ticket filled in; blank where no hours are known."""
        if self.best is None or self.best.hours is None:
            return ""
        return rent_query(self.best.gpu_count, self.rent_hours, is_free=not self.best.is_more_than_free)

    @property
    def is_longer_than_an_order(self) -> bool:
        """Whether one order does not last until the job is done."""
        return self.best is not None and self.best.whole_hours > MOST_HOURS


@dataclass(frozen=True, kw_only=True)
class PartLine:
    """A part of the memory with its name."""

    part: Part
    name: Words


@dataclass(frozen=True, kw_only=True)
class RemedyLine:
    """A remedy with its name, the cheapest GPU with it, and the query of the page that has it applied."""

    remedy: Remedy
    name: Words
    gpu: Gpu | None
    query: str


@dataclass(frozen=True, kw_only=True)
class SpotLine:
    """A spot row with its GPU and how long a machine must live for spot to pay, whole seconds."""

    row: SpotRow
    gpu: Gpu
    break_even_seconds: int | None


@dataclass(frozen=True, kw_only=True)
class Calculation:
    """What the page shows beside its questions."""

    answer: Answer
    architecture: Architecture
    job: Job
    b_params: Decimal
    phase: Words
    parts: tuple[PartLine, ...]
    rows: tuple[GpuRow, ...]
    rows_in_all: int
    unpriced: tuple[GpuRow, ...]
    too_small: tuple[Gpu, ...]
    cheapest: GpuRow | None
    remedies: tuple[RemedyLine, ...]
    spot: tuple[SpotLine, ...]
    interruptions: Interruptions
    assumptions: list[Assumption]
    method_version: str
    fields_asked: Mapping[str, Any]
    has_catalogue: bool

    @property
    def memory(self) -> Memory:
        """The memory of one GPU of the set that is named first."""
        return self.answer.memory

    @property
    def largest_count(self) -> int:
        """The largest number of GPUs that was asked for."""
        return max(total.gpu_count for total in self.answer.totals)


def calculation(form: CalculatorForm, *, now: datetime) -> Calculation:
    """Return the calculation for a form that is right. Five queries. Raises RequestError before any of them."""
    asked = form.fields_asked()
    request = read_request(asked, presets=presets())
    market = market_now(now=now)
    estimate = market.estimate(request)
    answer = answer_of(estimate, _card_prices(market))
    gpus = {gpu.slug: gpu for gpu in market.gpus}
    rows = tuple(_gpu_row(row, gpus, market.prices) for row in answer.priced)
    is_whole = form.cleaned_data["show"] == "all"
    return Calculation(
        answer=answer,
        architecture=request.architecture,
        job=request.job,
        b_params=(Decimal(answer.parameters) / 10**9).quantize(Decimal("0.01")),
        phase=PHASES.get(answer.memory.phase, answer.memory.phase),
        parts=tuple(PartLine(part=part, name=PARTS.get(part.name, part.name)) for part in answer.memory.parts),
        rows=rows if is_whole else rows[:SHOWN_ROWS],
        rows_in_all=len(rows),
        unpriced=tuple(_gpu_row(row, gpus, market.prices) for row in answer.unpriced),
        too_small=tuple(gpus[slug] for slug in answer.too_small),
        cheapest=next((row for row in rows if row.row is answer.cheapest), None),
        remedies=_remedies(form, asked, estimate, market, gpus),
        spot=tuple(_spot_line(row, gpus) for row in spot_rows(answer.priced, form.interruptions())),
        interruptions=form.interruptions(),
        assumptions=assumptions_of(estimate.assumptions),
        method_version=estimate.method_version,
        fields_asked=asked,
        has_catalogue=bool(gpus),
    )


def _card_prices(market: Market) -> dict[str, CardPrice]:
    return {slug: _card_price(prices) for slug, prices in market.prices.items()}


def _card_price(prices: GpuPrices) -> CardPrice:
    headline, spot = prices.headline, prices.elsewhere["spot"]
    return CardPrice(
        usd_per_gpu_hour=headline.price_usd_per_gpu_hour if headline else None,
        is_live=headline is not None and headline.is_live,
        spot_usd_per_gpu_hour=spot.min if spot else None,
        gpus_free=headline.devices_available if headline else None,
    )


def _gpu_row(row: Row, gpus: Mapping[str, Gpu], prices: Mapping[str, GpuPrices]) -> GpuRow:
    return GpuRow(
        row=row,
        gpu=gpus[row.slug],
        headline=prices.get(row.slug, NO_PRICES).headline,
    )


def rent_query(gpu_count: int, hours: int, *, is_free: bool) -> str:
    """Return the ticket's query: the best offer, or an order that waits; more than eight GPUs are several servers.

    >>> rent_query(4, 9, is_free=True), rent_query(16, 2, is_free=False)
    ('kind=best&gpu_count=4&hours=9', 'kind=limit&gpu_count=8&hours=2&server_count=2')
    """
    servers = machines(gpu_count)
    ticket = {"kind": "best" if is_free else "limit", "gpu_count": -(-gpu_count // servers), "hours": hours}
    return urlencode({**ticket, **({"server_count": servers} if servers > 1 else {})})


def _remedies(
    form: CalculatorForm, asked: Mapping[str, Any], base: Estimate, market: Market, gpus: Mapping[str, Gpu]
) -> tuple[RemedyLine, ...]:
    prices, known = _card_prices(market), presets()

    def estimated(fields: Mapping[str, Any]) -> tuple[Estimate, Answer]:
        request: Request = read_request(fields, presets=known)
        estimate = market.estimate(request)
        return estimate, answer_of(estimate, prices)

    largest_gib = max((card_of(gpu).usable_gib for gpu in market.gpus), default=0.0)
    found = remedies_for(asked, base, largest_gib=largest_gib, estimator=estimated)
    return tuple(
        RemedyLine(
            remedy=remedy,
            name=REMEDIES[remedy.change.name],
            gpu=gpus.get(remedy.cheapest_slug or ""),
            query=_query_with(form, remedy.change.fields),
        )
        for remedy in found
    )


def _query_with(form: CalculatorForm, changes: Mapping[str, Any]) -> str:
    """Return the query of the same page with some answers changed."""
    answers = {name: str(form.data.get(name) or "") for name in NAMES}
    for name, value in changes.items():
        text = ",".join(map(str, value)) if isinstance(value, list) else str("" if value is None else value)
        answers[_OF_THE_ADDRESS.get(name, name)] = text
    return urlencode(address(answers, before=answers))


def _spot_line(row: SpotRow, gpus: Mapping[str, Gpu]) -> SpotLine:
    mean_s = row.break_even_mean_s
    return SpotLine(row=row, gpu=gpus[row.slug], break_even_seconds=None if mean_s is None else round(mean_s))
