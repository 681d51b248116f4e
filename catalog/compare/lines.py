"""One line of the comparison: an outside offer, or the exchange's best ask for a GPU, with what is known beside it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from catalog.compare.filters import OUR_BILLING_STEP_SECONDS, OUR_MARKET
from catalog.compare.job import Cost, Terms
from catalog.freshness import Freshness, freshness
from catalog.models import BestAsk, Cloud, Gpu, Offer, Source

# What a query over offers reads for a line; clouds, GPUs and sources are few and are read whole beside it.
OFFER_COLUMNS = (
    "id",
    "cloud_id",
    "gpu_id",
    "source_id",
    "instance_type",
    "gpu_count",
    "is_whole",
    "price_usd_per_hour",
    "price_usd_per_gpu_hour",
    "market",
    "term_months",
    "region",
    "country",
    "vcpus",
    "ram_gb",
    "disk_gb",
    "interconnect",
    "billing_step_seconds",
    "availability",
    "verified",
    "is_list",
    "url",
    "observed_at",
    "priced_on",
)


@dataclass(frozen=True, kw_only=True)
class Known:
    """The clouds, GPUs and sources of the catalogue by their keys."""

    clouds: Mapping[int, Cloud]
    gpus: Mapping[int, Gpu]
    sources: Mapping[int, Source]


@dataclass(frozen=True, kw_only=True)
class OnDemandBeside:
    """What the same machine costs on demand, and how many interruptions a day the spot price bears (None = any)."""

    total_usd: Decimal
    price_usd_per_gpu_hour: Decimal
    break_even_per_day: Decimal | None


@dataclass(frozen=True, kw_only=True)
class Line:
    """An offer with its cloud and source, or an ask of ours (neither). `cost` is of the reader's job, if there is one."""

    id: UUID
    gpu: Gpu
    cloud: Cloud | None
    source: Source | None
    instance_type: str
    gpu_count: Decimal
    is_whole: bool
    price_usd_per_hour: Decimal
    price_usd_per_gpu_hour: Decimal
    market: str
    term_months: int | None
    region: str
    country: str
    vcpus: Decimal | None
    ram_gb: Decimal | None
    disk_gb: Decimal | None
    own_interconnect: str
    own_billing_step_seconds: int | None
    availability: str
    verified: bool
    url: str
    observed_at: datetime
    priced_on: date | None
    freshness: Freshness
    devices_available: int | None = None
    cost: Cost | None = None
    on_demand: OnDemandBeside | None = None

    @property
    def is_ours(self) -> bool:
        """Whether it is for rent here."""
        return self.cloud is None

    @property
    def is_live(self) -> bool:
        """Whether it may be marked: read lately and not dated; ours always is."""
        return self.is_ours or self.freshness in (Freshness.FRESH, Freshness.WARNED)

    @property
    def is_dated(self) -> bool:
        """Whether it is a list price."""
        return self.freshness is Freshness.LIST

    @property
    def market_in_words(self) -> str:
        """How it is sold."""
        return str(Offer.MarketKind(self.market).label)

    @property
    def stock_in_words(self) -> str:
        """Whether it can be had."""
        return str(Offer.Stock(self.availability).label)

    @property
    def total_memory_gb(self) -> Decimal:
        """Memory of all its GPUs."""
        return self.gpu.memory_gb * self.gpu_count

    @property
    def interconnect(self) -> str:
        """Its own, else its GPU's."""
        return self.own_interconnect or self.gpu.interconnect

    @property
    def billing_step_seconds(self) -> int | None:
        """Its own, else its cloud's."""
        if self.own_billing_step_seconds is None and self.cloud is not None:
            return self.cloud.billing_step_seconds
        return self.own_billing_step_seconds

    @property
    def terms(self) -> Terms:
        """What a job's sum needs besides the price. On the exchange nothing but the hours is charged."""
        if self.cloud is None:
            return OUR_TERMS
        return terms_of_offer(
            self.cloud,
            market=self.market,
            term_months=self.term_months,
            gpu_count=self.gpu_count,
            billing_step_seconds=self.own_billing_step_seconds,
        )


OUR_TERMS = Terms(
    gpu_count=Decimal(1),
    billing_step_seconds=OUR_BILLING_STEP_SECONDS,
    minimum_seconds=0,
    egress_usd_per_gb=Decimal(0),
    storage_usd_per_gb_month=Decimal(0),
    volume_survives_stop=False,
    bills_when_stopped=False,
)


def terms_of_offer(
    cloud: Cloud, *, market: str, term_months: int | None, gpu_count: Decimal, billing_step_seconds: int | None
) -> Terms:
    """Return the terms of an offer of `cloud`: the offer's own billing step goes before the cloud's."""
    return Terms(
        gpu_count=gpu_count,
        is_spot=market == Offer.MarketKind.SPOT,
        term_months=term_months,
        billing_step_seconds=cloud.billing_step_seconds if billing_step_seconds is None else billing_step_seconds,
        minimum_seconds=cloud.minimum_seconds,
        egress_usd_per_gb=cloud.egress_usd_per_gb,
        storage_usd_per_gb_month=cloud.storage_usd_per_gb_month,
        volume_survives_stop=cloud.volume_survives_stop,
        bills_when_stopped=cloud.bills_when_stopped,
        spot_notice_seconds=cloud.spot_notice_seconds,
    )


def line_of_offer(row: Mapping[str, Any], *, known: Known, now: datetime) -> Line:
    """Return the line of a row of OFFER_COLUMNS."""
    same = {name: row[name] for name in OFFER_COLUMNS if name in Line.__dataclass_fields__}
    return Line(
        **same,
        gpu=known.gpus[row["gpu_id"]],
        cloud=known.clouds[row["cloud_id"]],
        source=known.sources[row["source_id"]],
        own_interconnect=row["interconnect"],
        own_billing_step_seconds=row["billing_step_seconds"],
        freshness=freshness(
            observed_at=row["observed_at"], priced_on=row["priced_on"], is_list=row["is_list"], now=now
        ),
    )


def line_of_ask(ask: BestAsk, *, known: Known, now: datetime) -> Line:
    """Return the line of our best ask for a GPU: one device by the hour. Its id sorts before those of offers."""
    return Line(
        id=UUID(int=ask.pk),
        gpu=known.gpus[ask.pk],
        cloud=None,
        source=None,
        instance_type="",
        gpu_count=Decimal(1),
        is_whole=True,
        price_usd_per_hour=ask.price_usd_per_gpu_hour,
        price_usd_per_gpu_hour=ask.price_usd_per_gpu_hour,
        market=OUR_MARKET.value,
        term_months=None,
        region="",
        country="",
        vcpus=None,
        ram_gb=None,
        disk_gb=None,
        own_interconnect="",
        own_billing_step_seconds=OUR_BILLING_STEP_SECONDS,
        availability=Offer.Stock.YES.value,
        verified=True,
        url="",
        observed_at=ask.observed_at,
        priced_on=None,
        freshness=freshness(observed_at=ask.observed_at, priced_on=None, is_list=False, now=now),
        devices_available=ask.devices_available,
    )
