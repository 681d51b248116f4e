"""`/providers/`: what selling takes and brings, by real prices, without a script; and who is sent there from where."""

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketplace.earnings_estimate import MOST_GPUS, UTILISATIONS, Lent, at_price
from marketplace.queries.earnings import fills_of_30_days
from tests.factories import make_best_ask, make_gpu, make_live_offer
from tests.marketplace.companies import make_company
from tests.marketplace.on_pages import just_now, on_offer, placed_by, renter_with, somebody_of, words

PAGE = "/providers/"
MOST_QUERIES = 12


def sold(gpu, *prices: str) -> None:
    """Sell one GPU at each of these prices, just now."""
    renter = renter_with(USD=1000)
    for price in prices:
        on_offer(gpu, price=price, devices=1)
        placed_by(renter, gpu, limit=price, confirm_price=True)


# --- The sum: pure -----------------------------------------------------------------------------------------


@given(
    price=st.decimals(min_value="0.0001", max_value="100", places=4),
    gpus=st.integers(1, MOST_GPUS),
    percent=st.sampled_from(UTILISATIONS),
    fee=st.integers(0, 100),
)
def test_net_is_fee_and_payable_and_grows_with_the_time_rented(price, gpus, percent, fee):
    brought = at_price(price, Lent(gpu_count=gpus, utilisation_percent=percent, fee_percent=Decimal(fee)))
    assert brought.net_micros == brought.fee_micros + brought.payable_micros
    assert 0 <= brought.fee_micros <= brought.net_micros
    assert abs(brought.net_micros - price * 1_000_000 * gpus * 720 * percent / 100) <= 1
    more = at_price(price, Lent(gpu_count=gpus, utilisation_percent=90, fee_percent=Decimal(fee)))
    assert more.net_micros >= brought.net_micros


def test_nobody_can_choose_to_be_rented_all_the_time():
    assert max(UTILISATIONS) < 100


# --- The page ----------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_the_page_says_who_can_join_the_steps_the_requirements_and_the_fee(client, settings):
    settings.PROVIDER_FEE_PERCENT = Decimal("12.5")
    make_gpu()
    text = words(client.get(PAGE))
    for said in (
        "Who can join: companies",
        "a fee of 12.5 %",
        "Apply",
        "Add servers",
        "Name your price",
        "Sell and earn",
        "at least one every 60 seconds",
        "answers within 10 minutes",
        "After 5 minutes of silence",
        "Payouts are not built yet, and we name no date for them.",
    ):
        assert said in text
    html = client.get(PAGE).content.decode()
    assert html.count("<details>") == 8
    for link in ("/provider/", "/provider/terms/", "/account/sign-up/"):
        assert f'href="{link}"' in html


@pytest.mark.django_db
def test_the_calculator_counts_with_the_fills_of_30_days_the_best_offer_and_the_fee(
    client, django_assert_max_num_queries
):
    gpu = make_gpu()
    sold(gpu, "2.00", "2.00", "3.00", "4.00")
    on_offer(gpu, price="5.00")
    make_live_offer(gpu=gpu, price="6.00")
    with django_assert_max_num_queries(MOST_QUERIES):
        page = client.get(PAGE, {"gpu": "h100-sxm", "gpus": "8", "utilisation": "50"})
    text = words(page)
    assert "8 × H100-SXM, rented 50 % of the time: about 5,184.00 USD in 30 days, after our fee." in text
    assert "lower quarter of trades 2.00 5,760.00 576.00 5,184.00" in text
    assert "upper quarter of trades 3.00 8,640.00 864.00 7,776.00" in text
    assert "best offer now 5.00 14,400.00 1,440.00 12,960.00" in text
    assert "median at other clouds to compare: nobody has paid it here 6.00" in text
    assert "2880 GPU-hours." in text
    assert "Trades: 4 GPUs that were sold here in the last 30 days." in text


@pytest.mark.django_db
def test_trades_older_than_30_days_do_not_count():
    gpu = make_gpu()
    sold(gpu, "2.00")
    assert fills_of_30_days(gpu.pk, now=just_now() + timedelta(days=29)).median == Decimal("2.00")
    assert fills_of_30_days(gpu.pk, now=just_now() + timedelta(days=31)) is None


@pytest.mark.django_db
def test_where_nothing_was_sold_and_nothing_is_offered_no_sum_is_named(client):
    gpu = make_gpu()
    text = words(client.get(PAGE))
    assert "so we name no sum" in text
    assert "in 30 days, after our fee" not in text
    make_live_offer(gpu=gpu, price="6.00")
    text = words(client.get(PAGE))
    assert "so we name no sum" in text, "what others ask is no promise of ours"
    assert "median at other clouds" in text


@pytest.mark.django_db
def test_without_a_trade_the_best_offer_is_the_answer(client):
    make_best_ask(gpu=make_gpu(), price="2.50")
    assert "about 6,480.00 USD" in words(client.get(PAGE))


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("gpu", "made-up"),
        ("gpu", ""),
        ("gpus", "0"),
        ("gpus", "-1"),
        ("gpus", "1025"),
        ("gpus", "8.5"),
        ("gpus", "eight"),
        ("gpus", "9" * 400),
        ("utilisation", "100"),
        ("utilisation", "x\x00"),
    ],
)
def test_a_wrong_field_is_told_at_the_field_and_on_top_and_nothing_is_counted(client, field, text):
    make_best_ask(gpu=make_gpu(), price="2.50")
    page = client.get(PAGE, {field: text})
    assert page.status_code == 200
    assert f'id="id_{field}_error"' in page.content.decode()
    assert "One thing to correct" in words(page)
    assert "in 30 days, after our fee" not in words(page)


@pytest.mark.django_db
def test_the_page_opens_with_an_empty_catalogue(client):
    assert client.get(PAGE).status_code == 200


@pytest.mark.django_db
@pytest.mark.parametrize("language", ["/nl", "/pl"])
def test_the_page_exists_in_every_language(client, language):
    make_gpu()
    answer = client.get(f"{language}{PAGE}")
    assert answer.status_code == 200
    assert f'lang="{language[1:]}"' in answer.content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/", "/market/", "/market/h100-sxm/", "/use-cases/llm-training/"])
def test_other_pages_lead_here(client, path):
    make_gpu()
    assert 'href="/providers/' in client.get(path).content.decode()


# --- What was paid, for renters; the masthead ------------------------------------------------------------------


@pytest.mark.django_db
def test_renters_see_at_which_prices_a_gpu_went_in_30_days(client):
    gpu = make_gpu()
    sold(gpu, "2.00", "2.00", "3.00", "4.00")
    text = words(client.get("/market/h100-sxm/"))
    assert "Paid in the last 30 days" in text
    assert "2.00 2.00 2.00 3.00 4.00 4 Half of the GPUs went at 2.00 USD or less." in text


@pytest.mark.django_db
def test_a_market_without_a_trade_says_so(client):
    make_gpu()
    assert "Paid in the last 30 days Nothing was traded in this market." in words(client.get("/market/h100-sxm/"))


@pytest.mark.django_db
def test_the_masthead_leads_each_where_they_work(client):
    seller = somebody_of(make_company())
    assert 'href="/provider/" aria-current="page"' in seller.get("/provider/").content.decode()
    assert 'href="/provider/" aria-current="true"' in seller.get("/provider/servers/").content.decode()
    masthead = words(seller.get("/"), part="header")
    assert "Provider" in masthead
    assert "Orders" not in masthead
    assert "Orders" in words(somebody_of(renter_with()).get("/"), part="header")
    assert "Provider" not in words(client.get("/"), part="header")
