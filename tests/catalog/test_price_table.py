"""Which price a GPU shows, and how its statistics are counted."""

from datetime import timedelta
from decimal import Decimal

import pytest

from catalog.freshness import Freshness
from catalog.models import Offer
from catalog.queries import offers_of_gpu, price_table, source_states
from tests.factories import (
    NOW,
    make_best_ask,
    make_document,
    make_gpu,
    make_list_offer,
    make_offer,
    make_source,
    make_unmapped,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def gpu():
    return make_gpu()


def prices_of(gpu):
    return price_table(now=NOW, gpu_slugs=[gpu.slug])[gpu.slug]


def test_the_best_ask_comes_before_any_price_elsewhere(gpu):
    make_offer(gpu=gpu, price="1.00")
    make_best_ask(gpu=gpu, price="2.88", devices=16)
    prices = prices_of(gpu)
    assert prices.headline.kind == "exchange"
    assert prices.headline.price_usd_per_gpu_hour == Decimal("2.88")
    assert (prices.headline.cloud_slug, prices.headline.cloud_name) == (None, None)
    assert prices.exchange.devices_available == 16


def test_the_lowest_live_on_demand_price_comes_before_a_cheaper_list_price(gpu):
    make_list_offer(gpu=gpu, price="1.00", cloud="vast")
    make_offer(gpu=gpu, price="3.10", cloud="azure")
    make_offer(gpu=gpu, price="2.90", cloud="lambda")
    headline = prices_of(gpu).headline
    assert (headline.kind, headline.cloud_slug, headline.freshness) == ("on_demand", "lambda", Freshness.FRESH)
    assert headline.is_live


def test_a_list_price_is_last_and_never_live(gpu):
    offer = make_list_offer(gpu=gpu, price="3.99", cloud="azure")
    headline = prices_of(gpu).headline
    assert (headline.kind, headline.priced_on, headline.freshness) == ("list", offer.priced_on, Freshness.LIST)
    assert not headline.is_live
    assert prices_of(gpu).elsewhere["on_demand"] is None


def test_spot_and_reserved_prices_never_become_the_headline(gpu):
    make_offer(gpu=gpu, price="0.90", market="spot")
    make_offer(gpu=gpu, price="1.90", market="reserved", term_months=12)
    make_list_offer(gpu=gpu, price="0.50", market="spot")
    prices = prices_of(gpu)
    assert prices.headline is None
    assert prices.elsewhere["spot"].min == Decimal("0.90")
    assert prices.elsewhere["reserved"].min == Decimal("1.90")
    assert prices.elsewhere["list"] is None


@pytest.mark.parametrize(
    "left_out",
    [
        {"observed_at": NOW - timedelta(hours=12)},
        {"priced_on": (NOW - timedelta(days=15)).date(), "market": "spot"},
        {"gone_at": NOW},
        {"held_back": "a zero"},
        {"hidden_by_direct": True},
        {"verified": False},
        {"is_whole": False, "gpu_count": "0.5"},
    ],
    ids=["old", "dated", "gone", "held back", "replaced", "unverified", "slice"],
)
def test_an_offer_that_is_not_eligible_counts_nowhere(gpu, left_out):
    make_offer(gpu=gpu, price="0.10", **left_out)
    prices = prices_of(gpu)
    assert prices.headline is None
    assert not any(prices.elsewhere.values())


def test_a_cloud_with_many_regions_counts_once_with_its_lowest_price(gpu):
    for number in range(5):
        make_offer(gpu=gpu, price=Decimal(4) + number, cloud="azure", region=f"eu-{number}")
    make_offer(gpu=gpu, price="2.00", cloud="lambda")
    make_offer(gpu=gpu, price="3.00", cloud="vast")
    stats = prices_of(gpu).elsewhere["on_demand"]
    assert (stats.min, stats.median, stats.offers) == (Decimal(2), Decimal(3), 3)
    assert (stats.p25, stats.p75) == (Decimal("2.5"), Decimal("3.5"))


def test_live_and_list_prices_never_mix(gpu):
    make_offer(gpu=gpu, price="2.00", cloud="lambda")
    make_list_offer(gpu=gpu, price="9.00", cloud="azure")
    elsewhere = prices_of(gpu).elsewhere
    assert elsewhere["on_demand"].offers == elsewhere["list"].offers == 1
    assert elsewhere["list"].min == Decimal("9.00")


def test_every_gpu_asked_for_is_answered_also_without_a_price(gpu):
    other = make_gpu(slug="b300")
    assert set(price_table(now=NOW)) == {gpu.slug, other.slug}
    assert price_table(now=NOW)["b300"].headline is None


def test_the_whole_table_takes_four_queries(gpu, django_assert_num_queries):
    make_offer(gpu=gpu, price="2.00")
    make_best_ask(gpu=gpu, price="2.00")
    with django_assert_num_queries(4):
        price_table(now=NOW)


def test_equal_prices_show_the_newest_reading(gpu):
    make_offer(gpu=gpu, price="2.00", observed_at=NOW - timedelta(hours=3), region="eu-1")
    make_offer(gpu=gpu, price="2.00", observed_at=NOW - timedelta(minutes=3), region="eu-2")
    assert prices_of(gpu).headline.observed_at == NOW - timedelta(minutes=3)


def test_the_offers_of_a_gpu_stand_in_tiers_and_stale_ones_are_left_out(gpu):
    live = make_offer(gpu=gpu, price="2.00")
    warned = make_offer(gpu=gpu, price="1.90", observed_at=NOW - timedelta(hours=3))
    old = make_offer(gpu=gpu, price="1.00", observed_at=NOW - timedelta(hours=13))
    dated = make_list_offer(gpu=gpu, price="0.50")
    make_offer(gpu=gpu, price="0.40", observed_at=NOW - timedelta(hours=25))
    offers = offers_of_gpu(gpu=gpu, now=NOW)
    assert [line.offer for line in offers.live.lines] == [warned, live]
    assert [line.freshness for line in offers.live.lines] == [Freshness.WARNED, Freshness.FRESH]
    assert [line.offer for line in offers.old.lines] == [old]
    assert [line.offer for line in offers.dated.lines] == [dated]


def test_an_instance_in_many_places_is_one_line_at_its_cheapest_place(gpu):
    for number in range(3):
        make_offer(gpu=gpu, price=Decimal(3) - number, instance_type="p5", region=f"eu-{number}")
    tier = offers_of_gpu(gpu=gpu, now=NOW).live
    assert tier.total == 1
    assert (tier.lines[0].offer.price_usd_per_gpu_hour, tier.lines[0].places) == (Decimal(1), 3)


def test_a_source_says_what_it_offers_what_it_holds_back_and_what_stays_unclear(gpu):
    source = make_source()
    make_document(source=source, unmapped=4, band_skipped=2)
    make_offer(gpu=gpu, price="2.00", source=source)
    for number in range(7):
        make_offer(gpu=gpu, price="0.00", source=source, held_back="a zero", instance_type=f"z{number}")
    make_offer(gpu=gpu, price="2.00", source=source, gone_at=NOW, instance_type="gone")
    make_unmapped(source=source)
    (state,) = source_states()
    assert (state.offers, state.held_back, state.unmapped, state.band_skipped) == (1, 7, 4, 2)
    assert len(state.held_back_examples) == 5
    assert state.unmapped_examples[0].gpu_name == "A100"


def test_a_source_without_rows_is_listed_with_zeros():
    make_source(name="new", state="never")
    (state,) = source_states()
    assert (state.offers, state.held_back, list(state.held_back_examples)) == (0, 0, [])
    assert Offer.objects.count() == 0
