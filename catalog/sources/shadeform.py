"""Shadeform, an aggregator: machine types of some twenty clouds, whole instances in cents.

Each type names the cloud that runs it, and the offer is that cloud's: a fresh source of the cloud itself replaces it.
A type tells region by region whether it can be started now; one without regions can be started nowhere. The same
machine can stand there under several names of Shadeform's own, so offers go by the cloud's own name for it.
Reference: https://docs.shadeform.ai/ (API reference, instance types)
"""

from collections.abc import Iterator, Sequence
from typing import ClassVar

from catalog.names import cloud_slug
from catalog.sources.base import Availability, Body, BodyRejected, Document, OfferRow
from catalog.sources.json_body import (
    Fields,
    at_least_one,
    fields_of,
    is_true,
    list_of,
    number_at,
    once_each,
    read_json,
    text_at,
)
from catalog.sources.regions import country_of

CENTS_PER_DOLLAR = 100


class Shadeform:
    """One document; the key goes into a header of its own."""

    name: ClassVar[str] = "shadeform"
    title: ClassVar[str] = "Shadeform"
    homepage: ClassVar[str] = "https://www.shadeform.ai"
    adapter_version: ClassVar[str] = "1"
    is_collector: ClassVar[bool] = True
    needs_network: ClassVar[bool] = True
    key_setting: ClassVar[str] = "SHADEFORM_API_KEY"
    needs_key: ClassVar[bool] = True

    def documents(self) -> Sequence[Document]:
        """Return the one document as it is called in saved copies."""
        return self.documents_with("")

    def documents_with(self, key: str) -> Sequence[Document]:
        """Return all types of all clouds, asked for with `key`."""
        return [
            Document(
                key="shadeform",
                urls=["https://api.shadeform.ai/v1/instances/types"],
                file_name="shadeform.json",
                headers={"X-API-KEY": key} if key else {},
            )
        ]

    def parse(self, body: Body, companions: dict[str, Body]) -> Iterator[OfferRow]:
        """Yield one row per type and region, in stock or not. Raises BodyRejected without a list of types."""
        kinds = list_of(fields_of(read_json(body.content), "the body").get("instance_types"), "instance_types")
        yield from at_least_one(once_each(row for kind in kinds for row in _rows(kind, body.url)))


def _rows(kind: Fields, url: str) -> Iterator[OfferRow]:
    cents, machine = number_at(kind, "hourly_price"), fields_of(kind.get("configuration"), "configuration")
    gpus, gpu_name = number_at(machine, "num_gpus"), text_at(machine, "gpu_type")
    if not gpus or cents is None:
        return
    instance_type = text_at(kind, "cloud_instance_type") or text_at(kind, "shade_instance_type")
    if not gpu_name or not instance_type:
        raise BodyRejected("a type with GPUs has no name")
    for region, availability in _places(kind):
        yield OfferRow(
            cloud=cloud_slug(text_at(kind, "cloud")),
            instance_type=instance_type,
            gpu_name=gpu_name,
            gpu_count=gpus,
            gpu_memory_gb=number_at(machine, "vram_per_gpu_in_gb") or None,
            form_factor=text_at(machine, "interconnect"),
            price_per_hour=cents / CENTS_PER_DOLLAR,
            region=region,
            country=country_of("shadeform", region),
            vcpus=number_at(machine, "vcpus"),
            ram_gb=number_at(machine, "memory_in_gb"),
            disk_gb=number_at(machine, "storage_in_gb"),
            availability=availability,
            url=url,
        )


def _places(kind: Fields) -> list[tuple[str, Availability]]:
    places = [
        (text_at(place, "region"), Availability.YES if is_true(place, "available") else Availability.NO)
        for place in list_of(kind.get("availability") or [], "availability")
    ]
    return places or [("", Availability.NO)]
