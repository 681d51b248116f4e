"""DigitalOcean's sizes: whole droplets by the hour in USD, most of them without a GPU.

`vram` is the memory of all GPUs of a droplet. A size without regions, or marked as not available, is sold out. Prices
for a commitment stand on DigitalOcean's web page only. RAM is in MB.
Reference: https://docs.digitalocean.com/reference/api/digitalocean/#tag/Sizes
"""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import ClassVar

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
    read_pages,
    text_at,
    texts_at,
)
from catalog.sources.regions import country_of

MB_PER_GB = 1024
HUNDREDTH = Decimal("0.01")


class DigitalOcean:
    """One document of one page or more; the key goes into the Authorization header."""

    name: ClassVar[str] = "digitalocean"
    title: ClassVar[str] = "DigitalOcean"
    homepage: ClassVar[str] = "https://www.digitalocean.com"
    adapter_version: ClassVar[str] = "1"
    is_collector: ClassVar[bool] = False
    needs_network: ClassVar[bool] = True
    key_setting: ClassVar[str] = "DIGITALOCEAN_API_KEY"
    needs_key: ClassVar[bool] = True

    def documents(self) -> Sequence[Document]:
        """Return the one document as it is called in saved copies."""
        return self.documents_with("")

    def documents_with(self, key: str) -> Sequence[Document]:
        """Return all sizes, asked for with `key`."""
        return [
            Document(
                key="sizes",
                urls=["https://api.digitalocean.com/v2/sizes?per_page=200"],
                file_name="digitalocean.json",
                headers={"Authorization": f"Bearer {key}"} if key else {},
                next_url=next_page,
            )
        ]

    def parse(self, body: Body, companions: dict[str, Body]) -> Iterator[OfferRow]:
        """Yield one row per size and region. Raises BodyRejected when a page has no list of sizes."""
        sizes = [
            size
            for page in read_pages(body.content)
            for size in list_of(fields_of(page, "the page").get("sizes"), "sizes")
        ]
        yield from at_least_one(once_each(row for size in sizes for row in _rows(size, body.url)))


def next_page(content: bytes, _url: str) -> str:
    """Return the address of the page behind this one; "" behind the last."""
    links = fields_of(fields_of(read_json(content), "the page").get("links") or {}, "links")
    return text_at(fields_of(links.get("pages") or {}, "pages"), "next")


def _rows(size: Fields, url: str) -> Iterator[OfferRow]:
    gpu, price, slug = (
        fields_of(size.get("gpu_info") or {}, "gpu_info"),
        number_at(size, "price_hourly"),
        text_at(size, "slug"),
    )
    gpus, gpu_name = number_at(gpu, "count"), text_at(gpu, "model")
    if not gpus or price is None:
        return
    if not gpu_name:
        raise BodyRejected(f"{slug} has GPUs without a name")
    memory_gb, ram_mb = number_at(fields_of(gpu.get("vram") or {}, "vram"), "amount"), number_at(size, "memory")
    regions = texts_at(size, "regions") if is_true(size, "available") else []
    for region in regions or [""]:
        yield OfferRow(
            cloud="digitalocean",
            instance_type=slug,
            gpu_name=gpu_name,
            gpu_count=gpus,
            gpu_count_in_name=_count_in(slug),
            gpu_memory_gb=(memory_gb / gpus).quantize(HUNDREDTH) if memory_gb else None,
            price_per_hour=price,
            region=region,
            country=country_of("digitalocean", region),
            vcpus=number_at(size, "vcpus"),
            ram_gb=(ram_mb / MB_PER_GB).quantize(HUNDREDTH) if ram_mb else None,
            disk_gb=number_at(size, "disk"),
            availability=Availability.YES if regions else Availability.NO,
            url=url,
        )


def _count_in(slug: str) -> Decimal | None:
    """Return the number of GPUs a slug states.

    >>> _count_in("gpu-mi300x8-1536gb"), _count_in("gpu-6000adax1-48gb")
    (Decimal('8'), Decimal('1'))
    """
    found = re.search(r"x(\d+)-\d+gb", slug)
    return Decimal(found[1]) if found else None
