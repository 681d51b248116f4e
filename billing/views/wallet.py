"""`/wallet/`: what there is in each currency, how long it lasts, how it came there; the same lines as a file."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from billing.accounts import WALLET_CURRENCIES
from billing.balance_chart import Meter, meter
from billing.forms import StatementForm
from billing.queries.payments import UNFINISHED, top_ups_by_id
from billing.queries.statement import statement_lines
from billing.queries.wallets import Wallet, wallets_of
from billing.statement_csv import statement_csv
from billing.views.balance_history import balance_history
from billing.views.statement import lines_of, statement_of, tabs_of, top_up_ids
from users.access import EVERYONE, PAYERS, for_members, may
from users.models import Membership, Organisation

_FORETOLD = timedelta(days=366)
_HOURS_AHEAD = 24


@dataclass(frozen=True, kw_only=True)
class Balance:
    """A wallet with its drawing; `runs_out_at` is None where nothing runs, or not within a year."""

    wallet: Wallet
    meter: Meter
    runs_out_at: datetime | None


@require_safe
@for_members(*EVERYONE)
def show_wallet(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show the wallets of the organisation and the statement of one of them. Providers have none."""
    organisation, now = membership.organisation, datetime.now(UTC)
    context = {"now": now, "organisation": organisation, "may_pay": may(membership, *PAYERS)}
    if organisation.kind == Organisation.Kind.RENTER:
        context |= _page(organisation, request.GET, now=now)
    return render(request, "billing/wallet.html", context)


@require_safe
@for_members(*EVERYONE)
def download_statement(request: HttpRequest, membership: Membership) -> HttpResponseBase:
    """Send every line that the page's filters ask for as CSV; filters that say nothing lead back to the page."""
    wallets = wallets_of(membership.organisation_id)
    form = StatementForm(request.GET, default_currency=_main_currency(wallets))
    if not form.is_valid():
        return redirect(f"{reverse('billing:wallet')}?{request.GET.urlencode()}")
    account_id = _shown(form, wallets).account_id
    lines = [] if account_id is None else statement_lines(account_id=account_id, view=form.view)
    return statement_csv(lines, currency=form.cleaned_data["currency"])


def _page(organisation: Organisation, query: Mapping[str, str], *, now: datetime) -> dict[str, Any]:
    wallets = wallets_of(organisation.pk)
    form = StatementForm(query, default_currency=_main_currency(wallets))
    shown = _shown(form, wallets)
    page = lines_of(shown, form, query.get("cursor", ""))
    top_ups = top_ups_by_id(organisation, top_up_ids(page.lines), now=now)
    burning = [wallet for wallet in wallets if wallet.runway_seconds is not None]
    return {
        "balances": [_balance(wallet, now=now) for wallet in wallets],
        "filled": [wallet for wallet in wallets if wallet.available_micros],
        "shortest": min(burning, key=lambda wallet: wallet.runway_seconds or 0, default=None),
        "owing": [wallet for wallet in wallets if wallet.owed_micros],
        "is_new": all(wallet.account_id is None for wallet in wallets),
        "unfinished": [top_up for top_up in top_ups.values() if top_up.state in UNFINISHED],
        "shown": shown,
        "form": form,
        "tabs": tabs_of(form, shown),
        "statement": statement_of(shown, form, page, top_ups),
        "history": balance_history(shown, form.view, now=now),
    }


def _main_currency(wallets: Sequence[Wallet]) -> str:
    """Return the currency of the first wallet with money in it, else of the first that is open, else the house's first."""
    opened = [wallet for wallet in wallets if wallet.account_id is not None]
    filled = [wallet for wallet in opened if wallet.posted_micros]
    return next((wallet.currency for wallet in (*filled, *opened)), WALLET_CURRENCIES[0])


def _shown(form: StatementForm, wallets: Iterable[Wallet]) -> Wallet:
    form.is_valid()
    currency = form.cleaned_data.get("currency", _main_currency(list(wallets)))
    return next(wallet for wallet in wallets if wallet.currency == currency)


def _balance(wallet: Wallet, *, now: datetime) -> Balance:
    next_micros = wallet.burn_micros_per_hour * _HOURS_AHEAD
    lasts = timedelta(seconds=min(wallet.runway_seconds or 0, _FORETOLD // timedelta(seconds=1)))
    return Balance(
        wallet=wallet,
        meter=meter(posted_micros=wallet.posted_micros, held_micros=wallet.held_micros, next_micros=next_micros),
        runs_out_at=now + lasts if wallet.burn_micros_per_hour and lasts < _FORETOLD else None,
    )
