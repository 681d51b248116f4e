"""Changes of one per cent and more: noted with the hour, told by Atom feeds, and the movers of `/prices/`."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from xml.etree import ElementTree

import pytest
from django.db import IntegrityError, transaction
from django.utils.dateparse import parse_datetime

from catalog import tasks
from catalog.history_queries import hour_of
from catalog.models import PriceChange
from catalog.price_changes import movers_of_the_week, newest_changes, note_changes
from catalog.queries import price_table
from tests.factories import make_best_ask, make_gpu, make_live_offer, make_snapshot

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
FIRST = datetime(2026, 11, 30, 6, tzinfo=UTC)
ATOM = "{http://www.w3.org/2005/Atom}"
pytestmark = pytest.mark.django_db


@pytest.fixture
def gpu():
    return make_gpu(label="H100 SXM")


def recorded(gpu, *prices: str, market: str = "on_demand") -> list[str]:
    """Record one price an hour, noting changes each time; return the changes as "before > after"."""
    for number, price in enumerate(prices):
        make_snapshot(gpu=gpu, at=FIRST + number * HOUR, price=price, market=market)
        note_changes(now=FIRST + number * HOUR + timedelta(minutes=7))
    rows = PriceChange.objects.filter(gpu=gpu, market=market).order_by("at")
    return [f"{row.price_before.normalize():f} > {row.price.normalize():f}" for row in rows]


@pytest.mark.parametrize(
    ("prices", "changes"),
    [
        (("2.00",), []),
        (("2.00", "2.00"), []),
        (("2.00", "2.0199"), []),
        (("2.00", "2.02"), ["2 > 2.02"]),
        (("2.00", "1.98"), ["2 > 1.98"]),
        (("2.00", "1.9801"), []),
        (("2.00", "1.99", "1.98", "1.97"), ["2 > 1.98"]),
        (("2.00", "2.50", "2.00"), ["2 > 2.5", "2.5 > 2"]),
        (("2.00", "2.50", "2.51", "2.53"), ["2 > 2.5", "2.5 > 2.53"]),
    ],
)
def test_a_change_counts_from_one_per_cent_on_against_the_last_one_that_counted(gpu, prices, changes):
    assert recorded(gpu, *prices) == changes


def test_series_are_measured_each_on_its_own(gpu):
    recorded(gpu, "2.00", "2.10")
    assert recorded(gpu, "1.00", "1.00", market="spot") == []
    assert recorded(make_gpu(slug="h200-sxm"), "3.00", "2.70") == ["3 > 2.7"]


def test_a_second_run_notes_nothing_again(gpu):
    recorded(gpu, "2.00", "2.10")
    assert note_changes(now=FIRST + HOUR) == 0
    assert PriceChange.objects.count() == 1


def test_a_gap_is_bridged_by_the_change_but_by_no_invented_hour(gpu):
    make_snapshot(gpu=gpu, at=FIRST, price="2.00")
    make_snapshot(gpu=gpu, at=FIRST + 9 * HOUR, price="1.50")
    assert note_changes(now=FIRST + 9 * HOUR) == 1
    assert PriceChange.objects.get().at == FIRST + 9 * HOUR


def test_the_hours_task_notes_what_it_recorded(gpu):
    make_snapshot(gpu=gpu, at=hour_of(datetime.now(UTC)) - HOUR, price="2.00")
    make_live_offer(gpu=gpu, price="1.50")
    tasks.take_snapshots()
    tasks.take_snapshots()
    assert PriceChange.objects.get().price == Decimal("1.5")


def test_the_database_refuses_a_change_that_is_none(gpu):
    values = {"gpu": gpu, "market": "spot", "at": FIRST, "price_before": 2, "offers": 1}
    with pytest.raises(IntegrityError), transaction.atomic():
        PriceChange.objects.create(**values, price=2)


def entries_of(client, path: str) -> tuple[ElementTree.Element, list[ElementTree.Element]]:
    answer = client.get(path)
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("application/atom+xml")
    feed = ElementTree.fromstring(answer.content)
    return feed, feed.findall(f"{ATOM}entry")


def text(element, name: str) -> str:
    found = element.find(f"{ATOM}{name}")
    assert found is not None, name
    return found.text or ""


def test_a_feed_has_what_atom_asks_for(client, gpu):
    recorded(gpu, "2.00", "1.90", "1.50")
    feed, entries = entries_of(client, "/feeds/h100-sxm/")
    assert feed.tag == f"{ATOM}feed"
    for element in (feed, *entries):
        assert text(element, "id")
        assert text(element, "title")
        assert parse_datetime(text(element, "updated")) is not None
    assert feed.find(f"{ATOM}author/{ATOM}name") is not None
    links = {link.get("rel"): link.get("href") for link in feed.findall(f"{ATOM}link")}
    assert links["self"] == "http://testserver/feeds/h100-sxm/"
    assert links["alternate"] == "http://testserver/prices/h100-sxm/"
    assert text(entries[0], "title") == "H100 SXM, on-demand: 1.90 to 1.50 USD per GPU-hour, 21.1% less"
    assert text(entries[0], "summary") == "The lowest live price; 1 cloud was counted."
    assert len({text(entry, "id") for entry in entries}) == len(entries) == 2
    assert parse_datetime(text(entries[0], "updated")) == FIRST + 2 * HOUR


def test_an_entry_keeps_its_id_in_every_language_feed_and_database(client, gpu):
    recorded(gpu, "2.00", "1.50")
    feeds = ("/feeds/h100-sxm/", "/feeds/prices/", "/nl/feeds/h100-sxm/", "/pl/feeds/prices/")
    before = {text(entries_of(client, path)[1][0], "id") for path in feeds}
    [row] = PriceChange.objects.all()
    row.delete()
    note_changes(now=FIRST + HOUR)
    assert before == {text(entries_of(client, "/feeds/prices/")[1][0], "id")}


def test_the_feed_of_a_gpu_has_its_own_changes_alone_and_the_common_one_all(client, gpu):
    recorded(gpu, "2.00", "1.50")
    recorded(make_gpu(slug="b200", label="B200"), "4.00", "5.00", market="exchange")
    assert len(entries_of(client, "/feeds/b200/")[1]) == 1
    _, entries = entries_of(client, "/feeds/prices/")
    assert {text(entry, "title").partition(":")[0] for entry in entries} == {"H100 SXM, on-demand", "B200, exchange"}
    assert "25.0% more" in text(entries_of(client, "/feeds/b200/")[1][0], "title")


def test_a_feed_without_changes_is_a_feed(client, gpu):
    assert entries_of(client, "/feeds/h100-sxm/")[1] == []
    assert entries_of(client, "/feeds/prices/")[1] == []


def test_feeds_are_found_from_the_pages_and_an_unknown_gpu_has_none(client, gpu):
    for page in ("/gpus/h100-sxm/", "/prices/h100-sxm/"):
        html = client.get(page).content.decode()
        assert re.search(r'<link rel="alternate" type="application/atom\+xml"[^>]* href="/feeds/h100-sxm/">', html)
    assert 'href="/feeds/prices/"' in client.get("/prices/").content.decode()
    assert client.get("/feeds/h9000/").status_code == 404
    assert client.post("/feeds/prices/").status_code == 405


def test_a_reader_that_asks_again_can_name_what_it_holds(client, gpu):
    recorded(gpu, "2.00", "1.50")
    first, later = client.get("/feeds/prices/"), client.get("/feeds/prices/")
    assert first["ETag"] == later["ETag"] or first["Date"] != later["Date"]
    assert first["ETag"] != client.get("/feeds/h100-sxm/")["ETag"]


def moved(now: datetime) -> tuple[list[str], list[str]]:
    movers = movers_of_the_week(prices=price_table(now=now), now=now)
    return tuple([f"{row.gpu.slug} {row.week.percent}" for row in rows] for rows in (movers.fallen, movers.risen))  # type: ignore[return-value]


def test_the_biggest_movers_are_of_a_week_and_come_largest_first(gpu):
    now = datetime.now(UTC)
    for slug, before, after in (
        ("a", "2.00", "1.00"),
        ("b", "2.00", "1.90"),
        ("c", "2.00", "2.01"),
        ("d", "2.00", "3.00"),
    ):
        card = make_gpu(slug=slug)
        make_snapshot(gpu=card, at=hour_of(now) - 7 * DAY, price=before)
        make_live_offer(gpu=card, price=after, cloud=slug)
    make_live_offer(gpu=gpu, price="2.00")
    assert moved(now) == (["a -50.0", "b -5.0"], ["d 50.0"])


def test_our_own_price_moves_beside_the_others(gpu):
    now = datetime.now(UTC)
    for market in ("exchange", "on_demand", "spot"):
        make_snapshot(gpu=gpu, at=hour_of(now) - 7 * DAY, price="2.00", market=market)
    make_best_ask(gpu=gpu, price="1.00", observed_at=now)
    make_live_offer(gpu=gpu, price="3.00")
    make_live_offer(gpu=gpu, price="0.10", market="spot")
    assert moved(now) == (["h100-sxm -50.0"], ["h100-sxm 50.0"])


def test_the_page_shows_movers_and_changes_in_words(client, gpu):
    now = datetime.now(UTC)
    make_snapshot(gpu=gpu, at=hour_of(now) - 7 * DAY, price="2.00")
    make_snapshot(gpu=gpu, at=hour_of(now) - HOUR, price="1.50")
    note_changes(now=now - HOUR)
    make_live_offer(gpu=gpu, price="1.50")
    html = client.get("/prices/").content.decode()
    words = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))
    assert "Fallen most" in words
    assert "25.0% less than 7 days ago" in words.replace("25%", "25.0%")
    assert "No price rose this week." in words
    assert "less: 25" in words


def test_without_anything_recorded_the_page_says_why(client, gpu):
    words = client.get("/prices/").content.decode()
    assert "Nothing moved that we can show." in words
    assert "No change recorded yet." in words


def test_the_page_takes_few_queries(client, gpu, django_assert_max_num_queries):
    now = datetime.now(UTC)
    for slug in ("a", "b", "c"):
        card = make_gpu(slug=slug)
        make_snapshot(gpu=card, at=hour_of(now) - 7 * DAY, price="2.00")
        make_live_offer(gpu=card, price="1.00", cloud=slug)
    with django_assert_max_num_queries(12):
        client.get("/prices/")
    assert newest_changes() == []
