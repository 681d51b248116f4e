"""CUDO Compute's machine types: prices of one GPU, one vCPU and one GiB, each a text inside an object.

A machine is put together by the renter, so an offer here is one put together the way other clouds sell them: 8 vCPUs
and 32 GiB per GPU, as near to that as the type allows, without disk and address. A type says how many GPUs are free in
its data centre and how many of them one machine can have; none free means sold out.
Reference: https://docs.cudocompute.com/api (virtual machines, machine types)
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import ClassVar

from catalog.sources.base import Availability, Body, BodyRejected, Document, OfferRow
from catalog.sources.json_body import Fields, at_least_one, fields_of, list_of, number_at, read_json, text_at
from catalog.sources.regions import country_of

MACHINE_SIZES = tuple(map(Decimal, (1, 2, 4, 8)))
VCPUS_PER_GPU = Decimal(8)
RAM_GIB_PER_GPU = Decimal(32)


class Cudo:
    """One document for all data centres."""

    name: ClassVar[str] = "cudo"
    title: ClassVar[str] = "CUDO Compute"
    homepage: ClassVar[str] = "https://www.cudocompute.com"
    adapter_version: ClassVar[str] = "1"
    is_collector: ClassVar[bool] = False
    needs_network: ClassVar[bool] = True

    def documents(self) -> Sequence[Document]:
        """Return every machine type."""
        url = "https://rest.compute.cudo.org/v1/vms/machine-types"
        return [Document(key="machine-types", urls=[url], file_name="cudo.json")]

    def parse(self, body: Body, companions: dict[str, Body]) -> Iterator[OfferRow]:
        """Yield one row per type, data centre and size. Raises BodyRejected without a list of machine types."""
        types = list_of(fields_of(read_json(body.content), "the body").get("machineTypes"), "machineTypes")
        yield from at_least_one(row for kind in types for row in _rows(kind, body.url))


def _rows(kind: Fields, url: str) -> Iterator[OfferRow]:
    prices = [_price(kind, name) for name in ("gpuPriceHr", "vcpuPriceHr", "memoryGibPriceHr")]
    gpu_name, machine_type, centre = (
        text_at(kind, "gpuModel"),
        text_at(kind, "machineType"),
        text_at(kind, "dataCenterId"),
    )
    gpu_price, vcpu_price, gib_price = prices
    if not gpu_name or gpu_price is None or vcpu_price is None or gib_price is None:
        return
    if not machine_type:
        raise BodyRejected("a machine type has no name")
    free = number_at(kind, "totalGpuFree") or Decimal(0)
    most = min(free, number_at(kind, "maxGpuFree") or free)
    vcpus, ram_gib = _beside_one_gpu(kind)
    for gpus in [size for size in MACHINE_SIZES if size <= most] or [Decimal(1)]:
        yield OfferRow(
            cloud="cudo",
            instance_type=f"{machine_type}_{gpus:f}x{vcpus * gpus:f}v{ram_gib * gpus:f}gb",
            gpu_name=gpu_name,
            gpu_count=gpus,
            price_per_hour=(gpu_price + vcpu_price * vcpus + gib_price * ram_gib) * gpus,
            region=centre,
            country=country_of("cudo", centre),
            vcpus=vcpus * gpus,
            ram_gb=ram_gib * gpus,
            availability=Availability.YES if most >= 1 else Availability.NO,
            url=url,
        )


def _price(kind: Fields, name: str) -> Decimal | None:
    return number_at(fields_of(kind.get(name) or {}, name), "value")


def _beside_one_gpu(kind: Fields) -> tuple[Decimal, Decimal]:
    """Return vCPUs and GiB of RAM per GPU: 8 and 32 where the type's limits allow it, else the nearest they do."""
    least_vcpus, most_vcpus = number_at(kind, "minVcpuPerGpu"), number_at(kind, "maxVcpuPerGpu")
    vcpus = _between(VCPUS_PER_GPU, least_vcpus, most_vcpus)
    least_share, most_share = number_at(kind, "minVcpuPerMemoryGib"), number_at(kind, "maxVcpuPerMemoryGib")
    return vcpus, _between(
        RAM_GIB_PER_GPU, vcpus / most_share if most_share else None, vcpus / least_share if least_share else None
    )


def _between(wanted: Decimal, least: Decimal | None, most: Decimal | None) -> Decimal:
    return max(least or wanted, min(wanted, most or wanted))
