"""The reference snapshot: dated list prices kept in the repository, each with its day and the page it was read from.

It gives the first run, without any network, a real comparison to show. Its prices are never live: every row is a list
price of its own day, and the sanity check leans on their median where too few other prices are known.
"""

from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import ClassVar

from catalog.sources.base import Body, BodyRejected, Document, Market, OfferRow, read_csv, read_price

REFERENCE_FILE = Path(__file__).resolve().parent.parent / "data" / "reference_prices.csv"
COLUMNS = (
    "cloud", "instance_type", "gpu", "gpu_count", "price_usd_per_hour", "market", "region", "country", "priced_on",
    "source_url", "note",
)  # fmt: skip


class ReferenceSnapshot:
    """One document, one CSV file of the repository; `gpu` is our own slug, prices are USD for the whole instance."""

    name: ClassVar[str] = "reference"
    title: ClassVar[str] = "Reference snapshot"
    homepage: ClassVar[str] = ""
    adapter_version: ClassVar[str] = "1"
    is_collector: ClassVar[bool] = True
    needs_network: ClassVar[bool] = False

    def documents(self) -> Sequence[Document]:
        """Return the one file."""
        return [Document(key="reference-prices", urls=(), file_name=REFERENCE_FILE.name)]

    def read(self, document: Document) -> Path:
        """Return the path of the file in the repository."""
        return REFERENCE_FILE

    def parse(self, body: Body, companions: dict[str, Body]) -> Iterator[OfferRow]:
        """Yield every fact as a list price. Raises BodyRejected for a row without price, count, market or day."""
        for row in read_csv(body.content, required=COLUMNS):
            yield OfferRow(
                cloud=row["cloud"],
                instance_type=row["instance_type"],
                gpu_name=row["gpu"],
                gpu_slug=row["gpu"],
                gpu_count=_number(row, "gpu_count"),
                price_per_hour=_number(row, "price_usd_per_hour"),
                market=_market(row["market"]),
                region=row["region"],
                country=row["country"],
                priced_on=_day(row["priced_on"]),
                url=row["source_url"],
                is_list=True,
            )


def _number(row: dict[str, str], column: str) -> Decimal:
    number = read_price(row[column])
    if number is None:
        raise BodyRejected(f"{row['instance_type']} has no {column}")
    return number


def _market(text: str) -> Market:
    try:
        return Market(text)
    except ValueError as error:
        raise BodyRejected(f"{text!r} is not a market") from error


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise BodyRejected(f"{text!r} is not a day") from error
