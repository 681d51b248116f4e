"""`/wallet/`: what there is, what stands in the way, how it came there; and nothing that is not true."""

import csv
from datetime import UTC, datetime, timedelta
from http import HTTPStatus

import pytest
from django.test import Client

from billing import holds
from billing.accounts import open_account
from billing.ledger import Reference
from billing.models import Account, TopUp
from billing.queries.series import balance_series
from billing.views.statement import LINES_PER_PAGE
from tests.billing.conftest import NOW, UNIT, paid_top_up
from tests.billing.statements import book, run_rental
from tests.factories import make_member, make_operator, make_organisation
from users.models import Organisation, Role

pytestmark = pytest.mark.django_db
URL, CSV = "/wallet/", "/wallet/statement.csv"
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def signed_in(*, role: Role = Role.OWNER, organisation: Organisation | None = None) -> Client:
    client = Client()
    client.force_login(make_member(role=role, organisation=organisation))
    return client


def wallet(currency: str = "EUR") -> Account:
    return open_account(kind=Account.Kind.WALLET, currency=currency, owner_id=make_organisation().pk)


def words(page) -> str:
    """Return the text of a page's main part, its spaces evened out."""
    html = page.content.decode().split("<main", 1)[1].split("</main>", 1)[0]
    text = " ".join(part.split(">", 1)[-1] for part in html.split("<"))
    return " ".join(text.replace("\N{NO-BREAK SPACE}", " ").split())


def ago(**units: float) -> datetime:
    return datetime.now(UTC) - timedelta(**units)


def test_a_new_organisation_is_told_how_to_begin():
    page = signed_in().get(URL)
    assert page.status_code == HTTPStatus.OK
    text = words(page)
    assert "Nothing here yet. A top-up opens a wallet in euros, dollars or pounds." in text
    assert text.count("Not opened yet.") == 3
    assert "Statement" not in text
    assert b'href="/wallet/refund/"' not in page.content


def test_a_wallet_shows_what_is_in_it_held_available_and_how_long_it_lasts():
    eur = wallet()
    paid_top_up(eur, units=1000)
    book(eur, -11_653_259)
    run_rental(eur, held_units=100, burn_micros_per_hour=20_080_000)
    holds.place_hold(key="o", account_id=eur.pk, amount_micros=30 * UNIT)
    text = words(signed_in().get(URL))
    assert "Free to spend: 858.34 EUR. At the present rate the EUR wallet lasts 1 day, 18 hrs." in text
    assert "988.34 EUR 130.00 held for 2 orders and rentals, 858.34 available. Burning 20.08 an hour" in text
    assert "held money comes on top" in text


def test_what_is_left_is_never_shown_as_more_than_it_is():
    eur = wallet()
    paid_top_up(eur, micros=10 * UNIT)
    book(eur, -1)
    assert "Free to spend: 9.99 EUR." in words(signed_in().get(URL))


def test_a_wallet_where_nothing_runs_says_so():
    paid_top_up(wallet(), units=50)
    text = words(signed_in().get(URL))
    assert "Nothing held, 50.00 available. nothing is running" in text
    assert "At the present rate" not in text


def test_a_runway_beyond_a_year_names_no_day():
    eur = wallet()
    paid_top_up(eur, units=10_000)
    run_rental(eur, held_units=1, burn_micros_per_hour=1)
    assert "more than a year" in words(signed_in().get(URL))


def test_what_is_owed_and_a_freeze_come_with_what_to_do():
    eur = wallet()
    receivable = open_account(kind=Account.Kind.RECEIVABLE, currency="EUR", owner_id=eur.owner_id)
    book(receivable, -35 * UNIT - 1)
    Organisation.objects.filter(pk=make_organisation().pk).update(frozen_at=NOW)
    page = signed_in().get(URL)
    text = words(page)
    assert "35.01 EUR are owed" in text  # what pays it, not less
    assert "Orla Labs B.V. is frozen since 30 Nov 2026" in text
    assert b'href="/wallet/top-up/?currency=EUR"' in page.content
    assert b'href="/imprint/"' in page.content


def test_a_top_up_that_waits_is_announced_with_its_page():
    eur = wallet()
    waiting = TopUp.objects.create(
        organisation=make_organisation(),
        wallet=eur,
        currency="EUR",
        amount_micros=250 * UNIT,
        state="open",
        gateway_key="k",
        created_at=ago(hours=1),
    )
    page = signed_in().get(URL)
    assert "A top-up of 250.00 EUR is not in the wallet yet" in words(page)
    assert f'href="/wallet/top-up/{waiting.pk}/"'.encode() in page.content


def test_the_statement_says_each_line_its_object_and_the_balance():
    eur = wallet()
    top_up = paid_top_up(eur, units=100, paid_at=ago(days=2))
    book(eur, -11_653_259, at=ago(days=1), description="8 × H100 SXM")
    book(eur, -40 * UNIT, kind="refund", reference=Reference(type="refund", id="r-1"), at=ago(hours=1))
    page = signed_in().get(URL)
    text = words(page)
    assert "GPU-hours 8 × H100 SXM" in text
    assert "11.65 88.34" in text
    assert "Brought forward 0.00 0.00 3 lines 51.65 100.00 48.34" in text
    assert f'href="/wallet/top-up/{top_up.pk}/">Top-up</a>'.encode() in page.content
    assert b'href="/wallet/refund/#refund-r-1"' in page.content


@pytest.mark.broken_books
def test_a_top_up_that_paid_a_debt_first_says_so():
    top_up = paid_top_up(wallet(), units=50)
    TopUp.objects.filter(pk=top_up.pk).update(amount_micros=85 * UNIT)
    assert "85.00 EUR were paid in; the rest paid what was owed" in words(signed_in().get(URL))


def test_lines_come_by_the_page_and_every_one_once():
    eur = wallet()
    paid_top_up(eur, units=1000, paid_at=ago(days=9))
    for number in range(2 * LINES_PER_PAGE):
        book(eur, -UNIT, at=ago(days=8) + number * HOUR)
    client, url, seen = signed_in(), URL, []
    while url:
        statement = client.get(URL + url.removeprefix(URL)).context["statement"]
        seen += [row.line.id for row in statement.rows]
        url = statement.older_href.partition("#")[0]
    assert len(seen) == len(set(seen)) == 2 * LINES_PER_PAGE + 1
    assert seen == sorted(seen, reverse=True)
    last = client.get(URL + client.get(URL).context["statement"].older_href)
    newer = client.get(URL + last.context["statement"].newer_href)
    assert [row.line.id for row in newer.context["statement"].rows] == seen[:LINES_PER_PAGE]


def test_filters_narrow_the_lines_the_drawing_and_the_file():
    eur = wallet()
    paid_top_up(eur, units=100, paid_at=NOW - 9 * DAY)
    book(eur, -10 * UNIT, at=NOW - 8 * DAY)
    book(eur, -20 * UNIT, at=NOW - 2 * DAY)
    client = signed_in()
    query = "?currency=EUR&from=2026-11-20&to=2026-11-22&kind=usage"
    page = client.get(URL + query)
    assert [row.line.amount_micros for row in page.context["statement"].rows] == [-10 * UNIT]
    assert "Balance before the oldest of these lines" in words(page)
    assert [day.balance_micros for day in page.context["history"].days] == [90 * UNIT, 100 * UNIT]
    assert page.context["statement"].csv_href == CSV + query
    rows = list(csv.DictReader(client.get(CSV + query).getvalue().decode().splitlines()))
    assert [(row["amount"], row["balance_after"]) for row in rows] == [("-10.000000", "90.000000")]
    assert "No line fits." in words(client.get(f"{URL}?currency=EUR&kind=disputes"))


def test_a_filter_that_cannot_be_meant_is_named_and_everything_is_shown():
    eur = wallet()
    paid_top_up(eur, units=100)
    client = signed_in()
    for query, field in (
        ("from=yesterday", "from"),
        ("to=1999-12-31", "to"),
        ("from=2026-11-30&to=2026-11-29", "to"),
        ("kind=gifts", "kind"),
        ("currency=JPY", "currency"),
    ):
        page = client.get(f"{URL}?{query}")
        assert page.status_code == HTTPStatus.OK
        assert field in page.context["form"].errors
        assert len(page.context["statement"].rows) == 1
        assert "One thing to correct" in words(page)
        assert client.get(f"{CSV}?{query}").status_code == HTTPStatus.FOUND
    assert len(client.get(f"{URL}?cursor=made-up").context["statement"].rows) == 1


def test_the_balance_over_time_is_what_the_lines_sum_to():
    eur = wallet()
    start = NOW - 40 * DAY
    paid_top_up(eur, units=100, paid_at=start)
    book(eur, -10 * UNIT, at=NOW - 20 * DAY)
    book(eur, -20 * UNIT, at=NOW - 20 * DAY + HOUR)
    book(eur, 5 * UNIT, at=NOW + 5 * DAY)  # after the window
    series = balance_series(account_id=eur.pk, since=NOW - 30 * DAY, until=NOW, span="day")
    assert series is not None
    assert (series.first_at, series.opening_micros, series.closing_micros) == (start, 100 * UNIT, 70 * UNIT)
    (change,) = series.changes
    assert (change.in_micros, change.out_micros, change.at) == (0, 30 * UNIT, NOW - 20 * DAY + HOUR)
    page = signed_in().get(URL)
    assert b'class="hist"' in page.content
    assert "The same in figures" in words(page)


def test_a_wallet_of_this_minute_has_no_drawing_yet():
    paid_top_up(wallet(), units=100, paid_at=datetime.now(UTC))
    assert "A line is drawn once there is an hour of it." in words(signed_in().get(URL))


def test_every_member_sees_the_wallet_and_payers_alone_its_buttons():
    paid_top_up(wallet(), units=100)
    for role in Role:
        page = signed_in(role=role).get(URL)
        may_pay = role in (Role.OWNER, Role.BILLING)
        assert (b'class="btn" href="/wallet/top-up/"' in page.content) == may_pay
        assert ("Owners and billing members" in words(page)) != may_pay


def test_an_organisation_sees_its_own_wallet_alone():
    paid_top_up(wallet(), units=100)
    other = signed_in(organisation=make_organisation(name="Other Ltd"))
    assert "Nothing here yet." in words(other.get(URL))
    assert len(other.get(CSV).getvalue().decode().splitlines()) == 1


def test_a_provider_has_no_wallet_and_is_told_why():
    provider = make_organisation(name="Rack Ltd", kind="provider")
    text = words(signed_in(organisation=provider).get(URL))
    assert "Providers have no wallet." in text
    assert "Rack Ltd lists servers" in text


def test_the_wallet_is_for_members_of_an_organisation():
    anonymous = Client().get(URL)
    assert anonymous.status_code == HTTPStatus.FOUND
    assert anonymous["Location"].startswith("/account/login/")
    operator = Client()
    operator.force_login(make_operator())
    assert operator.get(URL).status_code == HTTPStatus.FORBIDDEN
    assert signed_in().post(URL).status_code == HTTPStatus.METHOD_NOT_ALLOWED


def test_the_wallet_is_neither_kept_nor_listed():
    page = signed_in().get(URL)
    assert "no-store" in page["Cache-Control"]
    assert b'<meta name="robots" content="noindex">' in page.content
    assert b"canonical" not in page.content


def test_the_whole_page_takes_at_most_twelve_queries(django_assert_max_num_queries):
    eur = wallet()
    paid_top_up(eur, units=1000, paid_at=NOW - 9 * DAY)
    for number in range(LINES_PER_PAGE + 5):
        book(eur, -UNIT, at=NOW - 8 * DAY + number * HOUR)
    client = signed_in()
    with django_assert_max_num_queries(12):
        page = client.get(f"{URL}?currency=EUR&from=2026-11-01&to=2026-11-30&kind=usage")
    assert page.context["statement"].older_href


@pytest.mark.parametrize(("language", "written"), [("nl", "€ 12.345,60"), ("pl", "12 345,60 EUR")])
def test_money_is_written_as_the_language_writes_it(language, written):
    paid_top_up(wallet(), micros=12_345_600_000)
    assert written in words(signed_in().get(f"/{language}{URL}"))
