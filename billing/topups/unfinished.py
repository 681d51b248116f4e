"""Top-ups that no event finishes: cut off before the gateway's answer, or never paid."""

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime, timedelta

from django.db.models import QuerySet

from billing.gateway import client
from billing.gateway.errors import GatewayError, GatewayRefused, GatewayUnavailable
from billing.models import TopUp
from billing.topups.checkout import checkouts_of, open_checkout
from billing.topups.look import follow_checkout

log = logging.getLogger("topups")

RETRY_AFTER = timedelta(seconds=30)  # until then the request that wrote the row may still be waiting for its answer
# The gateway wants 30 minutes between the call and the page's end, and forgets a key after 24 hours.
RETRY_FOR = timedelta(minutes=60)
_EXPIRE_AFTER = timedelta(minutes=5)
_AT_ONCE = 50
_MOST_FAILURES = 3  # in a run: then it is the gateway, and not the one top-up


def retry_created_top_ups(*, now: datetime) -> int:
    """Find out about top-ups whose payment page was asked for without an answer; return how many are settled now.

    1. Within an hour: ask again with the same key and the same values, so the gateway makes one page at most.
    2. After that nothing new is asked: the page is looked for by the row's id that it bears. Found, it is followed;
       not found, it was never made, and the row is `expired`.

    The network is outside any transaction, each row is written by conditional updates; a second run does the same.
    """
    if not client.is_on():
        return 0
    created = TopUp.objects.filter(state=TopUp.State.CREATED, created_at__lte=now - RETRY_AFTER).order_by("created_at")
    young = created.filter(created_at__gt=now - RETRY_FOR).select_related("organisation")
    old = created.filter(created_at__lte=now - RETRY_FOR)
    opened = _until_away(young[:_AT_ONCE], lambda top_up: _is_opened(top_up, now=now))
    return opened + _settle_old(old[:_AT_ONCE], now=now)


def _until_away(top_ups: Iterable[TopUp], step: Callable[[TopUp], bool]) -> int:
    """Take a step for each; return how many it settled. When the gateway is away the others wait for the next run."""
    settled = failures = 0
    for top_up in top_ups:
        try:
            settled += step(top_up)
        except GatewayUnavailable as problem:
            log.warning("Top-up %s waits for the gateway: %s", top_up.pk, problem)
            failures += 1
            if failures == _MOST_FAILURES:
                break
    return settled


def _is_opened(top_up: TopUp, *, now: datetime) -> bool:
    with suppress(GatewayRefused):  # the row says so, and is settled too
        open_checkout(top_up, now=now)
    return True


def _settle_old(old: QuerySet[TopUp], *, now: datetime) -> int:
    top_ups = list(old)
    if not top_ups:
        return 0
    try:
        found = checkouts_of([top_up.pk for top_up in top_ups], since=top_ups[0].created_at)
        for session in found.values():
            follow_checkout(session, now=now)
    except GatewayError as problem:
        log.warning("Could not look for the pages of %s top-ups: %s", len(top_ups), problem)
        return 0
    never_made = [top_up.pk for top_up in top_ups if top_up.pk not in found]
    TopUp.objects.filter(pk__in=never_made, state=TopUp.State.CREATED).update(state=TopUp.State.EXPIRED)
    return len(top_ups)


def expire_top_ups(*, now: datetime) -> int:
    """Close top-ups whose time is over; return how many no longer wait: paid, on their way, or expired.

    The gateway closes its page by itself. One that is still open there is closed by us, and only then is the row
    `expired`; a payment that was on its way meanwhile is credited. A second run finds none of them.
    """
    if not client.is_on():
        return 0
    over = TopUp.objects.filter(state=TopUp.State.OPEN, expires_at__lte=now - _EXPIRE_AFTER).order_by("expires_at")
    return _until_away(over[:_AT_ONCE], lambda top_up: _is_closed(top_up, now=now))


def _is_closed(top_up: TopUp, *, now: datetime) -> bool:
    try:
        session = client.get_checkout(top_up.checkout_session_id or "")
        if session.status == "open":
            session = client.expire_checkout(session.id)
        follow_checkout(session, now=now)
    except GatewayRefused as problem:  # paid at this very moment: the next run sees
        log.warning("Top-up %s could not be closed: %s", top_up.pk, problem)
        return False
    top_up.refresh_from_db()
    return top_up.state != TopUp.State.OPEN
