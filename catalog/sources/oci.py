"""Oracle's public price list: one price per GPU and hour, the same in every commercial region, without any stock.

GPUs are sold in fixed shapes only, so a price becomes one offer per shape of that card; the price list's unit is the
GPU, and a shape's price contains its processors and memory. Shapes: Oracle's "Compute Shapes" page
(https://docs.oracle.com/en-us/iaas/Content/Compute/References/computeshapes.htm), read November 2026.
Reference of the list: https://docs.oracle.com/en-us/iaas/Content/Billing/Tasks/signingup_topic-Estimating_Costs.htm
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

from catalog.sources.base import Body, BodyRejected, Document, OfferRow
from catalog.sources.json_body import Fields, at_least_one, fields_of, list_of, number_at, read_json, text_at

GPU_METRIC = "GPU Per Hour"
MODEL = "PAY_AS_YOU_GO"


@dataclass(frozen=True, kw_only=True)
class Card:
    """A card's hints, and the number of it in each shape by the shape's name."""

    memory_gb: int
    form_factor: str
    shapes: dict[str, int]


# The price list's own name -> what is sold of it.
CARDS = {
    "A10": Card(memory_gb=24, form_factor="", shapes={"VM.GPU.A10.1": 1, "VM.GPU.A10.2": 2, "BM.GPU.A10.4": 4}),
    "A100 - v2": Card(memory_gb=80, form_factor="SXM", shapes={"BM.GPU.A100-v2.8": 8}),
    "L40S": Card(memory_gb=48, form_factor="", shapes={"BM.GPU.L40S.4": 4}),
    "H100": Card(memory_gb=80, form_factor="SXM", shapes={"BM.GPU.H100.8": 8}),
    "H100T": Card(memory_gb=80, form_factor="SXM", shapes={"BM.GPU.H100.8": 8}),
    "H200": Card(memory_gb=141, form_factor="SXM", shapes={"BM.GPU.H200.8": 8}),
    "B200": Card(memory_gb=180, form_factor="SXM", shapes={"BM.GPU.B200.8": 8}),
    "MI300X": Card(memory_gb=192, form_factor="", shapes={"BM.GPU.MI300X.8": 8}),
}


class Oci:
    """One document, asked for in USD; the list also holds everything that is no GPU."""

    name: ClassVar[str] = "oci"
    title: ClassVar[str] = "Oracle Cloud price list"
    homepage: ClassVar[str] = "https://www.oracle.com/cloud/price-list/"
    adapter_version: ClassVar[str] = "1"
    is_collector: ClassVar[bool] = False
    needs_network: ClassVar[bool] = True

    def documents(self) -> Sequence[Document]:
        """Return the whole price list in USD."""
        url = "https://apexapps.oracle.com/pls/apex/cetools/api/v1/products/?currencyCode=USD"
        return [Document(key="products", urls=[url], file_name="oci.json")]

    def parse(self, body: Body, companions: dict[str, Body]) -> Iterator[OfferRow]:
        """Yield one row per shape of each priced card. Raises BodyRejected when `items` is not a list of products."""
        products = list_of(fields_of(read_json(body.content), "the body").get("items"), "items")
        yield from at_least_one(
            row
            for product in products
            if text_at(product, "metricName").lower() == GPU_METRIC.lower()
            for row in _rows(product, body.url)
        )


def _rows(product: Fields, url: str) -> Iterator[OfferRow]:
    name, priced = card_in(text_at(product, "displayName")), _price_per_gpu(product)
    if priced is None:
        return
    if not name:
        raise BodyRejected("a GPU product has no name")
    currency, price = priced
    card = CARDS.get(name)
    # A card whose shapes are not known yet keeps the list's unit: one GPU, called by its part number.
    shapes = card.shapes if card else {text_at(product, "partNumber"): 1}
    for shape, gpus in shapes.items():
        yield OfferRow(
            cloud="oci",
            instance_type=shape,
            gpu_name=name.removesuffix(" - v2") if card else name,
            gpu_count=Decimal(gpus),
            gpu_memory_gb=Decimal(card.memory_gb) if card else None,
            form_factor=card.form_factor if card else "",
            price_per_hour=price * gpus,
            currency=currency,
            url=url,
        )


def card_in(display_name: str) -> str:
    """Return the card a product's name ends with.

    >>> card_in("OCI - Compute - GPU - A100 - v2"), card_in("Compute - GPU - H100T")
    ('A100 - v2', 'H100T')
    """
    found = re.search(r"\bGPU(?: Standard)? - (.+)$", display_name)
    return found[1].strip() if found else display_name


def _price_per_gpu(product: Fields) -> tuple[str, Decimal] | None:
    """Return currency and pay-as-you-go price: in USD where the list has it, else in its first currency.

    The highest of several tiers is taken, because lower ones are free allowances.
    """
    found: dict[str, Decimal] = {}
    for localization in list_of(product.get("currencyCodeLocalizations"), "currencyCodeLocalizations"):
        prices = [
            number_at(price, "value")
            for price in list_of(localization.get("prices"), "prices")
            if text_at(price, "model") == MODEL
        ]
        stated = [price for price in prices if price is not None]
        if stated:
            found[text_at(localization, "currencyCode").upper()] = max(stated)
    if "USD" in found:
        return "USD", found["USD"]
    return next(iter(found.items()), None)
