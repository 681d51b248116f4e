"""`/healthz`: this process lives. `/readyz`: what it needs answers too, each part named."""

from datetime import UTC, datetime

from django.core.cache import cache
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from redis import RedisError

BEAT_KEY = "beat:last_seen_at"
BEAT_MAX_AGE_SECONDS = 90


def healthz(request: HttpRequest) -> JsonResponse:
    """Answer 200 as long as the process can."""
    return _uncached(JsonResponse({"ok": True}))


def readyz(request: HttpRequest) -> JsonResponse:
    """Answer 200 when database, migrations, broker and beat are all well, else 503 with what is not."""
    checks = {
        "database": _database_problem(),
        "broker": _broker_problem(),
        "beat": _beat_problem(now=datetime.now(UTC)),
    }
    ok = not any(checks.values())
    body = {"ok": ok, "checks": {name: problem or "ok" for name, problem in checks.items()}}
    return _uncached(JsonResponse(body, status=200 if ok else 503))


def _database_problem() -> str:
    try:
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            return "migrations are missing"
    except DatabaseError:
        return "no answer"
    return ""


def _broker_problem() -> str:
    try:
        cache.set("readyz", "1", timeout=5)
        return "" if cache.get("readyz") == "1" else "does not keep what it is told"
    except (RedisError, OSError):
        return "no answer"


def _beat_problem(*, now: datetime) -> str:
    try:
        seen = cache.get(BEAT_KEY)
    except (RedisError, OSError):
        return "unknown: no broker"
    if seen is None:
        return "not seen yet"
    age_seconds = (now - datetime.fromisoformat(seen)).total_seconds()
    return "" if age_seconds <= BEAT_MAX_AGE_SECONDS else f"last seen {age_seconds:.0f} s ago"


def _uncached(answer: JsonResponse) -> JsonResponse:
    answer["Cache-Control"] = "no-store"
    return answer
