"""Why an order does not fill: the gap to the best ask that would do, and what each wish removes. Pure.

Counted in free devices of live asks. A wish's count is what it removes by itself, whatever the price.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from marketplace.matching import Ask, Bid, misfits

_NOT_WISHES = ("price", "server_used")
ANY_PRICE = Decimal("1e9")


@dataclass(frozen=True, kw_only=True)
class Why:
    """`best_price`: of the asks that fit but for the price; `gap`: how far above the limit it is (None: no such ask).

    `removed`: devices each wish removes by itself; `devices_for_rent`: free devices of the whole book;
    `servers_fitting`: how many servers would do but for the price.
    """

    best_price: Decimal | None
    gap: Decimal | None
    removed: Mapping[str, int]
    devices_for_rent: int
    servers_fitting: int


def explain(bid: Bid, asks: Iterable[Ask], *, now: datetime) -> Why:
    """Return what stands between a bid and the asks of its book."""
    removed: dict[str, int] = {}
    total = 0
    fitting: list[Decimal] = []
    at_any_price = replace(bid, limit=ANY_PRICE)
    for ask in asks:
        devices = len(ask.free_device_ids)
        total += devices
        reasons = misfits(ask, at_any_price, now=now)
        for reason in reasons:
            if reason not in _NOT_WISHES:
                removed[reason] = removed.get(reason, 0) + devices
        if not reasons:
            fitting.append(ask.price)
    best = min(fitting, default=None)
    return Why(
        best_price=best,
        gap=None if best is None else max(best - bid.limit, Decimal(0)),
        removed=removed,
        devices_for_rent=total,
        servers_fitting=len(fitting),
    )
