"""What the catalogue's calls answer, field by field: the same lines make the body and its description.

Prices are strings, figures numbers, and what nobody published or told is null.
"""

from collections.abc import Mapping
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from drf_spectacular.utils import extend_schema_field, inline_serializer
from rest_framework import serializers

from catalog.cloud_queries import facts_of
from catalog.freshness import Freshness
from catalog.models import Cloud, CloudFact, Gpu, Offer, Source
from catalog.queries import NO_PRICES, GpuPrices
from common.problems import ProblemSerializer
from fx.queries import UsdRate
from sizing.engine.simple_rule import full_training_b_params

_MICRO = Decimal("0.000001")
_CENT = Decimal("0.01")


@extend_schema_field({"type": "number"})
class Figure(serializers.Field[Decimal, Any, "int | float", Any]):
    """A figure of a data sheet: a JSON number, whole where it is whole (80, not 80.00)."""

    def to_representation(self, value: Decimal) -> int | float:
        """Return the number."""
        return int(value) if value == value.to_integral_value() else float(value)


@extend_schema_field({"type": "string", "format": "decimal", "pattern": r"^\d+\.\d{2,6}$", "example": "2.19"})
class Price(serializers.Field[Decimal, Any, str, Any]):
    """Money as a string: at least two decimals, more only where they are not zero."""

    def to_representation(self, value: Decimal) -> str:
        """Return the text."""
        exact = value.quantize(_MICRO).normalize()
        return f"{exact.quantize(_CENT) if exact == exact.quantize(_CENT) else exact:f}"


class Text(serializers.CharField):
    """Text, or null where there is none."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"allow_null": True, **kwargs})

    def to_representation(self, value: str) -> str | None:  # type: ignore[override]
        """Return the text."""
        return value or None


class HeadlineSerializer(serializers.Serializer[Any]):
    """The price to show first: the exchange's, else the lowest live one, else the lowest list price."""

    price_per_gpu_hour = Price(source="price_usd_per_gpu_hour")
    kind = serializers.ChoiceField(choices=["exchange", "on_demand", "list"])
    cloud = serializers.CharField(source="cloud_slug", allow_null=True)
    observed_at = serializers.DateTimeField()
    priced_on = serializers.DateField(allow_null=True)


class ExchangeSerializer(serializers.Serializer[Any]):
    """The best ask of the exchange: one device for one hour."""

    best_ask_per_gpu_hour = Price()
    devices_available = serializers.IntegerField()
    observed_at = serializers.DateTimeField()


class StatsSerializer(serializers.Serializer[Any]):
    """Prices over clouds, each cloud's lowest counting once."""

    min = Price()
    p25 = Price()
    median = Price()
    p75 = Price()
    offers = serializers.IntegerField(help_text="Clouds counted.")
    observed_at = serializers.DateTimeField()
    priced_on = serializers.DateField(allow_null=True)


class ElsewhereSerializer(serializers.Serializer[Any]):
    """Prices at other clouds, per way of selling."""

    on_demand = StatsSerializer(allow_null=True)
    spot = StatsSerializer(allow_null=True)
    reserved = StatsSerializer(allow_null=True)
    list = StatsSerializer(allow_null=True)


class RateSerializer(serializers.Serializer[Any]):
    """How USD became the currency of the answer."""

    rate = serializers.CharField()
    date = serializers.DateField()
    source = serializers.CharField()  # type: ignore[assignment]  # a field of that name


class GpuPricesSerializer(serializers.Serializer[Any]):
    """Every price of one GPU, net of tax, per GPU-hour."""

    gpu = serializers.CharField()
    headline = HeadlineSerializer(allow_null=True)
    exchange = ExchangeSerializer(allow_null=True)
    elsewhere = ElsewhereSerializer()
    currency = serializers.CharField()
    fx = RateSerializer(allow_null=True)


_MONEY = {"price_usd_per_gpu_hour", "best_ask_per_gpu_hour", "min", "p25", "median", "p75"}


def price_row(slug: str, prices: Mapping[str, GpuPrices], *, rate: UsdRate | None = None) -> dict[str, Any]:
    """Return the prices of one GPU as GpuPricesSerializer takes them: in USD, or in the rate's currency."""
    row = asdict(prices.get(slug, NO_PRICES))
    if rate is None:
        return {"gpu": slug, **row, "currency": "USD", "fx": None}
    fx = {"rate": f"{rate.units_per_usd:f}", "date": rate.day, "source": rate.origin}
    return {"gpu": slug, **_converted(row, rate), "currency": rate.currency, "fx": fx}


def _converted(values: dict[str, Any], rate: UsdRate) -> dict[str, Any]:
    """Return nested values with every price in the rate's currency."""
    return {
        name: _converted(value, rate)
        if isinstance(value, dict)
        else rate.from_usd(value)
        if name in _MONEY and value is not None
        else value
        for name, value in values.items()
    }


class GpuSourceSerializer(serializers.Serializer[Any]):
    """Where the figures come from: the maker's page, or a second one."""

    url = serializers.URLField()
    kind = serializers.ChoiceField(choices=["vendor", "second"])


class GpuSerializer(serializers.Serializer[Any]):
    """One rentable GPU. Figures are dense; null where the maker does not publish one."""

    slug = serializers.CharField()
    name = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # a field of that name
    vendor = serializers.CharField()
    architecture = serializers.CharField()
    released = Text(help_text="Month announced, YYYY-MM.")
    form_factor = serializers.CharField()
    memory_gb = Figure()
    memory_type = Text()
    memory_bandwidth_gb_s = Figure(allow_null=True)
    bf16_dense_tflops = Figure(allow_null=True)
    fp16_dense_tflops = Figure(allow_null=True)
    fp8_dense_tflops = Figure(allow_null=True)
    fp4_dense_tflops = Figure(allow_null=True)
    tf32_dense_tflops = Figure(allow_null=True)
    fp32_tflops = Figure(allow_null=True)
    fp64_tflops = Figure(allow_null=True)
    int8_dense_tops = Figure(allow_null=True)
    nvlink_gb_s = Figure(allow_null=True)
    interconnect = Text()
    max_gpus_per_board = serializers.IntegerField(allow_null=True)
    tdp_w = serializers.IntegerField(allow_null=True)
    compute_capability = Text()
    ecc = serializers.BooleanField(allow_null=True)
    mig = serializers.BooleanField(allow_null=True)
    rt_cores = serializers.BooleanField(allow_null=True)
    nvenc = serializers.IntegerField(allow_null=True)
    software_stack = Text()
    sources = serializers.SerializerMethodField()
    notes = Text()
    full_training_b_params = serializers.SerializerMethodField(
        help_text="Largest model, in billions of parameters, that trains on 1 and on 8 GPUs by the simple rule."
    )
    prices = serializers.SerializerMethodField()

    @extend_schema_field(GpuSourceSerializer(many=True))
    def get_sources(self, gpu: Gpu) -> list[dict[str, str]]:
        """Return the pages that carry the figures."""
        pages = (("vendor", gpu.source_url), ("second", gpu.second_source_url))
        return [{"url": url, "kind": kind} for kind, url in pages if url]

    @extend_schema_field(
        inline_serializer("FullTraining", {"1": serializers.IntegerField(), "8": serializers.IntegerField()})
    )
    def get_full_training_b_params(self, gpu: Gpu) -> dict[str, int]:
        """Return the simple rule's sizes."""
        return {str(count): full_training_b_params(memory_gb=gpu.memory_gb, gpu_count=count) for count in (1, 8)}

    @extend_schema_field(GpuPricesSerializer)
    def get_prices(self, gpu: Gpu) -> dict[str, Any]:
        """Return the GPU's part of the price table in the context."""
        return GpuPricesSerializer(price_row(gpu.slug, self.context["prices"])).data


class PriceSnapshotSerializer(serializers.Serializer[Any]):
    """Prices as they stood in one hour, USD per GPU-hour; on the exchange all four are the best ask."""

    at = serializers.DateTimeField(help_text="The hour, at its beginning.")
    min = Price()
    p25 = Price()
    median = Price()
    p75 = Price()
    offers = serializers.IntegerField(help_text="Clouds counted, each at its lowest price; the exchange counts as one.")


class OfferSerializer(serializers.Serializer[Any]):
    """A price seen at an outside source. Takes rows of `.values()`, so that `source` names a path of the query."""

    id = serializers.UUIDField()
    cloud = serializers.CharField(source="cloud__slug")
    source = serializers.CharField(source="source__name")  # type: ignore[assignment]  # a field of that name
    instance_type = serializers.CharField()
    gpu = serializers.CharField(source="gpu__slug")
    gpu_count = Figure(help_text="Fractions are slices of a card.")
    price_usd_per_hour = Price()
    price_usd_per_gpu_hour = Price()
    currency = serializers.CharField(help_text="What the source charges in.")
    price_in_currency_per_hour = Price()
    market = serializers.ChoiceField(choices=Offer.MarketKind.values)
    term_months = serializers.IntegerField(allow_null=True)
    region = Text()
    country = Text()
    vcpus = Figure(allow_null=True)
    ram_gb = Figure(allow_null=True)
    disk_gb = Figure(allow_null=True)
    interconnect = Text()
    billing_step_seconds = serializers.IntegerField(allow_null=True)
    availability = serializers.ChoiceField(choices=Offer.Stock.values)
    observed_at = serializers.DateTimeField()
    priced_on = serializers.DateField(allow_null=True)
    url = Text()
    freshness = serializers.ChoiceField(choices=[tier.value for tier in Freshness])


class CloudFactSerializer(serializers.Serializer[Any]):
    """One fact with the page it was read on, and the day."""

    fact = serializers.ChoiceField(choices=CloudFact.Fact.values)
    value = serializers.CharField()
    note = Text()
    source_url = serializers.URLField()
    checked_on = serializers.DateField()


class CloudSerializer(serializers.Serializer[Any]):
    """One cloud. A fact that was not found is null: that does not mean no. `facts` says where each was read."""

    slug = serializers.CharField()
    name = serializers.CharField()
    website = serializers.URLField()
    live_offers = serializers.IntegerField(help_text="Offers on sale read in the last hours.")
    headquarters_country = Text()
    billing_step_seconds = serializers.IntegerField(allow_null=True)
    minimum_seconds = serializers.IntegerField(allow_null=True, help_text="Charged at least per start.")
    stop_semantics = serializers.ChoiceField(
        choices=CloudFact.Stop.values,
        allow_null=True,
        help_text="What stays billed when a machine is stopped and kept.",
    )
    persistent_volumes = serializers.BooleanField(allow_null=True)
    egress_usd_per_gb = Price(allow_null=True, help_text="First paid tier to the internet; null also where it varies.")
    storage_usd_per_gb_month = Price(allow_null=True, help_text="Of a volume that outlives its machine.")
    storage_mib_s = Figure(allow_null=True, help_text="Throughput of such a volume.")
    multi_node = serializers.BooleanField(allow_null=True)
    fabric = Text(help_text="The network between machines of a cluster.")
    spot_notice_seconds = serializers.IntegerField(allow_null=True, help_text="0 = none.")
    docs_url = Text()
    api_url = Text()
    facts = CloudFactSerializer(many=True)


def cloud_row(cloud: Cloud, *, live_offers: int) -> dict[str, Any]:
    """Return a cloud (facts read beside it) as CloudSerializer takes it."""
    facts = facts_of(cloud)
    return {
        "slug": cloud.slug,
        "name": cloud.name,
        "website": cloud.website,
        "live_offers": live_offers,
        **{name: facts[name].typed_value if name in facts else None for name in CloudFact.Fact.values},
        "facts": list(facts.values()),
    }


class SourceSerializer(serializers.Serializer[Any]):
    """The state of one source of prices."""

    name = serializers.CharField(source="source.name")
    title = serializers.CharField(source="source.title")
    homepage = Text(source="source.homepage")
    is_collector = serializers.BooleanField(source="source.is_collector", help_text="Gathers the prices of others.")
    state = serializers.ChoiceField(choices=Source.State.values, source="source.state")
    interval_minutes = serializers.IntegerField(source="source.interval_minutes")
    last_attempt_at = serializers.DateTimeField(source="source.last_attempt_at", allow_null=True)
    last_success_at = serializers.DateTimeField(source="source.last_success_at", allow_null=True)
    last_error = Text(source="source.last_error")
    offers = serializers.IntegerField(help_text="Offers shown.")
    held_back = serializers.IntegerField(help_text="Offers kept out, each with its reason.")
    unmapped = serializers.IntegerField(help_text="Rows whose GPU name is not clear.")
    replayed = serializers.BooleanField(source="source.replayed", help_text="Read from a saved body.")


class ResolvedSerializer(serializers.Serializer[Any]):
    """The one GPU a name means."""

    slug = serializers.CharField()
    matched_by = serializers.ChoiceField(choices=["alias", "rule", "normalised"])


class NameProblemSerializer(ProblemSerializer):
    """A problem document with the GPUs that the name may mean."""

    candidates = serializers.ListField(
        child=serializers.CharField(), help_text="Slugs; none where the name is unknown."
    )


def page_of(row: type[serializers.Serializer[Any]], *, name: str) -> serializers.Serializer[Any]:
    """Return the description of a page of `row`."""
    return inline_serializer(
        name,
        {
            "next": serializers.URLField(allow_null=True),
            "previous": serializers.URLField(allow_null=True),
            "results": row(many=True),
        },
    )
