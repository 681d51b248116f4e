"""Server time of the pages, as a multiple of an empty view behind the same middleware."""

from functools import partial
from typing import Any

from django.conf import settings

from config.benches.paired import measure
from config.benches.site import Site

PAGES = {
    "board": "/",
    "gpu": "/gpus/h100-sxm/",
    "gpus": "/gpus/",
    "use_case": "/use-cases/llm-training/",
    "markets": "/market/",
    "market": "/market/h100-sxm/",
}
FLOOR, AIM = 12.0, 6.0
# Pages are kept for visitors without a session; with one, each is rendered anew: reported beside, not gated.
_SOMEBODY = f"{settings.SESSION_COOKIE_NAME}=bench"


def run() -> dict[str, Any]:
    """Return JSON-ready results: per page the times and the ratio; the worst page counts."""
    pages = {}
    with Site() as site:
        for name, address in PAGES.items():
            status, _, _ = site.get(address)
            if status != 200:
                raise RuntimeError(f"{address} answered {status}")
            pair = measure(partial(site.get, "/bench/empty"), partial(site.get, address))
            anew = measure(partial(site.get, "/bench/empty"), partial(site.get, address, HTTP_COOKIE=_SOMEBODY))
            pages[name] = {
                "limit_ms": round(pair.limit_seconds * 1000, 3),
                "ours_ms": round(pair.ours_seconds * 1000, 3),
                "ratio": round(pair.times_slower, 2),
                "rendered_anew_ms": round(anew.ours_seconds * 1000, 3),
            }
    worst = max(pages.values(), key=lambda page: page["ratio"])
    return {
        "name": "pages",
        "limit": worst["limit_ms"],
        "ours": worst["ours_ms"],
        "ratio": worst["ratio"],
        "unit": "ms per page",
        "floor": FLOOR,
        "aim": AIM,
        "pages": pages,
    }
