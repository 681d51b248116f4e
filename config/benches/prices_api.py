"""The price list's speed as a share of an empty view's, cached and as a 304."""

from typing import Any

from config.benches.paired import measure
from config.benches.site import Site

ADDRESS = "/api/v1/prices/"
FLOOR, AIM = 0.5, 0.7
FLOOR_304, AIM_304 = 0.9, 1.0


def run() -> dict[str, Any]:
    """Return JSON-ready results; ratios are calls per second, ours over the limit's."""
    with Site() as site:
        status, headers, _ = site.get(ADDRESS)
        if status != 200:
            raise RuntimeError(f"{ADDRESS} answered {status}")
        full = measure(lambda: site.get("/bench/empty"), lambda: site.get(ADDRESS))
        caller = _Caller(site, etag=headers["ETag"])
        conditional = measure(lambda: site.get("/bench/empty"), caller.ask)
    return {
        "name": "prices_api",
        "limit": round(1 / full.limit_seconds),
        "ours": round(1 / full.ours_seconds),
        "ratio": round(full.share_of_speed, 3),
        "unit": "calls per second",
        "floor": FLOOR,
        "aim": AIM,
        "not_modified": {
            "share": round(caller.not_modified / caller.asked, 4),
            "limit": round(1 / conditional.limit_seconds),
            "ours": round(1 / conditional.ours_seconds),
            "ratio": round(conditional.share_of_speed, 3),
            "floor": FLOOR_304,
            "aim": AIM_304,
        },
    }


class _Caller:
    """Asks again and again with the validator it got last, as a polling client does; counts the 304s."""

    def __init__(self, site: Site, *, etag: str) -> None:
        self._site, self._etag = site, etag
        self.asked = self.not_modified = 0

    def ask(self) -> None:
        """One conditional GET; a new minute brings one new body and validator."""
        status, headers, _ = self._site.get(ADDRESS, HTTP_IF_NONE_MATCH=self._etag)
        self._etag = headers["ETag"]
        self.asked += 1
        self.not_modified += status == 304
