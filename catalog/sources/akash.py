"""Akash's GPU prices: per model, memory and interface, what providers bid for one GPU and hour, in USD.

The network is an auction: nobody posts a price, so two are shown per card, the lowest bid and the median. A price of
null means that nobody bids now. Leases are paid in the network's tokens; the API converts to USD itself.
Reference: https://akash.network/docs/ and the answer itself, https://console-api.akash.network/v1/gpu-prices
"""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import ClassVar

from catalog.sources.base import Availability, Body, BodyRejected, Document, OfferRow
from catalog.sources.json_body import Fields, at_least_one, fields_of, list_of, number_at, read_json, text_at

BIDS = (("min", "lowest bid"), ("med", "median bid"))


class Akash:
    """One document for the whole network."""

    name: ClassVar[str] = "akash"
    title: ClassVar[str] = "Akash Network"
    homepage: ClassVar[str] = "https://akash.network"
    adapter_version: ClassVar[str] = "1"
    is_collector: ClassVar[bool] = False
    needs_network: ClassVar[bool] = True

    def documents(self) -> Sequence[Document]:
        """Return the prices of every model."""
        return [
            Document(key="gpu-prices", urls=["https://console-api.akash.network/v1/gpu-prices"], file_name="akash.json")
        ]

    def parse(self, body: Body, companions: dict[str, Body]) -> Iterator[OfferRow]:
        """Yield the lowest and the median bid of each card. Raises BodyRejected without a list of models."""
        models = list_of(fields_of(read_json(body.content), "the body").get("models"), "models")
        yield from at_least_one(row for model in models for row in _rows(model, body.url))


def _rows(model: Fields, url: str) -> Iterator[OfferRow]:
    name, form_factor, memory = text_at(model, "model"), text_at(model, "interface"), text_at(model, "ram")
    prices = fields_of(model.get("price") or {}, "price")
    if not name:
        raise BodyRejected("a model has no name")
    free = number_at(fields_of(model.get("availability") or {}, "availability"), "available")
    for field, words in BIDS:
        price = number_at(prices, field)
        if price is not None:
            yield OfferRow(
                cloud="akash",
                instance_type=f"1x {name} {memory} {form_factor}, {words}",
                gpu_name=name,
                gpu_count=Decimal(1),
                gpu_memory_gb=memory_gb(memory),
                form_factor=form_factor,
                price_per_hour=price,
                currency=text_at(prices, "currency").upper() or "USD",
                availability=_availability(free),
                url=url,
            )


def memory_gb(text: str) -> Decimal | None:
    """Return a size such as "80Gi" in GB, None where it is none.

    >>> memory_gb("80Gi"), memory_gb("")
    (Decimal('80'), None)
    """
    found = re.fullmatch(r"(\d+)Gi?B?", text)
    return Decimal(found[1]) if found else None


def _availability(free: Decimal | None) -> Availability:
    if free is None:
        return Availability.UNKNOWN
    return Availability.YES if free > 0 else Availability.NO
