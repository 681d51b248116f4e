"""OVHcloud's public price catalogue: whole flavours, prices as whole numbers of 1e-8 of the currency.

The catalogue holds everything OVHcloud sells. Taken are addons with a GPU whose plan is `<flavour>.consumption`: the
same flavour by the month is a plan of its own, AI products are priced by the minute, Windows has flavours of its own.
Of a plan's prices only the one per hour without commitment counts. Prices are without tax. Neither stock nor region
is told. The catalogue is large and changes rarely, so it is asked for four times a day.
Reference: https://api.ovh.com/console/#/order/catalog/public/cloud~GET
"""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import ClassVar

from catalog.sources.base import Body, BodyRejected, Document, OfferRow
from catalog.sources.json_body import Fields, at_least_one, fields_of, list_of, number_at, read_json, text_at

PRICE_UNIT = Decimal(10**8)
FLAVOUR = re.compile(r"(?!win-)([a-z0-9-]+)\.consumption")


class Ovh:
    """One document of some 8 MB, asked for as a French customer sees it, in EUR."""

    name: ClassVar[str] = "ovh"
    title: ClassVar[str] = "OVHcloud"
    homepage: ClassVar[str] = "https://www.ovhcloud.com"
    adapter_version: ClassVar[str] = "1"
    is_collector: ClassVar[bool] = False
    needs_network: ClassVar[bool] = True
    interval_minutes: ClassVar[int] = 360

    def documents(self) -> Sequence[Document]:
        """Return the whole catalogue of Public Cloud."""
        url = "https://api.ovh.com/v1/order/catalog/public/cloud?ovhSubsidiary=FR"
        return [Document(key="catalogue", urls=[url], file_name="ovh.json")]

    def parse(self, body: Body, companions: dict[str, Body]) -> Iterator[OfferRow]:
        """Yield one row per flavour with GPUs. Raises BodyRejected without a currency or a list of addons."""
        catalogue = fields_of(read_json(body.content), "the body")
        currency = text_at(fields_of(catalogue.get("locale"), "locale"), "currencyCode").upper()
        if not currency:
            raise BodyRejected("the catalogue names no currency")
        addons = list_of(catalogue.get("addons"), "addons")
        yield from at_least_one(row for addon in addons for row in _rows(addon, currency, body.url))


def _rows(addon: Fields, currency: str, url: str) -> Iterator[OfferRow]:
    flavour = FLAVOUR.fullmatch(text_at(addon, "planCode"))
    machine = _at(_at(addon, "blobs"), "technical")
    gpu = _at(machine, "gpu")
    gpus, price = number_at(gpu, "number"), _hourly(addon) if flavour else None
    if flavour is None or not gpus or price is None:
        return
    gpu_name = text_at(gpu, "model")
    if not gpu_name:
        raise BodyRejected(f"{flavour[1]} has GPUs without a name")
    yield OfferRow(
        cloud="ovhcloud",
        instance_type=flavour[1],
        gpu_name=gpu_name,
        gpu_count=gpus,
        gpu_memory_gb=number_at(_at(gpu, "memory"), "size") or None,
        price_per_hour=price,
        currency=currency,
        vcpus=number_at(_at(machine, "cpu"), "cores"),
        ram_gb=number_at(_at(machine, "memory"), "size"),
        url=url,
    )


def _hourly(addon: Fields) -> Decimal | None:
    """Return the lowest price of one hour that binds nobody; None for plans by the minute or the month."""
    prices = [
        number_at(pricing, "price", unit=PRICE_UNIT)
        for pricing in list_of(addon.get("pricings") or [], "pricings")
        if text_at(pricing, "intervalUnit") == "hour"
        and number_at(pricing, "interval") == 1
        and not number_at(pricing, "commitment")
    ]
    return min((price for price in prices if price is not None), default=None)


def _at(fields: Fields, name: str) -> Fields:
    return fields_of(fields.get(name) or {}, name)
