"""What pages say to programs, in the words of schema.org: only what they also show people; nothing rated or guessed.

Each function returns a dictionary ready for JSON. Addresses are absolute; money is a string in USD per GPU-hour.

>>> breadcrumbs([Crumb(name="GPUs", url="https://example.com/")])["itemListElement"][0]["position"]
1
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

SITE_NAME = "GPU Bourse"
CONTEXT = "https://schema.org"
HOUR = "HUR"  # UN/CEFACT's code of the hour
CURRENCY = "USD"
AVAILABILITY = {
    "yes": f"{CONTEXT}/InStock",
    "low": f"{CONTEXT}/LimitedAvailability",
    "no": f"{CONTEXT}/SoldOut",
}

JsonLd = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Crumb:
    """A step of the way to a page."""

    name: str
    url: str


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure of a GPU as its maker publishes it; `value` is None where it is not published."""

    name: str
    value: Decimal | None
    unit: str


@dataclass(frozen=True, kw_only=True)
class CloudOffer:
    """A live price at one cloud. `availability` is "yes", "low", "no", or anything else where it is not told."""

    cloud: str
    price_usd_per_gpu_hour: Decimal
    availability: str


@dataclass(frozen=True, kw_only=True)
class LivePrices:
    """The lowest live price, how many clouds were counted, and those offers the page prints."""

    lowest_usd_per_gpu_hour: Decimal
    clouds: int
    printed: Sequence[CloudOffer]


@dataclass(frozen=True, kw_only=True)
class Download:
    """A file of a dataset."""

    media_type: str
    url: str


def website(*, url: str, description: str, language: str) -> JsonLd:
    """Return the site and who runs it."""
    return {
        "@context": CONTEXT,
        "@type": "WebSite",
        "name": SITE_NAME,
        "url": url,
        "description": description,
        "inLanguage": language,
        "publisher": _organization(url),
    }


def breadcrumbs(crumbs: Iterable[Crumb]) -> JsonLd:
    """Return the way to a page, from the top."""
    return {
        "@context": CONTEXT,
        "@type": "BreadcrumbList",
        "itemListElement": [
            {"@type": "ListItem", "position": position, "name": crumb.name, "item": crumb.url}
            for position, crumb in enumerate(crumbs, 1)
        ],
    }


def item_list(pages: Iterable[Crumb], *, name: str) -> JsonLd:
    """Return the pages that a list leads to, in its order."""
    items = [
        {"@type": "ListItem", "position": position, "name": page.name, "url": page.url}
        for position, page in enumerate(pages, 1)
    ]
    return {
        "@context": CONTEXT,
        "@type": "ItemList",
        "name": name,
        "numberOfItems": len(items),
        "itemListElement": items,
    }


def product(
    *,
    url: str,
    name: str,
    maker: str,
    category: str,
    description: str,
    figures: Iterable[Figure],
    live: LivePrices | None,
) -> JsonLd:
    """Return a GPU for rent. Without a live price it carries no offer: a dated one may no longer hold."""
    found: JsonLd = {
        "@context": CONTEXT,
        "@type": "Product",
        "name": name,
        "url": url,
        "brand": {"@type": "Brand", "name": maker},
        "category": category,
        "description": description,
        "additionalProperty": [_property(figure) for figure in figures if figure.value is not None],
    }
    if live is not None:
        found["offers"] = _aggregate_offer(live)
    return found


def _property(figure: Figure) -> JsonLd:
    assert figure.value is not None
    return {
        "@type": "PropertyValue",
        "name": figure.name,
        "value": int(figure.value) if figure.value == int(figure.value) else float(figure.value),
        "unitText": figure.unit,
    }


def _aggregate_offer(live: LivePrices) -> JsonLd:
    return {
        "@type": "AggregateOffer",
        "priceCurrency": CURRENCY,
        "lowPrice": _money(live.lowest_usd_per_gpu_hour),
        "offerCount": live.clouds,
        "priceSpecification": _price_per_hour(live.lowest_usd_per_gpu_hour),
        "offers": [_offer(offer) for offer in live.printed],
    }


def _offer(offer: CloudOffer) -> JsonLd:
    found: JsonLd = {
        "@type": "Offer",
        "price": _money(offer.price_usd_per_gpu_hour),
        "priceCurrency": CURRENCY,
        "priceSpecification": _price_per_hour(offer.price_usd_per_gpu_hour),
        "seller": {"@type": "Organization", "name": offer.cloud},
    }
    if offer.availability in AVAILABILITY:
        found["availability"] = AVAILABILITY[offer.availability]
    return found


def _price_per_hour(price_usd: Decimal) -> JsonLd:
    return {
        "@type": "UnitPriceSpecification",
        "price": _money(price_usd),
        "priceCurrency": CURRENCY,
        "unitCode": HOUR,
        "unitText": "GPU-hour",
        "referenceQuantity": {"@type": "QuantitativeValue", "value": 1, "unitCode": HOUR},
        "valueAddedTaxIncluded": False,
    }


def _money(amount: Decimal) -> str:
    """Print an amount with two decimals, or with as many more as it has.

    >>> _money(Decimal("2.880000")), _money(Decimal("0.123400")), _money(Decimal(3))
    ('2.88', '0.1234', '3.00')
    """
    cents = amount.quantize(Decimal("0.01"))
    return format(cents if cents == amount else amount.normalize(), "f")


def article(
    *,
    url: str,
    site_url: str,
    headline: str,
    description: str,
    published_on: date,
    updated_on: date,
    cited: Iterable[str],
    language: str,
) -> JsonLd:
    """Return a guide; its dates are those it prints, `cited` are the addresses of its sources."""
    return {
        "@context": CONTEXT,
        "@type": "Article",
        "headline": headline,
        "description": description,
        "url": url,
        "inLanguage": language,
        "datePublished": published_on.isoformat(),
        "dateModified": updated_on.isoformat(),
        "author": _organization(site_url),
        "publisher": _organization(site_url),
        "citation": list(cited),
    }


def questions(asked: Iterable[tuple[str, str]]) -> JsonLd:
    """Return a page's questions with the answers it prints, both as plain text."""
    return {
        "@context": CONTEXT,
        "@type": "FAQPage",
        "mainEntity": [
            {"@type": "Question", "name": question, "acceptedAnswer": {"@type": "Answer", "text": answer}}
            for question, answer in asked
        ],
    }


def dataset(
    *,
    url: str,
    site_url: str,
    method_url: str,
    name: str,
    description: str,
    measured: Iterable[str],
    recorded: tuple[date, date],
    downloads: Iterable[Download],
    language: str,
) -> JsonLd:
    """Return a price history that can be downloaded; `recorded` is its first and its last day."""
    first, last = recorded
    return {
        "@context": CONTEXT,
        "@type": "Dataset",
        "name": name,
        "description": description,
        "url": url,
        "inLanguage": language,
        "isAccessibleForFree": True,
        "creator": _organization(site_url),
        "temporalCoverage": f"{first.isoformat()}/{last.isoformat()}",
        "measurementTechnique": method_url,
        "variableMeasured": [
            {"@type": "PropertyValue", "name": name, "unitText": f"{CURRENCY} per GPU-hour"} for name in measured
        ],
        "distribution": [
            {"@type": "DataDownload", "encodingFormat": download.media_type, "contentUrl": download.url}
            for download in downloads
        ],
    }


def _organization(url: str) -> JsonLd:
    return {"@type": "Organization", "name": SITE_NAME, "url": url}
