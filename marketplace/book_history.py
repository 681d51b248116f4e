"""Read all that ever happened in a book, for `replay` to prove, and hold it against the book that is served."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import UUID

from marketplace.book import live_asks, one_moment
from marketplace.matching import Ask, Bid, Filters
from marketplace.models import Device, Fill, Lease, ListingTerms, Order
from marketplace.replay import History, PastAsk, PastBid, PastFill, PastLease, differences, rebuilt_asks

_BEFORE_ALL_BEATS = datetime(1970, 1, 1, tzinfo=UTC)


def unproved(gpu_id: int) -> Iterator[str]:
    """Yield in words whatever of a GPU's book its rows do not explain: its fills, and what it offers now.

    All is read as it was at one moment.
    """
    with one_moment():
        history = history_of(gpu_id)
        served = live_asks(gpu_id, now=_BEFORE_ALL_BEATS)  # as the line has it, whatever the clock says
    yield from differences(history)
    if rebuilt_asks(history) != served:
        yield "the asks that its rows make are not those that it serves"


def history_of(gpu_id: int) -> History:
    """Return the history of a GPU's book. Five queries."""
    devices, fills = _devices(gpu_id), Fill.objects.filter(gpu_id=gpu_id)
    return History(
        asks=[_past_ask(terms, devices) for terms in _terms(gpu_id)],
        leases=[
            PastLease(device_id=device_id, taken_sequence=taken, closed_sequence=closed)
            for device_id, taken, closed in Lease.objects.filter(device__server__gpu_id=gpu_id).values_list(
                "device_id", "taken_sequence", "closed_sequence"
            )
        ],
        bids=[_past_bid(order) for order in Order.objects.filter(gpu_id=gpu_id).iterator()],
        fills=[_past_fill(fill) for fill in fills.select_related("listing").order_by("sequence").iterator()],
    )


def _devices(gpu_id: int) -> dict[UUID, tuple[int, ...]]:
    found: dict[UUID, list[int]] = defaultdict(list)
    rows = Device.objects.filter(server__gpu_id=gpu_id).order_by("server_id", "index")
    for server_id, device_id in rows.values_list("server_id", "pk"):
        found[server_id].append(device_id)
    return {server_id: tuple(ids) for server_id, ids in found.items()}


def _terms(gpu_id: int) -> list[ListingTerms]:
    rows = ListingTerms.objects.filter(listing__gpu_id=gpu_id, is_for_rent=True)
    return list(rows.select_related("listing__server").order_by("from_sequence"))


def _past_ask(terms: ListingTerms, devices: dict[UUID, tuple[int, ...]]) -> PastAsk:
    server = terms.listing.server
    return PastAsk(
        ask=Ask(
            listing_id=terms.listing_id,
            server_id=server.pk,
            price=terms.price_usd_per_gpu_hour,
            priority=terms.priority,
            free_device_ids=devices[server.pk],
            min_gpus=terms.min_gpus,
            max_hours=terms.max_hours,
            available_until=terms.available_until,
            country=server.country,
            interconnect=server.interconnect,
            ram_gb=server.ram_gb,
            vcpus=server.vcpus,
            disk_gb=server.disk_gb,
        ),
        from_sequence=terms.from_sequence,
        to_sequence=terms.to_sequence,
    )


def _past_bid(order: Order) -> PastBid:
    return PastBid(
        bid=Bid(
            order_id=order.pk,
            limit=order.limit_price_usd_per_gpu_hour,
            sequence=order.sequence,
            gpu_count=order.gpu_count,
            open_servers=order.server_count,
            hours=order.hours,
            filters=Filters(
                countries=frozenset(order.countries),
                interconnect=order.interconnect,
                min_ram_gb=order.min_ram_gb,
                min_vcpus=order.min_vcpus,
                min_disk_gb=order.min_disk_gb,
            ),
            all_or_nothing=order.time_in_force == Order.TimeInForce.FOK,
        ),
        placed_at=order.placed_at,
        expires_at=order.expires_at,
        closed_sequence=order.closed_sequence,
    )


def _past_fill(fill: Fill) -> PastFill:
    return PastFill(
        order_id=fill.order_id,
        listing_id=fill.listing_id,
        server_id=fill.listing.server_id,
        price=fill.price_usd_per_gpu_hour,
        device_ids=tuple(fill.device_ids),
        sequence=fill.sequence,
        filled_at=fill.filled_at,
    )
