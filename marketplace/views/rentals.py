"""`/rentals/`: what runs and burns, for how long the money lasts, what stopping would cost; then what is over."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.core.paginator import InvalidPage, Page, Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.functional import Promise
from django.views.decorators.http import require_safe

from billing.queries.wallets import Wallet, wallets_of
from marketplace.models import Rental
from marketplace.queries.rentals import Standing, open_alerts, rentals_of, standings_of
from marketplace.rental_words import end_reason
from marketplace.rentals.runway import Hourly, money_lasts_until
from users.access import EVERYONE, TRADERS, for_members, may
from users.models import Membership, Organisation

PER_PAGE = 50
MOST_OPEN = 200
_LOOKS_AHEAD = timedelta(days=90)
# What runs comes first, then what will.
_RANKS = (Rental.State.RUNNING, Rental.State.PROVISIONING, Rental.State.PENDING, Rental.State.ENDING)


@dataclass(frozen=True, kw_only=True)
class Purse:
    """A wallet that something burns from. `lasts_until`: when the first rental stops for want of money.

    None: not within 90 days. `lasts_seconds` from now.
    """

    wallet: Wallet
    open_ended: int
    lasts_until: datetime | None
    lasts_seconds: int


@dataclass(frozen=True, kw_only=True)
class Closed:
    """A rental that is over, with the reason in words."""

    standing: Standing
    why: str | Promise


@require_safe
@for_members(*EVERYONE)
def list_rentals(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show the rentals of the organisation; a page of closed ones that is not there is a 404."""
    now, organisation = datetime.now(UTC), membership.organisation
    page = _closed_page(request, organisation)
    present = _present(organisation) if page.number == 1 else []
    standings = standings_of([*present, *page], now=now)
    still_open = standings[: len(present)]
    context = {
        "now": now,
        "organisation": organisation,
        "present": still_open,
        "burning": sum(standing.rental.state == Rental.State.RUNNING for standing in still_open),
        "page": page,
        "closed": [Closed(standing=each, why=end_reason(each.rental.end_reason)) for each in standings[len(present) :]],
        "purses": list(purses(wallets_of(organisation.pk), still_open, now=now)),
        "alerts": open_alerts(organisation) if still_open else [],
        "has_sample": any(standing.rental.server.is_sample for standing in standings),
        "may_trade": may(membership, *TRADERS),
    }
    return render(request, "marketplace/rentals.html", context)


def purses(wallets: Sequence[Wallet], standings: Sequence[Standing], *, now: datetime) -> list[Purse]:
    """Return the wallets that something burns from, with how long each lasts for its open-ended rentals."""
    return [
        _purse(wallet, [each for each in standings if each.rental.currency == wallet.currency], now=now)
        for wallet in wallets
        if wallet.burn_micros_per_hour
    ]


def _purse(wallet: Wallet, standings: Sequence[Standing], *, now: datetime) -> Purse:
    hourly = [found for standing in standings if (found := _hourly(standing)) is not None]
    lasts_until = money_lasts_until(wallet.available_micros, hourly, within=now + _LOOKS_AHEAD)
    return Purse(
        wallet=wallet,
        open_ended=len(hourly),
        lasts_until=lasts_until,
        lasts_seconds=0 if lasts_until is None else (lasts_until - now) // timedelta(seconds=1),
    )


def _hourly(standing: Standing) -> Hourly | None:
    rental, hour_micros = standing.rental, standing.next_hold_micros
    if rental.state != Rental.State.RUNNING or rental.paid_until is None or hour_micros is None:
        return None
    return Hourly(paid_until=rental.paid_until, hour_micros=hour_micros, lease_until=rental.lease_until)


def _present(organisation: Organisation) -> list[Rental]:
    rentals = list(rentals_of(organisation).filter(state__in=Rental.OPEN)[:MOST_OPEN])
    return sorted(rentals, key=lambda rental: _RANKS.index(Rental.State(rental.state)))


def _closed_page(request: HttpRequest, organisation: Organisation) -> Page[Rental]:
    try:
        return Paginator(rentals_of(organisation).exclude(state__in=Rental.OPEN), PER_PAGE).page(
            request.GET.get("page", 1)
        )
    except InvalidPage:
        raise Http404 from None
