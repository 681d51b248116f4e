"""Vast.ai's marketplace: each offer is one host's machine, or a part of its GPUs, at the host's own price.

Prices are for the whole offer. `gpu_frac` says which part of the machine's GPUs the offer is, never which part of a
card; the machine's RAM is divided by it, because the API states it for the whole machine. `min_bid` is the floor of
the interruptible price. Rented machines are left out, hosts that Vast has not verified are marked.
Reference: https://docs.vast.ai/api-reference/search/search-offers
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import ClassVar

from catalog.sources.base import Availability, Body, BodyRejected, Document, Market, OfferRow
from catalog.sources.json_body import Fields, at_least_one, fields_of, is_true, list_of, number_at, read_json, text_at

MIB_PER_GB = 1024
HUNDREDTH = Decimal("0.01")
RTX_4090_GB = 24
# The default is a few dozen; there were under two thousand rentable offers of verified hosts when this was written.
MOST_OFFERS = 3000
SEARCH = {
    "verified": {"eq": True},
    "rentable": {"eq": True},
    "rented": {"eq": False},
    "type": "on-demand",
    "order": [["dph_total", "asc"]],
    "limit": MOST_OFFERS,
}


class Vast:
    """One search; a key is sent when there is one, the search has been seen to answer without."""

    name: ClassVar[str] = "vast"
    title: ClassVar[str] = "Vast.ai"
    homepage: ClassVar[str] = "https://vast.ai"
    adapter_version: ClassVar[str] = "1"
    is_collector: ClassVar[bool] = False
    needs_network: ClassVar[bool] = True
    key_setting: ClassVar[str] = "VAST_API_KEY"
    needs_key: ClassVar[bool] = False

    def documents(self) -> Sequence[Document]:
        """Return the search, asked without a key."""
        return self.documents_with("")

    def documents_with(self, key: str) -> Sequence[Document]:
        """Return the search for every rentable offer of verified hosts."""
        return [
            Document(
                key="offers",
                urls=["https://console.vast.ai/api/v0/bundles/"],
                file_name="vast.json",
                headers={"Authorization": f"Bearer {key}"} if key else {},
                json_body=SEARCH,
            )
        ]

    def parse(self, body: Body, companions: dict[str, Body]) -> Iterator[OfferRow]:
        """Yield an on-demand row per offer, and a spot row where there is a floor for bids.

        Raises BodyRejected when `offers` is not a list of machines with a price.
        """
        offers = list_of(fields_of(read_json(body.content), "the body").get("offers"), "offers")
        rows = (row for offer in offers if _is_free(offer) for row in _rows(offer))
        yield from at_least_one(cheapest_per_machine(replace(row, url=body.url) for row in rows))


def _is_free(offer: Fields) -> bool:
    return is_true(offer, "rentable") and not is_true(offer, "rented")


def _rows(offer: Fields) -> Iterator[OfferRow]:
    asked, floor = number_at(offer, "dph_total"), number_at(offer, "min_bid")
    if is_true(offer, "is_bid"):
        asked, floor = None, asked
    for market, price in ((Market.ON_DEMAND, asked), (Market.SPOT, floor)):
        if price is not None:
            yield _row(offer, market, price)


def _row(offer: Fields, market: Market, price: Decimal) -> OfferRow:
    gpus, name, region = number_at(offer, "num_gpus"), text_at(offer, "gpu_name"), _region(offer)
    if not gpus or not name:
        raise BodyRejected("an offer names no GPU or no number of them")
    memory_gb = _in_gb(number_at(offer, "gpu_ram"))
    share = number_at(offer, "gpu_frac") or Decimal(1)
    machine_ram = number_at(offer, "cpu_ram")
    return OfferRow(
        cloud="vast",
        instance_type=f"{gpus:f}x {name}, machine {number_at(offer, 'machine_id') or 0:f}",
        gpu_name=_as_sold(name, memory_gb),
        gpu_count=gpus,
        gpu_memory_gb=memory_gb,
        price_per_hour=price,
        market=market,
        region=region,
        country=_country(region),
        vcpus=number_at(offer, "cpu_cores_effective"),
        ram_gb=_in_gb(machine_ram * share) if machine_ram else None,
        disk_gb=number_at(offer, "disk_space"),
        availability=Availability.YES,
        verified=text_at(offer, "verification") == "verified",
    )


def cheapest_per_machine(rows: Iterable[OfferRow]) -> Iterator[OfferRow]:
    """Yield one row per machine, number of GPUs and market: a machine with two free pairs is one offer of a pair."""
    cheapest: dict[tuple[object, ...], OfferRow] = {}
    for row in rows:
        key = (row.instance_type, row.gpu_memory_gb, row.market)
        known = cheapest.get(key)
        if known is None or row.price_per_hour < known.price_per_hour:
            cheapest[key] = row
    yield from cheapest.values()


def _as_sold(name: str, memory_gb: Decimal | None) -> str:
    """An RTX 4090 with twice its memory is a rebuilt card, not the product of that name."""
    if name == "RTX 4090" and memory_gb and memory_gb > RTX_4090_GB * 3 / 2:
        return f"RTX 4090 rebuilt to {memory_gb.to_integral_value()} GB"
    return name


def _in_gb(mib: Decimal | None) -> Decimal | None:
    return (mib / MIB_PER_GB).quantize(HUNDREDTH) if mib else None


def _region(offer: Fields) -> str:
    """Return 'Norway, NO', or 'US' where the host's place is only ', US'."""
    return text_at(offer, "geolocation").strip(", ")


def _country(region: str) -> str:
    code = region.rpartition(",")[2].strip()
    return code if len(code) == 2 and code.isalpha() and code.isupper() else ""
