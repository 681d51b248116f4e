"""The comparison page over a million offers against its bare SQL, and what its readers notice of a refresh.

Limit: the hundred rows and the number of rows that match, asked in two statements written by hand, values in the text.
Ours: the page for a visitor with a session, so rendered anew each time: the same rows with everything beside them, and
how many offers each filter alone removes. Meanwhile a source of some thousand rows is read again and again, each row
with another price; the page is asked for all the while. Everything happens in a database of its own.
"""

import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections

from catalog.models import Offer, Source, SourceDocument
from catalog.refresh import refresh_source
from config.benches.own_database import own_database
from config.benches.paired import measure
from config.benches.site import Site

OFFERS = 1_000_000
FLOOR, AIM = 5.0, 3.0
_REFRESHED_ROWS = 5_000
_READS = 60
_SOMEBODY = f"{settings.SESSION_COOKIE_NAME}=bench"
_FILTERS = {
    "market": "on_demand,spot",
    "min_memory_gb": "80",
    "min_gpus": "8",
    "precision": "BF16",
    "multi_node": "true",
    "max_egress_usd_per_gb": "0.05",
    "freshness": "fresh,warned",
}
_JOB = {"job_hours": "100", "job_gpus": "8", "job_storage_gb": "500", "job_starts": "3"}
_MATCH = """
    FROM catalog_offer o JOIN catalog_gpu g ON g.id = o.gpu_id JOIN catalog_cloud c ON c.id = o.cloud_id
    WHERE o.gone_at IS NULL AND o.held_back = '' AND NOT o.hidden_by_direct
      AND o.market IN ('on_demand', 'spot') AND g.memory_gb >= 80 AND o.gpu_count >= 8 AND g.bf16_dense_tflops > 0
      AND c.multi_node AND c.egress_usd_per_gb <= 0.05
      AND NOT o.is_list AND (o.priced_on IS NULL OR o.priced_on >= current_date - 14)
      AND o.observed_at > now() - interval '12 hours'
"""
_BARE_ROWS = f"SELECT o.*, g.*, c.* {_MATCH} ORDER BY o.price_usd_per_gpu_hour, o.id LIMIT 100"
_BARE_COUNT = f"SELECT count(*) {_MATCH}"
# Each row is a copy of one that was read, with its own machine, GPU, cloud, price and terms.
_OWN = {
    "id": "gen_random_uuid()",
    "source_id": "made_source",
    "document_id": "made_document",
    "cloud_id": "clouds[1 + n %% cardinality(clouds)]",
    "gpu_id": "gpus[1 + n / 7 %% cardinality(gpus)]",
    "instance_type": "'machine-' || n",
    "gpu_count": "count",
    "price_usd_per_hour": "price * count",
    "price_usd_per_gpu_hour": "price",
    "price_in_currency_per_hour": "price * count",
    "market": "made.market",
    "term_months": "CASE made.market WHEN 'reserved' THEN 12 END",
    "region": "'region-' || n %% 40",
    "country": "(ARRAY['NL', 'US', 'DE', 'PL', ''])[1 + n %% 5]",
    "billing_step_seconds": "CASE WHEN n %% 9 = 0 THEN 60 END",
    "availability": "(ARRAY['yes', 'low', 'unknown', 'no'])[1 + n %% 4]",
    "is_list": "n %% 17 = 0",
    "url": "'https://example.com/' || n",
    "observed_at": "now() - make_interval(mins => n %% 700)",
    "vcpus": "8 * count",
    "ram_gb": "64 * count",
}
_COLUMNS = [str(field.column) for field in Offer._meta.concrete_fields]
_FILL = f"""
    INSERT INTO catalog_offer ({", ".join(_COLUMNS)})
    SELECT {", ".join(_OWN.get(column, f"base.{column}") for column in _COLUMNS)}
    FROM (SELECT n, (ARRAY[1, 2, 4, 8])[1 + n / 3 %% 4] AS count,
                 round((0.2 + 12 * random())::numeric, 4) AS price,
                 (ARRAY['on_demand', 'on_demand', 'spot', 'reserved'])[1 + n / 11 %% 4] AS market
          FROM generate_series(1, %s::int) n) made,
         (SELECT array_agg(id ORDER BY id) AS gpus FROM catalog_gpu) g,
         (SELECT array_agg(id ORDER BY id) AS clouds FROM catalog_cloud) c,
         (SELECT id AS made_document, source_id AS made_source FROM catalog_sourcedocument WHERE key = 'made') d,
         (SELECT o.* FROM catalog_offer o JOIN catalog_source s ON s.id = o.source_id WHERE s.name = 'skypilot' LIMIT 1)
             base
"""


def run(*, size: int = OFFERS) -> dict[str, Any]:
    """Return JSON-ready results: times of page and bare SQL, of other views, and of readers during a refresh."""
    with own_database():
        _fill(size)
        with Site() as site:
            ask = partial(_ask, site)
            pair = measure(_bare_sql, partial(ask, _FILTERS), slice_seconds=2.0)
            return {
                "name": "compare",
                "limit": round(pair.limit_seconds * 1000, 1),
                "ours": round(pair.ours_seconds * 1000, 1),
                "ratio": round(pair.times_slower, 2),
                "unit": f"ms per filtered page over {size} offers",
                "floor": FLOOR,
                "aim": AIM,
                "other_views_ms": {name: _milliseconds(partial(ask, query)) for name, query in _VIEWS.items()},
                "during_a_refresh": _during_refreshes(partial(ask, _FILTERS)),
            }


_VIEWS: dict[str, dict[str, str]] = {
    "nothing filtered": {},
    "page 100": {"page": "100"},
    "sorted by memory": {**_FILTERS, "sort": "-total_memory_gb"},
    "ordered by the job": {**_FILTERS, **_JOB},
    "one GPU": {"gpu": "h100-sxm"},
}


def _fill(size: int) -> None:
    call_command("load_catalogue", verbosity=0)
    with tempfile.TemporaryDirectory() as folder:
        _refresh(Path(folder), turn=0)
    source = Source.objects.create(name="made", title="Made for the bench")
    SourceDocument.objects.create(source=source, key="made")
    with connection.cursor() as cursor:
        cursor.execute("SELECT setseed(0.5)")
        cursor.execute("SET session_replication_role = replica")  # made rows need no look-up of their foreign keys
        cursor.execute(_FILL, [size])
        cursor.execute("SET session_replication_role = origin")
        cursor.execute("VACUUM ANALYZE catalog_offer")


def _bare_sql() -> None:
    with connection.cursor() as cursor:
        for statement in (_BARE_ROWS, _BARE_COUNT):
            cursor.execute(statement)
            cursor.fetchall()


def _ask(site: Site, query: dict[str, str]) -> None:
    status, _, _ = site.get(f"/compare/?{urlencode(query)}", HTTP_COOKIE=_SOMEBODY)
    if status != 200:
        raise RuntimeError(f"{query} answered {status}")


def _milliseconds(call: Callable[[], object], *, times: int = 5) -> float:
    call()
    return round(statistics.median(_seconds(call) for _ in range(times)) * 1000, 1)


def _seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _during_refreshes(ask: Callable[[], object]) -> dict[str, Any]:
    """Ask for the page in quiet, then while another thread refreshes without a pause."""
    quiet = [_seconds(ask) for _ in range(_READS)]
    stop, refreshes = threading.Event(), list[float]()
    refresher = threading.Thread(target=_refresh_until, args=(stop, refreshes))
    refresher.start()
    busy = [_seconds(ask) for _ in range(_READS)]
    stop.set()
    refresher.join()
    return {
        "rows_per_refresh": _REFRESHED_ROWS,
        "refreshes": len(refreshes),
        "refresh_seconds": round(statistics.median(refreshes), 2) if refreshes else None,
        "quiet_ms": _spread(quiet),
        "busy_ms": _spread(busy),
        "median_busy_over_quiet": round(statistics.median(busy) / statistics.median(quiet), 2),
    }


def _spread(seconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        "p50": round(statistics.median(ordered) * 1000, 1),
        "p95": round(ordered[int(0.95 * len(ordered))] * 1000, 1),
        "most": round(ordered[-1] * 1000, 1),
    }


def _refresh_until(stop: threading.Event, refreshes: list[float]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        turn = 1
        while not stop.is_set():
            refreshes.append(_seconds(partial(_refresh, Path(folder), turn=turn)))
            turn += 1
    connections.close_all()


def _refresh(folder: Path, *, turn: int) -> None:
    """Read a body of one cloud: a machine for each line, each with a price of this turn."""
    lines = [
        f"gpu_1x_b200_sxm6,B200,1.0,26,360,,{5 + (number * 7 + turn) % 100 / 100:.2f},,region-{number},"
        for number in range(_REFRESHED_ROWS)
    ]
    header = (
        "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone"
    )
    (folder / "lambda.csv").write_text("\n".join([header, *lines, ""]))
    report = refresh_source(source_name="skypilot", now=datetime.now(UTC), from_path=folder)
    if max(document.new + document.changed for document in report.documents) != _REFRESHED_ROWS:
        raise RuntimeError(f"not every row was stored: {report}")
