"""SkyPilot's public price catalogue: one CSV file per cloud, gathered by that project from the clouds' own APIs.

A collector: rows of a cloud that we also read directly are replaced while the direct source is fresh. The files stand
in folders by schema version, newest first here because some clouds have moved on and others stopped; the mirror is
asked when GitHub does not answer. A file may stand still for a year, so each price carries the day its file last
changed. The pitfalls of each cloud are in `clouds`, Google's join of GPU and host in `gcp`.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from decimal import ROUND_HALF_EVEN, Decimal
from email.utils import parsedate_to_datetime
from typing import ClassVar

from catalog.sources.base import Body, Document, Market, OfferRow
from catalog.sources.regions import country_of
from catalog.sources.skypilot.clouds import NOT_GPUS, as_sold
from catalog.sources.skypilot.gcp import with_hosts
from catalog.sources.skypilot.listing import Listing, read_listings

REPOSITORY = "skypilot-org/skypilot-catalog"
GITHUB = f"https://raw.githubusercontent.com/{REPOSITORY}/master/catalogs"
COMMITS = f"https://api.github.com/repos/{REPOSITORY}/commits?per_page=1&path=catalogs"
MIRROR = "https://skypilot-catalog.s3.us-east-1.amazonaws.com/catalogs"
VERSIONS = ("v8", "v7", "v6", "v5")
# Our slug -> the catalogue's folder.
CLOUDS = {
    "aws": "aws",
    "azure": "azure",
    "cudo": "cudo",
    "digitalocean": "do",
    "fluidstack": "fluidstack",
    "gcp": "gcp",
    "hyperbolic": "hyperbolic",
    "hyperstack": "hyperstack",
    "ibm": "ibm",
    "jarvislabs": "jarvislabs",
    "lambda": "lambda",
    "nebius": "nebius",
    "oci": "oci",
    "ovhcloud": "ovhcloud",
    "paperspace": "paperspace",
    "primeintellect": "primeintellect",
    "runpod": "runpod",
    "scaleway": "scaleway",
    "scp": "scp",
    "seeweb": "seeweb",
    "shadeform": "shadeform",
    "vast": "vast",
    "verda": "verda",
}
GCP_HOSTS = "gcp-hosts"
MICRO = Decimal("0.000001")
SLICE = Decimal("0.0001")


class SkyPilot:
    """One document per cloud; Google's hosts may come as a file of their own beside `gcp.csv`."""

    name: ClassVar[str] = "skypilot"
    title: ClassVar[str] = "SkyPilot catalogue"
    homepage: ClassVar[str] = f"https://github.com/{REPOSITORY}"
    adapter_version: ClassVar[str] = "1"
    is_collector: ClassVar[bool] = True
    needs_network: ClassVar[bool] = True

    def documents(self) -> Sequence[Document]:
        """Return one document per cloud, and the saved copy of Google's host lines."""
        hosts = Document(key=GCP_HOSTS, urls=(), file_name="gcp_hosts.csv", companion_of="gcp")
        return [*(_document(slug, folder) for slug, folder in CLOUDS.items()), hosts]

    def parse(self, body: Body, companions: dict[str, Body]) -> Iterator[OfferRow]:
        """Yield the offers of one cloud's file, one row per region where its zones cost the same.

        Raises BodyRejected before the first row when the body is not a whole catalogue file.
        """
        slug = body.document.key
        listings = read_listings(slug, body.content)
        if slug == "gcp":
            apart = companions.get(GCP_HOSTS)
            hosts = [*listings, *(read_listings(slug, apart.content) if apart else [])]
            listings = list(with_hosts(listings, hosts))
        priced_on = body.priced_on or changed_on(body.last_modified)
        rows = [
            replace(row, priced_on=priced_on, url=body.url)
            for listing in map(as_sold, listings)
            if listing.gpu_name and listing.gpu_name not in NOT_GPUS
            for row in _rows(listing)
        ]
        yield from one_per_region(rows)


def _document(slug: str, folder: str) -> Document:
    paths = [f"{version}/{folder}/vms.csv" for version in VERSIONS]
    return Document(
        key=slug,
        urls=[*(f"{GITHUB}/{path}" for path in paths), *(f"{MIRROR}/{path}" for path in paths)],
        last_change_urls=[f"{COMMITS}/{path}" for path in paths] * 2,
        file_name=f"{folder}.csv",
        dated_by_content=True,
    )


def changed_on(last_modified: str) -> date | None:
    """Return the day of a Last-Modified header; None when there is none to read."""
    try:
        return parsedate_to_datetime(last_modified).date() if last_modified else None
    except ValueError:
        return None


def _rows(listing: Listing) -> Iterator[OfferRow]:
    for market, price in ((Market.ON_DEMAND, listing.price), (Market.SPOT, listing.spot)):
        if price is not None:
            yield _row(listing, market, price)


def _row(listing: Listing, market: Market, price: Decimal) -> OfferRow:
    return OfferRow(
        cloud=listing.cloud,
        instance_type=listing.instance_type,
        gpu_name=listing.gpu_name,
        gpu_slug=listing.gpu_slug,
        gpu_count=listing.gpu_count.quantize(SLICE, rounding=ROUND_HALF_EVEN),
        gpu_count_in_name=listing.gpu_count_in_name,
        gpu_memory_gb=listing.gpu_memory_gb,
        form_factor=listing.form_factor,
        # The files carry binary fractions such as 0.30979999999999996; a micro is finer than any list price.
        price_per_hour=price.quantize(MICRO, rounding=ROUND_HALF_EVEN),
        market=market,
        region=listing.region,
        zone=listing.zone,
        country=country_of(listing.document, listing.region),
        vcpus=listing.vcpus,
        ram_gb=listing.ram_gb,
        disk_gb=listing.disk_gb,
        availability=listing.availability,
    )


def one_per_region(rows: Iterable[OfferRow]) -> Iterator[OfferRow]:
    """Yield one row per offer and region where every zone costs the same, else one per zone.

    The catalogue repeats a price for each zone (RunPod: 25 of them). A line that differs in nothing but its price is
    the same offer seen twice: the lower price stands.
    """
    offers: dict[tuple[object, ...], list[OfferRow]] = defaultdict(list)
    for row in rows:
        offers[row.cloud, row.instance_type, row.gpu_name, row.gpu_count, row.region, row.market].append(row)
    for same in offers.values():
        zones: dict[str, OfferRow] = {}
        for row in same:
            known = zones.get(row.zone)
            if known is None or row.price_per_hour < known.price_per_hour:
                zones[row.zone] = row
        found = list(zones.values())
        if len({row.price_per_hour for row in found}) == 1:
            yield found[0] if len(found) == 1 else replace(found[0], zone="")
        else:
            yield from found
