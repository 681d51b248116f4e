"""The statement of a wallet as its page shows it: lines in words, with the addresses of what they are about."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.functional import Promise

from billing.accounts import WALLET_CURRENCIES
from billing.forms import StatementForm
from billing.models import TopUp
from billing.queries.statement import (
    Mark,
    StatementLine,
    StatementPage,
    UnknownMark,
    mark_as_text,
    mark_from_text,
    statement_page,
)
from billing.queries.wallets import Wallet
from billing.statement_words import title_of

LINES_PER_PAGE = 25
_FILTERS = ("currency", "from", "to", "kind")
_NOTHING = StatementPage(lines=[], older=None, newer=None)


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line in words; `href` is where its object is shown, "" for nowhere."""

    line: StatementLine
    title: str | Promise
    href: str
    top_up: TopUp | None

    @property
    def on(self) -> date:
        """The day it happened, in UTC."""
        return self.line.at.astimezone(UTC).date()


@dataclass(frozen=True, kw_only=True)
class Tab:
    """A wallet that the same statement can be shown of."""

    currency: str
    href: str
    is_shown: bool


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A part of a wallet's history: rows, newest first, what they sum to, and the addresses of the rest."""

    rows: Sequence[Row]
    in_micros: int
    out_micros: int
    older_href: str
    newer_href: str
    csv_href: str
    is_narrowed: bool


def lines_of(wallet: Wallet, form: StatementForm, cursor: str) -> StatementPage:
    """Return the page of lines that the form and the cursor ask for; a cursor that is not ours is as none."""
    if wallet.account_id is None:
        return _NOTHING
    mark = _mark(cursor, account_id=wallet.account_id)
    return statement_page(account_id=wallet.account_id, view=form.view, limit=LINES_PER_PAGE, mark=mark)


def statement_of(wallet: Wallet, form: StatementForm, page: StatementPage, top_ups: Mapping[str, TopUp]) -> Statement:
    """Return a page of lines in words. `top_ups` are those it names, by id."""
    amounts = [line.amount_micros for line in page.lines]
    wanted = wanted_of(form)
    return Statement(
        rows=[_row(line, top_ups) for line in page.lines],
        in_micros=sum(amount for amount in amounts if amount > 0),
        out_micros=-sum(amount for amount in amounts if amount < 0),
        older_href=_page_href(wanted, page.older, wallet),
        newer_href=_page_href(wanted, page.newer, wallet),
        csv_href=f"{reverse('billing:statement-csv')}?{urlencode(wanted)}",
        is_narrowed=bool(wanted.keys() - {"currency"}),
    )


def tabs_of(form: StatementForm, wallet: Wallet) -> list[Tab]:
    """Return the wallets, each with the address of the same statement of it."""
    wanted = wanted_of(form)
    return [
        Tab(
            currency=currency,
            href=f"?{urlencode({**wanted, 'currency': currency})}#statement",
            is_shown=currency == wallet.currency,
        )
        for currency in WALLET_CURRENCIES
    ]


def top_up_ids(lines: Iterable[StatementLine]) -> list[str]:
    """Return the ids of the top-ups that lines are about."""
    return [line.reference_id for line in lines if line.reference_type == "top_up"]


def wanted_of(form: StatementForm) -> dict[str, str]:
    """Return the filters that hold, as they stand in an address: none but the wallet where the form has a fault."""
    names = _FILTERS if form.is_valid() else _FILTERS[:1]
    return {name: str(form.cleaned_data[name]) for name in names if form.cleaned_data.get(name)}


def _mark(cursor: str, *, account_id: int) -> Mark | None:
    try:
        return mark_from_text(cursor, account_id=account_id) if cursor else None
    except UnknownMark:
        return None


def _row(line: StatementLine, top_ups: Mapping[str, TopUp]) -> Row:
    top_up = top_ups.get(line.reference_id) if line.reference_type == "top_up" else None
    return Row(line=line, title=title_of(line.kind), href=_href_of(line, top_up), top_up=top_up)


def _href_of(line: StatementLine, top_up: TopUp | None) -> str:
    if top_up is not None:
        return reverse("billing:top-up-state", args=[top_up.pk])
    if line.reference_type == "refund":
        return f"{reverse('billing:refund')}#refund-{line.reference_id}"
    if line.reference_type == "rental":
        return f"{reverse('marketplace:rentals')}{line.reference_id}/"
    return ""


def _page_href(wanted: Mapping[str, str], mark: Mark | None, wallet: Wallet) -> str:
    if mark is None or wallet.account_id is None:
        return ""
    return f"?{urlencode({**wanted, 'cursor': mark_as_text(mark, account_id=wallet.account_id)})}#statement"
