"""The sample providers and servers, as the data files state them. Knows no Django."""

import csv
from dataclasses import dataclass, fields
from decimal import Decimal
from functools import cache
from pathlib import Path
from uuid import UUID, uuid5

DATA = Path(__file__).resolve().parent.parent / "data"
FLAKY = "flaky"
_REFERENCE = "reference"
_SERIES = UUID("b0b0a9a4-6a0e-4c53-8a27-2f0a1f2f7d51")  # of the ids of sample devices


@dataclass(frozen=True, kw_only=True)
class SampleProvider:
    """A made-up company that lists servers. Its VAT number ("" where its country has none) and IBAN are well formed."""

    slug: str
    name: str
    country: str
    city: str
    vat_id: str
    iban: str


@dataclass(frozen=True, kw_only=True)
class SampleServer:
    """A made-up machine and what is asked for it once the market is open; sizes in GB, network in Mbit/s.

    `price_basis`: where the price comes from; `reference` for those that must be the best ask on the first day.
    """

    provider: str
    name: str
    gpu: str
    devices: int
    country: str
    vcpus: int
    ram_gb: int
    disk_gb: int
    network_mbit_s: int
    interconnect: str
    price_usd_per_gpu_hour: Decimal
    min_gpus: int
    max_hours: int
    price_basis: str

    @property
    def device_uuids(self) -> list[str]:
        """The ids of its devices, the same in every demo."""
        return [f"GPU-{uuid5(_SERIES, f'{self.provider}:{self.name}:{index}')}" for index in range(self.devices)]

    @property
    def is_flaky(self) -> bool:
        """Whether it is the one that fails on purpose."""
        return self.name == FLAKY

    @property
    def is_reference(self) -> bool:
        """Whether its price is a reference price."""
        return self.price_basis == _REFERENCE


@cache
def sample_providers() -> tuple[SampleProvider, ...]:
    """Return the providers in the order of their file; the first is the one a visitor may sign in as."""
    with (DATA / "sample_providers.csv").open(encoding="utf-8", newline="") as lines:
        return tuple(SampleProvider(**row) for row in csv.DictReader(lines))


@cache
def sample_servers() -> tuple[SampleServer, ...]:
    """Return the servers in the order of their file; in each book the best offer comes first."""
    with (DATA / "sample_servers.csv").open(encoding="utf-8", newline="") as lines:
        return tuple(_server(row) for row in csv.DictReader(lines))


def sample_books() -> dict[str, list[SampleServer]]:
    """Return the servers by their GPU's slug."""
    books: dict[str, list[SampleServer]] = {}
    for server in sample_servers():
        books.setdefault(server.gpu, []).append(server)
    return books


def reference_gpus() -> frozenset[str]:
    """Return the GPUs whose best ask is a reference price on the first day."""
    return frozenset(server.gpu for server in sample_servers() if server.is_reference)


def _server(row: dict[str, str]) -> SampleServer:
    kinds = {field.name: field.type for field in fields(SampleServer)}
    values = {name: kinds[name](text) for name, text in row.items()}  # type: ignore[operator]
    return SampleServer(**values)
