"""`GET ledger/`: every line of a wallet once, newest first, with the balance after it, however it is asked for."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from itertools import accumulate, pairwise

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from billing import holds
from billing.ledger import Line, Reference
from billing.models import Account, JournalEntry, Posting
from billing.queries.statement import (
    View,
    first_line_around,
    mark_as_text,
    mark_from_text,
    statement_lines,
    statement_page,
)
from tests.billing.conftest import NOW, UNIT, paid_top_up, wallet_of
from tests.billing.statements import book
from tests.billing.test_wallets_api import key_of
from tests.factories import make_organisation

pytestmark = pytest.mark.django_db
URL = "/api/v1/ledger/"
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def wallet() -> Account:
    return wallet_of("ana")


@pytest.fixture
def ask(client, wallet):
    """Return a function that asks with Ana's key and hands back the status and the body."""
    headers = key_of(wallet.owner)

    def ask(query: str = "?wallet=EUR"):
        answer = client.get(query if query.startswith("http") else URL + query, headers=headers)
        return answer.status_code, answer.json()

    return ask


def lines(ask, query: str = "?wallet=EUR") -> list[dict]:
    status, body = ask(query)
    assert status == HTTPStatus.OK, body
    return body["results"]


def walk(ask, query: str, *, link: str = "next") -> list[list[dict]]:
    """Follow the links from a page on; return each page's lines."""
    pages, url = [], query
    while url:
        status, body = ask(url)
        assert status == HTTPStatus.OK, body
        pages.append(body["results"])
        url = body[link]
    return pages


def test_a_line_says_what_when_how_much_and_what_was_left(ask, wallet):
    top_up = paid_top_up(wallet, units=100)
    book(wallet, -11_653_259, at=NOW + HOUR)
    newest, first = lines(ask)
    assert first == {
        "id": first["id"],
        "at": "2026-11-30T12:00:00Z",
        "kind": "topup",
        "amount": "100.000000",
        "balance_after": "100.000000",
        "reference": {"type": "top_up", "id": str(top_up.pk)},
        "description": "Top-up",
    }
    assert (newest["amount"], newest["balance_after"]) == ("-11.653259", "88.346741")
    assert (newest["at"], newest["reference"], newest["description"]) == ("2026-11-30T13:00:00Z", None, "GPU-hours")


def test_money_of_a_hold_moves_no_line_until_it_is_captured(ask, wallet):
    book(wallet, 100 * UNIT)
    hold = holds.place_hold(key="h", account_id=wallet.pk, amount_micros=40 * UNIT)
    assert [line["balance_after"] for line in lines(ask)] == ["100.000000"]
    revenue = Account.objects.create(kind="revenue", currency="EUR", entries_only=True)
    holds.capture(
        key="c",
        kind="rental_hour",
        hold_id=hold,
        amount_micros=15 * UNIT,
        lines=[Line(revenue.pk, 15 * UNIT)],
        effective_at=NOW,
    )
    assert [line["balance_after"] for line in lines(ask)] == ["85.000000", "100.000000"]


def test_pages_hold_every_line_once_and_their_balances_fit_together(ask, wallet):
    amounts = [100 * UNIT, -1, -2 * UNIT, 5 * UNIT, -333_333, -7 * UNIT, 1]
    for number, micros in enumerate(amounts):
        book(wallet, micros, at=NOW + number * HOUR)
    expected = [f"{total / UNIT:.6f}" for total in accumulate(amounts)][::-1]
    for limit in (1, 2, 3, 7, 8):
        pages = walk(ask, f"?wallet=EUR&limit={limit}")
        assert [line["balance_after"] for page in pages for line in page] == expected
        assert len(pages) == -(-7 // limit)
    _, second = ask(ask("?wallet=EUR&limit=3")[1]["next"])
    third = ask(second["next"])[1]
    assert third["next"] is None
    back = walk(ask, third["previous"], link="previous")
    assert [line["balance_after"] for page in back[::-1] for line in page] == expected[:6]


def test_a_page_stays_in_place_while_new_lines_come(ask, wallet):
    for number in range(6):
        book(wallet, (number + 1) * UNIT)
    _, first = ask("?wallet=EUR&limit=2")
    book(wallet, 1000 * UNIT)
    second = ask(first["next"])[1]
    assert [line["balance_after"] for line in second["results"]] == ["10.000000", "6.000000"]
    newer = ask(second["previous"])[1]
    assert [line["balance_after"] for line in newer["results"]] == ["21.000000", "15.000000"]
    assert [line["amount"] for line in ask(newer["previous"])[1]["results"]] == ["1000.000000"]


def test_days_and_times_narrow_the_list_and_balances_stay_true(ask, wallet):
    for number in range(5):
        book(
            wallet, 10 * UNIT, at=NOW + number * 12 * HOUR
        )  # 30 Nov 12:00, 1 Dec 00:00 and 12:00, 2 Dec 00:00 and 12:00
    narrowed = {
        "from=2026-12-01": ["50", "40", "30", "20"],
        "to=2026-12-01": ["30", "20", "10"],
        "from=2026-12-01&to=2026-12-01": ["30", "20"],
        "from=2026-12-01T12:00:00Z&to=2026-12-02T12:00:00Z": ["40", "30"],
        "from=2026-12-01T13:00:00%2B01:00": ["50", "40", "30"],
        "from=2027-01-01": [],
    }
    for span, balances in narrowed.items():
        found = lines(ask, f"?wallet=EUR&{span}")
        assert [line["balance_after"] for line in found] == [f"{balance}.000000" for balance in balances], span
        paged = walk(ask, f"?wallet=EUR&limit=1&{span}")
        assert [line for page in paged for line in page] == found


def test_a_line_booked_late_is_found_by_when_it_happened(ask, wallet):
    book(wallet, 50 * UNIT, at=NOW + 30 * DAY)
    book(wallet, -UNIT, at=NOW)  # settled thirty days late
    book(wallet, -UNIT, at=NOW + 31 * DAY)
    assert [line["balance_after"] for line in lines(ask, "?wallet=EUR&to=2026-11-30")] == ["49.000000"]
    assert [line["balance_after"] for line in lines(ask, "?wallet=EUR&from=2026-12-01")] == ["48.000000", "50.000000"]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_halving_finds_every_line_that_a_full_look_finds(wallet, data):
    """Times wander back and forth by less than a month, as late bookings do; views of any span lose no line."""
    steps = data.draw(st.lists(st.integers(0, 40), min_size=1, max_size=30))
    late = data.draw(st.lists(st.integers(0, 30), min_size=len(steps), max_size=len(steps)))
    starts = NOW + 400 * DAY * JournalEntry.objects.count()
    times = [starts + (moved - back) * DAY for moved, back in zip(accumulate(steps), late, strict=True)]
    for at in times:
        book(wallet, UNIT, at=at)
    since, until = sorted(data.draw(st.tuples(st.integers(-40, 1300), st.integers(-40, 1300))))
    view = View(since=starts + since * DAY, until=starts + until * DAY)
    wanted = Posting.objects.filter(
        account=wallet, entry__effective_at__gte=view.since, entry__effective_at__lt=view.until
    )
    expected = list(wanted.order_by("-pk").values_list("pk", flat=True))
    page = statement_page(account_id=wallet.pk, view=view, limit=500)
    assert [line.id for line in page.lines] == expected
    streamed = list(statement_lines(account_id=wallet.pk, view=view))
    assert streamed == list(page.lines)


def test_csv_streams_every_line_exactly(client, wallet):
    for number in range(5):
        book(wallet, 10 * UNIT, at=NOW + number * DAY, description="=SUM(A1)")
    book(wallet, -333_333, at=NOW + 6 * DAY, reference=Reference(type="rental", id="r-1"))
    headers = key_of(wallet.owner)
    answer = client.get(f"{URL}?wallet=EUR&format=csv", headers=headers)
    assert answer.streaming
    assert answer["Content-Disposition"] == 'attachment; filename="statement-EUR.csv"'
    rows = list(csv.DictReader(answer.getvalue().decode().splitlines()))
    assert [row["balance_after"] for row in rows] == ["49.666667", *(f"{n}.000000" for n in (50, 40, 30, 20, 10))]
    assert rows[0]["amount"] == "-0.333333"
    assert (rows[0]["reference_type"], rows[0]["reference_id"], rows[0]["currency"]) == ("rental", "r-1", "EUR")
    assert rows[1]["description"] == "'=SUM(A1)"  # no formula for a spreadsheet to run
    narrowed = client.get(f"{URL}?wallet=EUR&from=2026-12-01&to=2026-12-02&format=csv", headers=headers)
    found = list(csv.DictReader(narrowed.getvalue().decode().splitlines()))
    assert [row["balance_after"] for row in found] == ["30.000000", "20.000000"]
    page = client.get(f"{URL}?wallet=EUR&limit=1", headers={**headers, "Accept": "text/csv"})
    assert len(page.getvalue().decode().splitlines()) == 2


@pytest.mark.parametrize(
    ("query", "field", "code"),
    [
        ("", "wallet", "required"),
        ("?wallet=JPY", "wallet", "invalid_choice"),
        ("?wallet=eur", "wallet", "invalid_choice"),
        ("?wallet=EUR&from=yesterday", "from", "invalid"),
        ("?wallet=EUR&from=2026-02-30", "from", "invalid"),
        ("?wallet=EUR&from=0001-01-01", "from", "invalid"),
        ("?wallet=EUR&to=9999-12-31", "to", "invalid"),
        ("?wallet=EUR&to=2026-11-30T14:00:00", "to", "invalid"),
        ("?wallet=EUR&to=2026-11-30T25:00:00Z", "to", "invalid"),
        ("?wallet=EUR&to=2026-11-30T14:00:00%2B99:99", "to", "invalid"),
        ("?wallet=EUR&to=", "to", "invalid"),
        ("?wallet=EUR&from=2026-12-01&to=2026-11-30", "to", "empty_span"),
        ("?wallet=EUR&limit=0", "limit", "min_value"),
        ("?wallet=EUR&limit=501", "limit", "max_value"),
        ("?wallet=EUR&cursor=made-up", "cursor", "invalid"),
        ("?wallet=EUR&format=xml", "format", "invalid_choice"),
        ("?wallet=EUR&kind=topup", "kind", "unknown_parameter"),
        ("?wallet=EUR&wallet=USD", "wallet", "repeated"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_name(ask, wallet, query, field, code):
    book(wallet, UNIT)
    status, body = ask(query)
    assert status == HTTPStatus.BAD_REQUEST, body
    assert [(error["field"], error["code"]) for error in body["errors"]] == [(field, code)]


def test_a_cursor_opens_its_own_wallet_alone(client, ask, wallet):
    for _ in range(3):
        book(wallet, UNIT)
    other = wallet_of("bo", units=50)
    older = statement_page(account_id=wallet.pk, view=View(), limit=1).older
    assert older is not None
    text = mark_as_text(older, account_id=wallet.pk)
    assert mark_from_text(text, account_id=wallet.pk).balance_micros == 3 * UNIT
    answer = client.get(f"{URL}?wallet=EUR&cursor={text}", headers=key_of(other.owner))
    assert answer.status_code == HTTPStatus.BAD_REQUEST
    book(wallet_of("ana", currency="USD"), UNIT)
    assert ask(f"?wallet=USD&cursor={text}")[0] == HTTPStatus.BAD_REQUEST


def test_an_organisation_sees_its_own_lines_alone(client, ask, wallet):
    wallet_of("bo", units=50)
    assert lines(ask) == []
    answer = client.get(f"{URL}?wallet=EUR", headers=key_of(make_organisation()))
    assert answer.json() == {"next": None, "previous": None, "results": []}
    empty = client.get(f"{URL}?wallet=EUR&format=csv", headers=key_of(make_organisation(name="c")))
    assert empty.getvalue().decode().splitlines() == [
        "id,at,kind,amount,balance_after,currency,reference_type,reference_id,description"
    ]


def test_the_ledger_needs_a_key_that_may_read(client, wallet):
    assert client.get(f"{URL}?wallet=EUR").status_code == HTTPStatus.UNAUTHORIZED
    assert client.get(f"{URL}?wallet=EUR", headers=key_of(wallet.owner, "billing")).status_code == HTTPStatus.FORBIDDEN


@pytest.fixture
def long_history(wallet) -> Account:
    """Twenty thousand lines in twenty thousand hours, and as many of other wallets between them."""
    book(wallet, 10**6 * UNIT, at=NOW - 20_001 * HOUR)
    other = wallet_of("bo", units=10**6)
    revenue = Account.objects.create(kind="revenue", currency="EUR", entries_only=True)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO billing_journalentry (key, content_sha256, kind, reference_type, reference_id, description,"
            " effective_at, created_at) SELECT 'bulk ' || n, ''::bytea, 'settlement', 'rental', 'r', '',"
            " %s::timestamptz - make_interval(hours => (20000 - n)::int), now() FROM generate_series(1, 20000) AS n",
            [NOW],
        )
        cursor.execute(
            "INSERT INTO billing_posting (entry_id, account_id, currency, amount_micros)"
            " SELECT id, line.account, 'EUR', line.amount FROM billing_journalentry,"
            " (VALUES (%s::bigint, -3), (%s::bigint, -2), (%s::bigint, 5)) AS line (account, amount)"
            " WHERE key LIKE 'bulk %%' ORDER BY billing_journalentry.id",
            [wallet.pk, other.pk, revenue.pk],
        )
        cursor.execute("ANALYZE billing_posting, billing_journalentry")
    return wallet


@contextmanager
def lines_read() -> Iterator[list[int]]:
    """Collect, per query, how many rows of the postings it touched, kept or not, as the database itself counts them."""
    touched: list[int] = []

    def of(plan) -> int:
        inner = sum(of(child) for child in plan.get("Plans", []))
        if plan.get("Relation Name") != "billing_posting":
            return inner
        dropped = plan.get("Rows Removed by Filter", 0) + plan.get("Rows Removed by Index Recheck", 0)
        return inner + round((plan["Actual Rows"] + dropped) * plan["Actual Loops"])

    def count(execute, sql, params, many, context):
        execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", params, many, context)
        touched.append(of(context["cursor"].fetchone()[0][0]["Plan"]))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(count):
        yield touched


def test_a_page_reads_its_own_lines_not_the_history(long_history):
    with lines_read() as touched:
        first = page = statement_page(account_id=long_history.pk, view=View(), limit=200)
        for _ in range(5):
            page = statement_page(account_id=long_history.pk, view=View(), limit=200, mark=page.older)
    # Two queries a page; a third of the lines around are this wallet's, and the planner may pass by the others.
    assert len(touched) == 12
    assert max(touched) <= 3 * 202
    assert first.lines[0].balance_after_micros == 10**6 * UNIT - 60_000
    assert page.lines[-1].balance_after_micros == 10**6 * UNIT - 3 * (20_000 - 1199)
    for newer, older in pairwise(page.lines):
        assert newer.balance_before_micros == older.balance_after_micros


def test_a_time_is_found_by_halving(long_history):
    at = NOW - 12_345 * HOUR
    with lines_read() as touched:
        found = first_line_around(long_history.pk, at)
    assert sum(touched) < 100
    own = Posting.objects.filter(account=long_history).order_by("pk")
    assert own.filter(pk__gte=found)[0] == own.filter(entry__effective_at__gte=at)[0]
    oldest = first_line_around(long_history.pk, datetime(2000, 1, 1, tzinfo=UTC))
    assert oldest <= own.values_list("pk", flat=True)[0]
