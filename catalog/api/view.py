"""What the catalogue's calls share: the version of the data they answer from, and how they answer."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic
from typing import Any

from django.db import DatabaseError, connection
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from common.conditional import Answers, Version, answer, json_response

_TABLES = ("catalog_gpu", "catalog_cloud", "catalog_source", "catalog_sourcedocument", "catalog_bestask")
# Which transaction, and which of its commands, wrote each row: the sums differ after any insert, update or delete.
# Offers are too many to sum; every refresh also writes its source and documents, and a new offer has the newest id.
_WRITTEN = "(SELECT concat_ws('.', count(*), sum(xmin::text::bigint), sum(cmin::text::bigint)) FROM {table})"
_STATE = f"""
    SELECT concat_ws(',', {", ".join(_WRITTEN.format(table=table) for table in _TABLES)},
                     (SELECT id FROM catalog_offer ORDER BY id DESC LIMIT 1)),
           greatest((SELECT max(last_attempt_at) FROM catalog_source), (SELECT max(observed_at) FROM catalog_bestask))
"""  # noqa: S608 (made of constants)
# Under load the version is read 200 times a second, not for every call. No request that writes is done in less time,
# so whoever changes a price and then asks for it gets the new one.
_READ_EVERY_SECONDS = 0.005
_ANSWERS = Answers(at_most=1024, at_most_bytes=16 * 1024 * 1024)


@dataclass(frozen=True, kw_only=True)
class _Reading:
    """The version as it was last read; `until` is on the monotonic clock."""

    version: Version
    until: float


_last_reading: _Reading | None = None


def catalogue_version(*, now: datetime) -> Version:
    """Return the version of all that these calls answer from. One query over small tables, or none."""
    global _last_reading
    reading = _last_reading
    if reading is not None and monotonic() < reading.until and not connection.in_atomic_block:
        return reading.version
    with connection.cursor() as cursor:
        cursor.execute(_STATE)
        key, changed_at = cursor.fetchone()
    version = Version.at(now, key=key, changed_at=changed_at)
    if not connection.in_atomic_block:  # a transaction sees what nobody else does yet
        _last_reading = _Reading(version=version, until=monotonic() + _READ_EVERY_SECONDS)
    return version


class CatalogueView(APIView):
    """A call that reads the catalogue."""

    http_method_names = ["get", "head"]

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Answer from memory where that is possible, else by the call itself."""
        try:
            version = catalogue_version(now=datetime.now(UTC))
        except DatabaseError:  # the call will meet it too, and knows how to say so
            return super().dispatch(request, *args, **kwargs)
        known = _ANSWERS.recall(request, version)
        if known is not None:
            return known
        response = super().dispatch(request, *args, **kwargs)
        _ANSWERS.keep(request, version, response)
        return response

    def answer(self, request: Request, build: Callable[[datetime], Any]) -> HttpResponseBase:
        """Return 304, or what `build` makes of the moment: a response, or data to render."""
        now = datetime.now(UTC)

        def respond() -> HttpResponseBase:
            built = build(now)
            return built if isinstance(built, HttpResponseBase) else json_response(JSONRenderer().render(built))

        return answer(request, version=catalogue_version(now=now), build=respond)
