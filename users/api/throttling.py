"""How often a key, an organisation or an address may call, counted in Redis over windows of a minute.

A window opens with its first request. A request that any quota refuses counts for none, so a key that runs wild does
not use up what its organisation's other keys may do. Every answer tells where the caller stands, in the fields of
draft-ietf-httpapi-ratelimit-headers-11:

    RateLimit-Policy: "key";q=600;w=60, "organisation";q=1200;w=60
    RateLimit: "key";r=599;t=60, "organisation";r=1180;t=31

Without Redis, reading goes on uncounted; what changes something is refused with 503 (`KeyQuota`).
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from ipaddress import ip_address, ip_network
from typing import Any, cast

from django.conf import settings
from django.utils.translation import gettext as _
from redis import Redis, RedisError
from redis.commands.core import Script
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from common.problems import Problem
from users.api.authentication import key_in
from users.audit import ip_address_of

WINDOW_SECONDS = 60
_REDIS_TIMEOUT_SECONDS = 0.5
_SAFE = ("GET", "HEAD", "OPTIONS")
_log = logging.getLogger(__name__)

# Takes a counter per quota, with its limit; returns whether all had room, then each one's count and milliseconds left.
_SPEND = """
local open, standings = 1, {}
for i, counter in ipairs(KEYS) do
  if tonumber(redis.call('GET', counter) or '0') >= tonumber(ARGV[i]) then open = 0 end
end
for i, counter in ipairs(KEYS) do
  if open == 1 and redis.call('INCR', counter) == 1 then redis.call('PEXPIRE', counter, ARGV[#ARGV]) end
  standings[#standings + 1] = tonumber(redis.call('GET', counter) or '0')
  standings[#standings + 1] = math.max(redis.call('PTTL', counter), 0)
end
return {open, unpack(standings)}
"""


class QuotasUnknown(Exception):
    """Redis does not answer."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Where a caller stands in one quota: of `limit` requests in the window `used` are gone, for so many seconds."""

    name: str
    limit: int
    used: int
    reset_seconds: int

    @property
    def left(self) -> int:
        """Requests left in this window."""
        return max(self.limit - self.used, 0)


def spend(subjects: Mapping[str, str]) -> tuple[bool, list[Standing]]:
    """Count one request for each subject, unless one of them has none left; return whether it counted.

    `subjects` are by the name of their quota (`settings.QUOTAS_PER_MINUTE`). Raises QuotasUnknown.
    """
    limits = [settings.QUOTAS_PER_MINUTE[name] for name in subjects]
    counters = [f"quota:{name}:{subject}" for name, subject in subjects.items()]
    try:
        was_open, *counts = _spend_script()(keys=counters, args=[*limits, WINDOW_SECONDS * 1000])
    except (RedisError, OSError) as problem:
        raise QuotasUnknown from problem
    pairs = zip(counts[::2], counts[1::2], strict=True)
    return bool(was_open), [
        Standing(name=name, limit=limit, used=used, reset_seconds=-(-milliseconds // 1000))
        for name, limit, (used, milliseconds) in zip(subjects, limits, pairs, strict=True)
    ]


@cache
def _spend_script() -> Script:
    timeouts = {"socket_timeout": _REDIS_TIMEOUT_SECONDS, "socket_connect_timeout": _REDIS_TIMEOUT_SECONDS}
    return Redis.from_url(settings.REDIS_URL, **timeouts).register_script(_SPEND)


class _Quota(BaseThrottle):
    """Counts a request for those that `subjects` names."""

    def subjects(self, request: Request) -> dict[str, str]:
        """Return whom the request counts for, by the name of the quota."""
        raise NotImplementedError

    def allow_request(self, request: Request, view: APIView) -> bool:
        """Count the request. Returns True, or raises TooManyRequests."""
        try:
            was_open, standings = spend(self.subjects(request))
        except QuotasUnknown:
            _log.warning("Requests are not being counted: Redis does not answer", exc_info=True)
            return self.allow_uncounted(request)
        request._request.quotas = standings  # type: ignore[attr-defined]
        if not was_open:
            raise TooManyRequests(standings)
        return True

    def allow_uncounted(self, request: Request) -> bool:
        """Return True where a request may pass that cannot be counted."""
        return True


class KeyQuota(_Quota):
    """The quotas of a key and of its organisation."""

    def subjects(self, request: Request) -> dict[str, str]:
        """Return the key and its organisation."""
        key = key_in(request)
        return {"key": key.prefix, "organisation": f"{settings.DATABASES['default']['NAME']}:{key.organisation_id}"}

    def allow_uncounted(self, request: Request) -> bool:
        """Return True for reading. Raises a 503 problem for everything else: money does not move uncounted."""
        if request.method in _SAFE:
            return True
        detail = _("Nothing was done: requests cannot be counted just now. Please try again in a minute.")
        raise Problem(status=HTTPStatus.SERVICE_UNAVAILABLE, code="quotas_unknown", detail=detail)


class AddressQuota(_Quota):
    """The quota of an address, for calls without a key. A network of IPv6 counts as one address."""

    def subjects(self, request: Request) -> dict[str, str]:
        """Return where the request came from."""
        return {"address": counted_address(ip_address_of(request._request))}


def counted_address(address: str | None) -> str:
    """Return what an address counts as: itself, or its /64, of which one subscriber has all; "" where unknown."""
    if address is None or ip_address(address).version == 4:
        return address or ""
    return str(ip_network(f"{address}/64", strict=False))


class TooManyRequests(Problem):
    """A quota is used up. `wait`: seconds until all of them have room again."""

    def __init__(self, standings: list[Standing]) -> None:
        spent = [standing for standing in standings if not standing.left]
        self.wait = max((standing.reset_seconds for standing in spent), default=WINDOW_SECONDS)
        detail = _("%(limit)d requests a minute are the quota of this %(name)s. Try again in %(wait)d s.") % {
            "limit": spent[0].limit,
            "name": spent[0].name,
            "wait": self.wait,
        }
        super().__init__(status=HTTPStatus.TOO_MANY_REQUESTS, code="too_many_requests", detail=detail)


class CountedView(APIView):
    """A call under a quota; its answers tell where the caller stands."""

    throttle_classes: tuple[type[BaseThrottle], ...] = (AddressQuota,)

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        """Return the answer with the fields of its quotas."""
        response = super().finalize_response(request, response, *args, **kwargs)
        standings = cast("list[Standing]", getattr(request._request, "quotas", []))
        if standings:
            response["RateLimit-Policy"] = ", ".join(
                f'"{each.name}";q={each.limit};w={WINDOW_SECONDS}' for each in standings
            )
            response["RateLimit"] = ", ".join(
                f'"{each.name}";r={each.left};t={each.reset_seconds}' for each in standings
            )
        return response
