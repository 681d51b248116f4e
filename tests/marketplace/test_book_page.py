"""`/market/<slug>/`: the ladder, depth, trades and the ticket; the part that is looked at again; who sees what."""

import re
from datetime import timedelta
from decimal import Decimal

import pytest

from marketplace.models import Server
from tests.factories import make_gpu, make_live_offer, make_member, make_operator, make_organisation
from tests.marketplace.on_pages import Form, just_now, on_offer, placed_by, renter_with, somebody_of, words
from users.models import Role

pytestmark = pytest.mark.django_db
MOST_QUERIES = 12
URL, LIVE = "/market/h100-sxm/", "/market/h100-sxm/live/"
TICKET = "/market/h100-sxm/order/"


def found_in(page, pattern: str) -> str:
    found = re.search(pattern, page.content.decode())
    assert found is not None, pattern
    return found[1]


def test_an_unknown_gpu_is_not_found(client):
    assert client.get("/market/nothing/").status_code == 404
    assert client.get("/market/nothing/live/").status_code == 404
    assert client.get("/market/nothing/order/preview/").status_code == 404


def test_the_page_shows_the_figures_both_sides_and_the_trades(client, h100):
    on_offer(h100, price="2.88", devices=5)
    on_offer(h100, price="2.95", devices=8)
    renter = renter_with(USD=10_000)
    placed_by(renter, h100, gpu_count=4, limit="2.85", server_count=2)
    placed_by(renter, h100, gpu_count=1, limit="2.88", time_in_force="ioc")
    text = words(client.get(URL))
    assert "Best offer, USD per GPU-hour 2.88 12 GPUs free, seen" in text
    assert "Best bid 2.85 Spread 0.03 Last trade 2.88" in text
    assert "2.95 8 2.88, marked: best offer 4 0.03 between the best offer and the best bid 8 2.85" in text
    assert "1 GPU-hour traded" in text
    assert "Depth: 8 GPUs wanted down to 2.85 USD, 12 offered up to 2.95 USD" in text
    assert "Up to here 2.88 4 4 2.95 8 12" in text


def test_one_stroke_of_the_marker_is_on_the_best_offer(client, h100):
    on_offer(h100, price="2.80", min_gpus=8)
    on_offer(h100, price="2.88", devices=5)
    html = client.get(URL).content.decode()
    assert re.findall(r'<mark class="mark">([\d.]+)</mark>', html) == ["2.88"], "what one GPU for an hour costs"
    assert "from 8 up" in words(client.get(URL))


def test_a_bid_above_an_offer_says_why(client, h100):
    on_offer(h100, price="2.88", devices=4)
    placed_by(renter_with(USD=10_000), h100, gpu_count=8, limit="3.00")
    text = words(client.get(URL))
    assert "A bid stands above an offer: it does not fit, see below" in text
    assert "more GPUs in one server, more hours, another place or more memory" in text


def test_an_empty_book_says_what_else_there_is_and_invites_the_first_order(client, h100):
    nvl = make_gpu(slug="h100-nvl", memory_gb=Decimal(94))
    small = make_gpu(slug="l4", memory_gb=Decimal(24))
    on_offer(nvl, price="3.19")
    on_offer(small, price="0.50")
    make_live_offer(gpu=h100, price="3.40", cloud="lambda")
    text = words(client.get(URL))
    assert "no offer for one GPU now" in text
    assert "The book is empty" in text
    assert "H100-NVL 94 GB, from 3.19 USD, 8 GPUs free" in text
    assert "Other clouds about 3.40 USD, the median of what they ask" in text
    assert "24 GB, from" not in text, "less memory is no substitute"
    assert client.get("/market/l40/").status_code == 404


def test_a_silent_server_is_not_on_offer(client, h100):
    listing = on_offer(h100)
    Server.objects.filter(pk=listing.server_id).update(last_beat_at=just_now() - timedelta(seconds=61))
    assert "Nobody offers now" not in words(client.get(URL))
    assert "The book is empty" in words(client.get(URL))


def test_a_renter_sees_which_bids_are_theirs_and_nobody_else_does(client, h100):
    renter, other = renter_with(USD=10_000), renter_with(name="Other Labs", USD=10_000)
    on_offer(h100, price="9.00")
    placed_by(renter, h100, gpu_count=4, limit="2.80")
    placed_by(renter, h100, gpu_count=2, limit="2.70")
    placed_by(other, h100, gpu_count=1, limit="2.70")
    text = words(somebody_of(renter).get(URL))
    assert "4 2.80 yours 3 2.70 2 yours" in text
    assert "Your open orders here" in text
    assert "yours" not in words(client.get(URL))
    assert "yours" not in words(somebody_of(make_organisation(name="Third")).get(URL))


def test_what_the_page_shows_is_told_again_only_when_it_changes(client, h100):
    on_offer(h100, price="2.88")
    etag = found_in(client.get(URL), r'data-etag="([^"]+)"').replace("&quot;", '"')
    again = client.get(LIVE, headers={"if-none-match": etag})
    assert (again.status_code, again.content) == (304, b"")
    on_offer(h100, price="2.80")
    changed = client.get(LIVE, headers={"if-none-match": etag})
    assert changed.status_code == 200
    assert changed["ETag"] != etag
    assert "2.80, marked: best offer" in words(changed, part="")


def test_the_part_that_moves_is_the_same_on_the_page_and_alone(client, h100):
    on_offer(h100, price="2.88")
    placed_by(renter_with(USD=1000), h100, limit="2.50")
    page, alone = client.get(URL), client.get(LIVE)
    assert alone.content.decode() in page.content.decode()
    assert "<form" not in alone.content.decode()


def test_a_signed_in_page_is_never_kept_and_a_visitors_is_checked_again(client, h100):
    on_offer(h100)
    assert client.get(URL)["Cache-Control"] == "no-cache"
    member = somebody_of(renter_with())
    for path in (URL, LIVE, f"{TICKET}preview/?kind=best"):
        assert "no-store" in member.get(path)["Cache-Control"], path


def test_the_pages_need_few_queries(client, h100, django_assert_max_num_queries):
    renter = renter_with(USD=10_000, EUR=1000)
    for price in ("2.88", "2.95", "3.10"):
        on_offer(h100, price=price)
    placed_by(renter, h100, limit="2.50")
    placed_by(renter, h100, time_in_force="ioc")
    member = somebody_of(renter)
    for who in (client, member):
        for path in (URL, f"{URL}?kind=limit&price=2.60&countries=NL", LIVE, f"{TICKET}preview/?kind=best"):
            with django_assert_max_num_queries(MOST_QUERIES):
                assert who.get(path).status_code == 200
    with django_assert_max_num_queries(MOST_QUERIES):
        client.get(f"/market/{make_gpu(slug='l4').slug}/")


@pytest.mark.parametrize(
    "query",
    [
        "?kind=fixed&gpu_count=x&hours=-1&price=abc&wallet=JPY&valid=9999",
        "?gpu_count=99999999999999999999&server_count=0&price=1e9",
        "?price=2.88888&countries=ZZ&countries=%00&interconnect=rope&min_ram_gb=-4",
        "?kind=&term=&page=%F0%9F%A6%8A",
    ],
)
def test_an_address_that_asks_for_nonsense_is_the_usual_page(client, h100, query):
    on_offer(h100)
    for path in (URL, LIVE, f"{TICKET}preview/"):
        assert client.get(path + query).status_code == 200, path
    form = Form(client.get(URL + query), action=TICKET)
    assert form.fields["gpu_count"] == ["1"]
    assert form.fields["hours"] == ["24"]


def test_a_price_of_the_ladder_fills_the_ticket(client, h100):
    on_offer(h100, price="2.88")
    page = client.get(URL, {"gpu_count": "4", "hours": "7"})
    link = found_in(page, r'href="(\?[^"]*price=2.88[^"]*)#ticket"').replace("&amp;", "&")
    form = Form(client.get(URL + link), action=TICKET)
    asked = {name: form.fields[name] for name in ("kind", "price", "gpu_count", "hours")}
    assert asked == {"kind": ["limit"], "price": ["2.88"], "gpu_count": ["4"], "hours": ["7"]}


def test_a_visitor_sees_the_ticket_with_its_sum_before_tax(client, h100):
    on_offer(h100, price="2.88")
    text = words(client.get(URL, {"gpu_count": "8", "hours": "24"}))
    assert "Rent 8 × H100-SXM for 24 hours at 2.88 USD or less per GPU-hour. It fills now." in text
    assert "8 × 24 h × 2.88 552.96 At most before tax, USD 552.96" in text
    assert "Sign in and review it" in text


def test_a_renter_sees_tax_and_what_stays_available(h100):
    on_offer(h100, price="2.88")
    text = words(somebody_of(renter_with(USD=1000)).get(URL, {"gpu_count": "8", "hours": "24"}))
    assert "VAT 21%, Netherlands 116.12 Most you can pay, USD 669.08 Available after the hold 330.91" in text


@pytest.mark.parametrize(
    ("who", "said"),
    [
        ("provider", "Your organisation sells GPU-hours here, so it cannot rent them"),
        ("viewer", "Owners and traders of your organisation place orders."),
        ("operator", "Orders are placed by members of an organisation that rents."),
    ],
)
def test_who_cannot_rent_is_told_why(client, h100, who, said):
    on_offer(h100)
    person = {
        "provider": lambda: make_member(organisation=make_organisation(name="Noord", kind="provider")),
        "viewer": lambda: make_member(organisation=renter_with(), role=Role.VIEWER),
        "operator": make_operator,
    }[who]()
    client.force_login(person)
    page = client.get(URL)
    assert said in words(page)
    assert "Review the order" not in words(page)


def test_the_preview_says_what_is_wrong_and_stores_nothing(client, h100, django_assert_num_queries):
    on_offer(h100, price="2.88")
    text = words(client.get(f"{TICKET}preview/", {"kind": "limit", "gpu_count": "0", "server_count": "1"}), part="")
    assert "Fill in the ticket and see here what it means." in text
    assert "Name your price." in text
