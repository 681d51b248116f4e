"""The parameters of the catalogue's calls, and what each means as a query."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

from catalog.compare.filters import PRECISIONS, offers_where
from catalog.compare.presets import PRESETS, with_preset
from catalog.freshness import Freshness
from catalog.models import Cloud, CloudFact, Gpu, Offer, PriceSnapshot, Source
from common.pagination import Order
from common.parameters import KnownValues, Number, OneOrMore, PageParameters, QueryParameters, WholeNumber, Words
from fx.queries import WALLET_CURRENCIES

CURRENCIES = WALLET_CURRENCIES
_GB: dict[str, Any] = {"required": False, "min_value": 0, "max_value": 1_000_000}
_PART = r"[^,\x00]*[^,\x00\s][^,\x00]*"
_COUNT: dict[str, Any] = {"required": False, "min_value": 1, "max_value": 1_000_000}

_GPU_ORDERS = {
    "position": Order(column="position"),
    "name": Order(column="name"),
    "memory_gb": Order(column="memory_gb"),
    **{
        column: Order(column=column, is_nullable=True)
        for column in (
            "memory_bandwidth_gb_s",
            "bf16_dense_tflops",
            "fp16_dense_tflops",
            "fp8_dense_tflops",
            "fp4_dense_tflops",
            "tf32_dense_tflops",
            "fp32_tflops",
            "fp64_tflops",
            "int8_dense_tops",
            "nvlink_gb_s",
            "tdp_w",
        )
    },
}
_OFFER_ORDERS = {
    "price_usd_per_gpu_hour": Order(column="price_usd_per_gpu_hour"),
    "price_usd_per_hour": Order(column="price_usd_per_hour"),
    "gpu_count": Order(column="gpu_count"),
    "memory_gb": Order(column="gpu__memory_gb"),
    "vcpus": Order(column="vcpus", is_nullable=True),
    "ram_gb": Order(column="ram_gb", is_nullable=True),
    "disk_gb": Order(column="disk_gb", is_nullable=True),
    "observed_at": Order(column="observed_at"),
}


def _ordering(orders: Mapping[str, Order], *, default: str) -> serializers.ChoiceField:
    return serializers.ChoiceField(
        choices=[sign + name for name in orders for sign in ("", "-")],
        default=default,
        help_text="A minus sorts downward. Rows without the figure come last both ways.",
    )


def _order(orders: Mapping[str, Order], ordering: str) -> Order:
    order = orders[ordering.removeprefix("-")]
    return order.reversed if ordering.startswith("-") else order


class GpuParameters(PageParameters):
    """Filters of the GPU list."""

    vendor = KnownValues(model=Gpu, column="vendor", required=False, help_text="Makers, for example NVIDIA,AMD.")
    architecture = KnownValues(model=Gpu, column="architecture", required=False)
    software_stack = KnownValues(model=Gpu, column="software_stack", required=False, help_text="For example CUDA.")
    memory_gb_min = Number(**_GB)
    memory_gb_max = Number(**_GB)
    search = Words(required=False, max_length=100, help_text="Words that must all occur in the name.")
    ordering = _ordering(_GPU_ORDERS, default="position")


_GPU_LOOKUPS = {
    "vendor": "vendor__in",
    "architecture": "architecture__in",
    "software_stack": "software_stack__in",
    "memory_gb_min": "memory_gb__gte",
    "memory_gb_max": "memory_gb__lte",
}


def filter_gpus(wanted: Mapping[str, Any]) -> QuerySet[Gpu]:
    """Return the GPUs that meet `wanted` (values of GpuParameters)."""
    gpus = Gpu.objects.filter(**_lookups(_GPU_LOOKUPS, wanted))
    for word in wanted.get("search", "").split():
        gpus = gpus.filter(Q(name__icontains=word) | Q(label__icontains=word) | Q(slug__icontains=word))
    return gpus


def gpu_order(wanted: Mapping[str, Any]) -> Order:
    """Return the order that `wanted` asks for."""
    return _order(_GPU_ORDERS, wanted["ordering"])


class PriceParameters(PageParameters):
    """Filters of the price list."""

    gpu = KnownValues(model=Gpu, column="slug", required=False, help_text="Slugs as in the GPU list.")
    currency = serializers.ChoiceField(
        choices=CURRENCIES,
        default="USD",
        error_messages={"invalid_choice": _("Prices are available in: %s.") % ", ".join(CURRENCIES)},
    )


class HistoryParameters(PageParameters):
    """Which part of a GPU's price history."""

    days = WholeNumber(default=30, min_value=1, max_value=3650, help_text="Counted back from now.")
    market = serializers.ChoiceField(choices=PriceSnapshot.Market.values, default=PriceSnapshot.Market.ON_DEMAND.value)
    format = serializers.ChoiceField(
        choices=("json", "csv"),
        required=False,
        help_text="csv: every row in one stream, unless limit or cursor is given.",
    )


class SourceParameters(PageParameters):
    """The list of sources only takes paging."""


class NoParameters(QueryParameters):
    """For calls about one thing."""


class NameParameters(QueryParameters):
    """A GPU's name as somebody spells it, and what tells two cards of one name apart."""

    name = Words(max_length=200, help_text="For example A100-SXM4-80GB.")
    memory_gb = Number(**_GB, help_text="Memory of one GPU.")
    form_factor = Words(required=False, max_length=40, help_text="For example SXM or PCIe.")
    cloud = Words(required=False, max_length=40, help_text="Where the name was seen.")
    instance_type = Words(required=False, max_length=120, help_text="The machine it was seen on.")


def _yes_or_no(help_text: str = "As the cloud says. Unknown ones are left out.") -> serializers.ChoiceField:
    return serializers.ChoiceField(choices=("true", "false"), required=False, help_text=help_text)


_SECONDS: dict[str, Any] = {
    "required": False,
    "min_value": 0,
    "max_value": 1_000_000,
    "help_text": "Charged at least per start, as the cloud says. Unknown ones are left out.",
}
_CLOUD_LOOKUPS = {
    "cloud": "slug__in",
    "billing_step_max_seconds": "billing_step_seconds__lte",
    "minimum_time_max_seconds": "minimum_seconds__lte",
    "max_egress_usd_per_gb": "egress_usd_per_gb__lte",
}


class CloudParameters(PageParameters):
    """Filters of the list of clouds."""

    cloud = KnownValues(model=Cloud, column="slug", required=False)
    headquarters_country = OneOrMore(item="[A-Za-z]{2}", required=False, help_text="Two-letter codes.")
    billing_step_max_seconds = WholeNumber(**_COUNT, help_text="Unknown ones are left out.")
    minimum_time_max_seconds = WholeNumber(**_SECONDS)
    persistent_volumes = _yes_or_no()
    max_egress_usd_per_gb = Number(**_GB, help_text="First paid tier. Unknown ones are left out.")
    multi_node = _yes_or_no()

    def validate_headquarters_country(self, codes: tuple[str, ...]) -> tuple[str, ...]:
        """Return the codes as stored."""
        return tuple(code.upper() for code in codes)


class OfferParameters(PageParameters):
    """Filters of the offers."""

    gpu = KnownValues(model=Gpu, column="slug", required=False, help_text="Slugs as in the GPU list.")
    vendor = KnownValues(model=Gpu, column="vendor", required=False, help_text="Makers, for example NVIDIA,AMD.")
    cloud = KnownValues(model=Cloud, column="slug", required=False)
    source = KnownValues(model=Source, column="name", required=False)  # type: ignore[assignment]  # a field of that name
    market = OneOrMore(choices=Offer.MarketKind.values, required=False)
    country = OneOrMore(item="[A-Za-z]{2}", required=False, help_text="Two-letter codes, for example NL,DE.")
    region = OneOrMore(required=False, help_text="As the source spells it.")
    min_gpus = WholeNumber(**_COUNT)
    max_gpus = WholeNumber(**_COUNT)
    min_memory_gb = Number(**_GB, help_text="Memory of one GPU.")
    min_total_memory_gb = Number(**_GB, help_text="Memory of all GPUs of the offer.")
    min_memory_bandwidth_gb_s = Number(**_GB, help_text="Memory bandwidth of one GPU.")
    max_price_usd_per_gpu_hour = Number(**_GB)
    min_fp64_tflops = Number(**_GB, help_text="Dense double precision of one GPU.")
    precision = OneOrMore(
        choices=tuple(PRECISIONS), required=False, help_text="The maker publishes a dense figure for each of them."
    )
    rt_cores = _yes_or_no("Ray-tracing cores.")
    interconnect = OneOrMore(
        item=_PART,
        required=False,
        max_length=200,
        help_text="Part of its name, in any case, of the offer; where it does not say, of its GPU. Any of several.",
    )
    billing_step_max_seconds = WholeNumber(
        **_COUNT, help_text="Of the offer; where it does not say, of its cloud. Unknown ones are left out."
    )
    minimum_time_max_seconds = WholeNumber(**_SECONDS)
    persistent_volumes = _yes_or_no()
    volume_survives_stop = _yes_or_no()
    min_spot_notice_seconds = WholeNumber(
        required=False, min_value=0, max_value=1_000_000, help_text="Of the cloud. Unknown ones are left out."
    )
    min_storage_mib_s = Number(**_GB, help_text="Throughput of a volume of the cloud. Unknown ones are left out.")
    max_egress_usd_per_gb = Number(**_GB, help_text="First paid tier of the cloud. Unknown ones are left out.")
    multi_node = _yes_or_no()
    fabric = OneOrMore(
        item=_PART,
        required=False,
        max_length=200,
        help_text="Part of the name of the cloud's network between machines.",
    )
    term_months = WholeNumber(required=False, min_value=1, max_value=120)
    availability = OneOrMore(choices=Offer.Stock.values, required=False)
    freshness = OneOrMore(
        choices=[tier.value for tier in Freshness], required=False, help_text="Tiers by age; all but stale by default."
    )
    use_case = serializers.ChoiceField(
        choices=tuple(PRESETS), required=False, help_text="Sets the filters of that use, but for those given beside it."
    )
    ordering = _ordering(_OFFER_ORDERS, default="price_usd_per_gpu_hour")
    format = serializers.ChoiceField(
        choices=("json", "csv"),
        required=False,
        help_text="csv: every row in one stream, unless limit or cursor is given.",
    )

    def validate_country(self, codes: tuple[str, ...]) -> tuple[str, ...]:
        """Return the codes as stored."""
        return tuple(code.upper() for code in codes)


def filter_offers(wanted: Mapping[str, Any], *, now: datetime) -> QuerySet[Offer]:
    """Return the offers on sale that meet `wanted` (values of OfferParameters)."""
    return offers_where(with_preset(wanted), now=now)


def filter_clouds(wanted: Mapping[str, Any]) -> QuerySet[Cloud]:
    """Return the clouds that meet `wanted` (values of CloudParameters)."""
    clouds = Cloud.objects.filter(**_lookups(_CLOUD_LOOKUPS, wanted))
    for name in ("persistent_volumes", "multi_node"):
        if name in wanted:
            clouds = clouds.filter(**{name: wanted[name] == "true"})
    if "headquarters_country" in wanted:
        codes = wanted["headquarters_country"]
        clouds = clouds.filter(facts__fact=CloudFact.Fact.HEADQUARTERS_COUNTRY, facts__value__in=codes)
    return clouds


def offer_order(wanted: Mapping[str, Any]) -> Order:
    """Return the order that `wanted` asks for."""
    return _order(_OFFER_ORDERS, wanted["ordering"])


def _lookups(lookups: Mapping[str, str], wanted: Mapping[str, Any]) -> dict[str, Any]:
    return {lookup: wanted[name] for name, lookup in lookups.items() if name in wanted}
