"""`/healthz`: this process lives. `/readyz`: what it needs answers too, each part named."""

from datetime import UTC, datetime

from django.core.cache import cache
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from redis import RedisError

from billing.books import open_stop
from billing.roles import has_two_roles
from config import beat

BEAT_MAX_AGE_SECONDS = 90


def healthz(request: HttpRequest) -> JsonResponse:
    """Answer 200 as long as the process can."""
    return _uncached(JsonResponse({"ok": True}))


def readyz(request: HttpRequest) -> JsonResponse:
    """Answer 200 when database, migrations, broker and beat are all well, else 503 with what is not."""
    checks = problems(now=datetime.now(UTC))
    ok = not any(checks.values())
    body = {"ok": ok, "checks": {name: problem or "ok" for name, problem in checks.items()}, "database_roles": _roles()}
    return _uncached(JsonResponse(body, status=200 if ok else 503))


def problems(*, now: datetime) -> dict[str, str]:
    """Return what is wrong with each part the site needs, "" where nothing is."""
    return {
        "database": _database_problem(),
        "broker": _broker_problem(),
        "beat": _beat_problem(now=now),
        "books": _books_problem(),
    }


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
        age_seconds = beat.age_seconds(now)
    except (RedisError, OSError):
        return "unknown: no broker"
    if age_seconds is None:
        return "not seen yet"
    return "" if age_seconds <= BEAT_MAX_AGE_SECONDS else f"last seen {age_seconds:.0f} s ago"


def _books_problem() -> str:
    try:
        stop = open_stop()
    except DatabaseError:
        return "unknown: no database"
    return f"stopped: {stop.breach}" if stop else ""


def _roles() -> str:
    """Return whether the application could write the ledger past its door, were it not for the triggers."""
    try:
        return "two" if has_two_roles() else "one: triggers and constraints hold, grants do not apply"
    except DatabaseError:
        return "unknown: no database"


def _uncached(answer: JsonResponse) -> JsonResponse:
    answer["Cache-Control"] = "no-store"
    return answer
