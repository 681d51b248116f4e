"""From what a page shows to what it tells programs (`catalog.structured_data`)."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from catalog.history_queries import Tracking
from catalog.models import Gpu, Offer
from catalog.queries import GpuOffers, GpuPrices
from catalog.structured_data import (
    CloudOffer,
    Crumb,
    Download,
    Figure,
    JsonLd,
    LivePrices,
    dataset,
    item_list,
    product,
    website,
)
from common import formats


def describe_site(request: HttpRequest) -> JsonLd:
    """Return the site, for its front page."""
    return website(
        url=request.build_absolute_uri(reverse("catalog:board")),
        description=_("What an hour of a GPU costs, and where: prices of many clouds, each with its kind and its age."),
        language=_language(),
    )


def describe_list(request: HttpRequest, gpus: Iterable[Gpu], *, name: str) -> JsonLd:
    """Return the GPUs that a page leads to."""
    pages = (
        Crumb(name=gpu.name, url=request.build_absolute_uri(reverse("catalog:gpu", args=[gpu.slug]))) for gpu in gpus
    )
    return item_list(pages, name=name)


def describe_gpu(request: HttpRequest, gpu: Gpu, *, prices: GpuPrices, offers: GpuOffers) -> JsonLd:
    """Return a GPU with the live on-demand prices of its page."""
    return product(
        url=request.build_absolute_uri(request.path),
        name=gpu.name,
        maker=gpu.vendor,
        category=_("GPU rental by the hour"),
        description=_("%(vendor)s, %(architecture)s. %(gb)s GB of %(type)s, form factor %(form)s.")
        % {
            "vendor": gpu.vendor,
            "architecture": gpu.architecture,
            "gb": formats.figure(gpu.memory_gb, language=_language()),
            "type": gpu.memory_type,
            "form": gpu.form_factor,
        },
        figures=[
            Figure(name=_("Memory"), value=gpu.memory_gb, unit="GB"),
            Figure(name=_("Bandwidth"), value=gpu.memory_bandwidth_gb_s, unit="GB/s"),
            Figure(name=_("BF16, dense"), value=gpu.bf16_dense_tflops, unit="TFLOPS"),
        ],
        live=live_prices(prices, offers),
    )


def live_prices(prices: GpuPrices, offers: GpuOffers) -> LivePrices | None:
    """Return the live on-demand prices at other clouds, with each cloud's cheapest line of the page; None without any."""
    counted = prices.elsewhere["on_demand"]
    if counted is None:
        return None
    printed: dict[str, Offer] = {}
    for line in offers.live.lines:
        offer = line.offer
        if offer.market == Offer.MarketKind.ON_DEMAND and offer.is_whole and offer.verified:
            printed.setdefault(offer.cloud.name, offer)
    return LivePrices(
        lowest_usd_per_gpu_hour=counted.min,
        clouds=counted.offers,
        printed=[
            CloudOffer(cloud=name, price_usd_per_gpu_hour=offer.price_usd_per_gpu_hour, availability=offer.availability)
            for name, offer in printed.items()
        ],
    )


def describe_history(request: HttpRequest, gpu: Gpu, *, tracking: Tracking | None, api_query: str) -> JsonLd | None:
    """Return the price history of a GPU with its downloads; None where nothing was recorded."""
    if tracking is None:
        return None
    download = request.build_absolute_uri(f"{reverse('api-price-history', args=[gpu.slug])}?{api_query}")
    return dataset(
        url=request.build_absolute_uri(request.path),
        site_url=request.build_absolute_uri(reverse("catalog:board")),
        method_url=request.build_absolute_uri(f"{reverse('catalog:method')}#statistics"),
        name=_("%(name)s: price history") % {"name": gpu.label},
        description=_(
            "What an hour of %(name)s cost, as recorded hour by hour at the clouds we read: lowest, median and "
            "spread in USD, with gaps shown as gaps. As CSV and JSON too."
        )
        % {"name": gpu.label},
        measured=[_("Lowest"), "p25", _("Median"), "p75"],
        recorded=(tracking.since.date(), tracking.until.date()),
        downloads=[
            Download(media_type="text/csv", url=f"{download}&format=csv"),
            Download(media_type="application/json", url=download),
        ],
        language=_language(),
    )


@dataclass(frozen=True, kw_only=True)
class PagePicture:
    """The picture of one page for link previews, and what it shows in words."""

    url: str
    alt: str


def page_picture(request: HttpRequest, name: str, gpu: Gpu) -> PagePicture:
    """Return the picture of a page about `gpu`, at the address of this name."""
    return PagePicture(
        url=request.build_absolute_uri(reverse(name, args=[gpu.slug])),
        alt=_("%(name)s: its price per GPU-hour, with its kind and the time it was read") % {"name": gpu.label},
    )


def _language() -> str:
    return get_language() or "en"
