"""TensorDock's locations: each with its cards at a host's price per GPU, and prices for what stands beside them.

vCPUs, RAM and disk cost extra, so an offer here is a machine as other clouds sell them: 8 vCPUs and 32 GB of RAM per
GPU as far as the location has them, and the 100 GB of disk that every machine must have. `max_count` is the largest
number of GPUs one machine can have now; 0 means sold out. An account without a deposit may see no locations at all.
Reference: https://dashboard.tensordock.com/api/docs/fetch-hostnodes
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import ClassVar

from catalog.sources.base import Availability, Body, BodyRejected, Document, OfferRow
from catalog.sources.json_body import Fields, at_least_one, fields_of, list_of, number_at, read_json, text_at
from catalog.sources.regions import country_of

MACHINE_SIZES = tuple(map(Decimal, (1, 2, 4, 8)))
VCPUS_PER_GPU = Decimal(8)
RAM_GB_PER_GPU = Decimal(32)
DISK_GB = Decimal(100)


class TensorDock:
    """One document; the key goes into the Authorization header."""

    name: ClassVar[str] = "tensordock"
    title: ClassVar[str] = "TensorDock"
    homepage: ClassVar[str] = "https://tensordock.com"
    adapter_version: ClassVar[str] = "1"
    is_collector: ClassVar[bool] = False
    needs_network: ClassVar[bool] = True
    key_setting: ClassVar[str] = "TENSORDOCK_API_KEY"
    needs_key: ClassVar[bool] = True

    def documents(self) -> Sequence[Document]:
        """Return the one document as it is called in saved copies."""
        return self.documents_with("")

    def documents_with(self, key: str) -> Sequence[Document]:
        """Return all locations, asked for with `key`."""
        return [
            Document(
                key="locations",
                urls=["https://dashboard.tensordock.com/api/v2/locations"],
                file_name="tensordock.json",
                headers={"Authorization": f"Bearer {key}"} if key else {},
            )
        ]

    def parse(self, body: Body, companions: dict[str, Body]) -> Iterator[OfferRow]:
        """Yield one row per location, card and size. Raises BodyRejected without a list of locations."""
        data = fields_of(fields_of(read_json(body.content), "the body").get("data"), "data")
        yield from at_least_one(
            row
            for location in list_of(data.get("locations"), "locations")
            for gpu in list_of(location.get("gpus"), "gpus")
            for row in _rows(location, gpu, body.url)
        )


def _rows(location: Fields, gpu: Fields, url: str) -> Iterator[OfferRow]:
    gpu_name, price = text_at(gpu, "v0Name"), number_at(gpu, "price_per_hr")
    if not gpu_name:
        raise BodyRejected("a card has no name")
    if price is None:
        return
    most = number_at(gpu, "max_count") or Decimal(0)
    region = ", ".join(filter(None, (text_at(location, "city"), text_at(location, "stateprovince"))))
    for gpus in [size for size in MACHINE_SIZES if size <= most] or [Decimal(1)]:
        vcpus, ram_gb, disk_gb, beside = _beside(gpu, gpus)
        yield OfferRow(
            cloud="tensordock",
            instance_type=f"{gpus:f}x {gpu_name}, {vcpus:f} vCPU, {ram_gb:f} GB",
            gpu_name=gpu_name,
            gpu_count=gpus,
            price_per_hour=price * gpus + beside,
            region=region,
            zone=text_at(location, "id"),
            country=country_of("tensordock", text_at(location, "country")),
            vcpus=vcpus,
            ram_gb=ram_gb,
            disk_gb=disk_gb,
            availability=Availability.YES if most >= 1 else Availability.NO,
            url=url,
        )


def _beside(gpu: Fields, gpus: Decimal) -> tuple[Decimal, Decimal, Decimal, Decimal]:
    """Return vCPUs, GB of RAM, GB of disk, and what they cost an hour. Raises BodyRejected where a price is missing."""
    limits, prices = fields_of(gpu.get("resources") or {}, "resources"), fields_of(gpu.get("pricing"), "pricing")
    amounts, cost = [], Decimal(0)
    for wanted, limit, price_name in (
        (VCPUS_PER_GPU * gpus, "max_vcpus", "per_vcpu_hr"),
        (RAM_GB_PER_GPU * gpus, "max_ram_gb", "per_gb_ram_hr"),
        (DISK_GB, "max_storage_gb", "per_gb_storage_hr"),
    ):
        price = number_at(prices, price_name)
        if price is None:
            raise BodyRejected(f"a card has no {price_name}")
        amount = min(wanted, number_at(limits, limit) or wanted)
        amounts.append(amount)
        cost += amount * price
    vcpus, ram_gb, disk_gb = amounts
    return vcpus, ram_gb, disk_gb, cost
