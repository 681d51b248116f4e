"""Lambda's instance types: one object per type with its price in cents and the regions that have capacity now.

The price is for the whole instance. A type without regions is sold out: its price stays, marked as not available.
Neither spot nor reserved prices are in the API. Reference: https://docs.lambda.ai/api/cloud
"""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import ClassVar

from catalog.sources.base import Availability, Body, BodyRejected, Document, OfferRow
from catalog.sources.json_body import Fields, at_least_one, fields_of, list_of, number_at, read_json, text_at
from catalog.sources.regions import country_of

CENTS_PER_DOLLAR = 100
GPU_DESCRIPTION = re.compile(r"(?P<name>[^(]+?)\s*\((?:(?P<memory>\d+)\s*GB)?\s*(?P<form>SXM|PCIe|NVL)?\d?\)")


class Lambda:
    """One document; the key goes into the Authorization header."""

    name: ClassVar[str] = "lambda"
    title: ClassVar[str] = "Lambda"
    homepage: ClassVar[str] = "https://lambda.ai"
    adapter_version: ClassVar[str] = "1"
    is_collector: ClassVar[bool] = False
    needs_network: ClassVar[bool] = True
    key_setting: ClassVar[str] = "LAMBDA_API_KEY"
    needs_key: ClassVar[bool] = True

    def documents(self) -> Sequence[Document]:
        """Return the one document as it is called in saved copies."""
        return self.documents_with("")

    def documents_with(self, key: str) -> Sequence[Document]:
        """Return the one document, asked for with `key`."""
        return [
            Document(
                key="instance-types",
                urls=["https://cloud.lambda.ai/api/v1/instance-types"],
                file_name="lambda.json",
                headers={"Authorization": f"Bearer {key}"} if key else {},
            )
        ]

    def parse(self, body: Body, companions: dict[str, Body]) -> Iterator[OfferRow]:
        """Yield one row per type and region with capacity. Raises BodyRejected when `data` is not such a map."""
        types = fields_of(fields_of(read_json(body.content), "the body").get("data"), "data")
        yield from at_least_one(
            row for name, entry in types.items() for row in _rows(name, fields_of(entry, name), body.url)
        )


def _rows(name: str, entry: Fields, url: str) -> Iterator[OfferRow]:
    kind = fields_of(entry.get("instance_type"), f"instance_type of {name}")
    specs = fields_of(kind.get("specs"), f"specs of {name}")
    gpus, cents = number_at(specs, "gpus"), number_at(kind, "price_cents_per_hour")
    if not gpus or cents is None:
        return
    gpu_name, memory_gb, form_factor = read_description(text_at(kind, "gpu_description"))
    regions = [text_at(region, "name") for region in list_of(entry.get("regions_with_capacity_available"), "regions")]
    if not gpu_name:
        raise BodyRejected(f"{name} has GPUs without a name")
    for region in regions or [""]:
        yield OfferRow(
            cloud="lambda",
            instance_type=name,
            gpu_name=gpu_name,
            gpu_count=gpus,
            gpu_count_in_name=_count_in(name),
            gpu_memory_gb=memory_gb,
            form_factor=form_factor or _board_of_eight(gpu_name, gpus),
            price_per_hour=cents / CENTS_PER_DOLLAR,
            region=region,
            country=country_of("lambda", region),
            vcpus=number_at(specs, "vcpus"),
            ram_gb=number_at(specs, "memory_gib"),
            disk_gb=number_at(specs, "storage_gib"),
            availability=Availability.YES if regions else Availability.NO,
            url=url,
        )


def read_description(text: str) -> tuple[str, Decimal | None, str]:
    """Return the card's name, its memory in GB and its form factor, as far as a `gpu_description` tells them.

    >>> read_description("A100 (40 GB SXM4)"), read_description("GH200 (96 GB)")
    (('A100', Decimal('40'), 'SXM'), ('GH200', Decimal('96'), ''))
    >>> read_description("B200")
    ('B200', None, '')
    """
    found = GPU_DESCRIPTION.fullmatch(text)
    if not found:
        return text, None, ""
    return found["name"], Decimal(found["memory"]) if found["memory"] else None, found["form"] or ""


def _count_in(name: str) -> Decimal | None:
    found = re.match(r"gpu_(\d+)x_", name)
    return Decimal(found[1]) if found else None


def _board_of_eight(gpu_name: str, gpus: Decimal) -> str:
    """Eight V100 are always an SXM board here, and the description names no form factor for that one."""
    return "SXM" if gpus == 8 and gpu_name == "Tesla V100" else ""
