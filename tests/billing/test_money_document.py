"""`docs/money.md` is true: each table of postings is posted through the door, and the chart names every account."""

import re
from decimal import Decimal
from pathlib import Path

import pytest

from billing import ledger
from billing.accounts import open_account
from billing.checks import run_checks
from billing.ledger import Line
from billing.models import Account
from common.money import round_to_micros
from tests.billing.conftest import NOW
from users.models import Organisation

DOCUMENT = (Path(__file__).resolve().parent.parent.parent / "docs" / "money.md").read_text()
FLOWS = re.findall(
    r"^### (.+), `([\w:]+)`\n\| account \| (\w{3}) \|\n\|---\|---\|\n((?:\|.+\|\n)+)", DOCUMENT, re.MULTILINE
)
COUNTED_FROM_ROWS = "I11 money held is money that came in"

pytestmark = pytest.mark.django_db


def lines_of(table: str, currency: str) -> list[Line]:
    renter, _ = Organisation.objects.get_or_create(
        name="ana", defaults={"kind": "renter", "type": "business", "country": "NL"}
    )
    provider, _ = Organisation.objects.get_or_create(
        name="bo", defaults={"kind": "provider", "type": "business", "country": "NL"}
    )
    owners = {"wallet": renter.pk, "receivable": renter.pk, "payable": provider.pk}
    lines = []
    for kind, amount in re.findall(r"\| (\w+) \| (-?[\d.]+) \|", table):
        account = open_account(kind=Account.Kind(kind), currency=currency, owner_id=owners.get(kind))
        lines.append(Line(account.pk, round_to_micros(Decimal(amount))))
    return lines


@pytest.mark.broken_books  # the tables are entries alone, without the rows of the payments behind them
def test_every_flow_of_the_document_is_posted_in_its_order():
    assert len(FLOWS) >= 23
    for number, (title, kind, currency, table) in enumerate(FLOWS):
        lines = lines_of(table, currency)
        assert len(lines) >= 2, title
        if "| wallet | -" in table:
            fund(currency, number)
        ledger.post(key=f"doc{number}", kind=kind, lines=lines, effective_at=NOW)
        assert [check for check in run_checks(now=NOW) if not check.ok and check.name != COUNTED_FROM_ROWS] == [], title


def fund(currency: str, number: int) -> None:
    """Top the wallet up, so that each table stands by itself."""
    lines = lines_of("| gateway | -500 |\n| wallet | 500 |\n", currency)
    ledger.post(key=f"fund{number}", kind="topup", lines=lines, effective_at=NOW)


def test_the_chart_names_every_account_and_how_it_is_kept():
    rows = dict(re.findall(r"^\| `(\w+)` \| \w+ \| \w+ \| (yes|entries) \|", DOCUMENT, re.MULTILINE))
    assert set(rows) == set(Account.Kind.values)
    stored = {kind for kind, kept in rows.items() if kept == "yes"}
    assert stored == {kind.value for kind in Account.OWNED}
