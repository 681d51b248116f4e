"""Prices that a refresh holds back, each with its reason."""

from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from catalog.models import Offer, SourceDocument
from tests.catalog.refreshes import AWS, HALF_AN_HOUR, NOW, counts, csv, known_gpu, on_sale, skypilot
from tests.factories import make_offer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loaded_catalogue")]


# Sanity


def h100_at(price: str, count: int = 8) -> str:
    return f"p5.48xlarge,H100,{count},192,2048,,{price},,us-east-1,use1-az1"


def verdict(instance_type: str = "p5.48xlarge") -> str:
    return Offer.objects.get(instance_type=instance_type, market="on_demand").held_back


@pytest.mark.parametrize(
    ("price", "code"),
    [("0", "zero_price"), ("0.08", "placeholder"), ("0.4", "out_of_band"), ("4000", "out_of_band"), ("55.04", "")],
)
def test_an_odd_price_is_held_back_with_its_reason(price: str, code: str):
    report = skypilot(aws=csv(h100_at(price), *AWS[2:]))
    assert verdict().partition(":")[0] == code
    assert sum(document.held_back for document in report.documents) == bool(code)
    assert SourceDocument.objects.get(key="aws").held_back == bool(code)
    assert ("p5.48xlarge", "on_demand", "us-east-1", "use1-az1") in on_sale() or code


@pytest.mark.parametrize(("count", "code"), [("1.5", "wrong_count"), ("80", "wrong_count")])
def test_a_wrong_count_is_held_back(count: str, code: str):
    skypilot(aws=csv(f"p5.48xlarge,H100,{count},192,2048,,{Decimal(count) * 7},,us-east-1,use1-az1"))
    assert verdict().startswith(code)


def test_a_count_of_nothing_cannot_be_filed_and_is_counted():
    report = skypilot(aws=csv(*AWS, "p5.4xlarge,H100,0,16,256,,6.88,,us-east-1,use1-az1"))
    assert sum(document.held_back for document in report.documents) == 1
    assert not Offer.objects.filter(instance_type="p5.4xlarge").exists()


def test_a_count_against_the_instance_name_is_held_back():
    skypilot(**{"lambda": csv("gpu_8x_h100_sxm5,H100,4,208,1800,,16.0,,us-east-1,")})
    assert verdict("gpu_8x_h100_sxm5") == "wrong_count: the instance name says 8 GPUs, the source 4"


def test_spot_above_on_demand_of_the_same_machine_is_held_back():
    skypilot(aws=csv(AWS[0].replace(",20.0,", ",56.0,"), AWS[1].replace(",22.0,", ",55.04,")))
    held = {offer.zone: offer.held_back for offer in Offer.objects.filter(market="spot")}
    assert held["use1-az1"].startswith("spot_above_on_demand: 56 against 55.04")
    assert held["use1-az2"] == ""


def test_the_median_of_thirty_days_decides_where_five_prices_are_known():
    for number, price in enumerate(("6", "7", "8", "9", "10")):
        make_offer(gpu=known_gpu("h100-sxm"), price=price, cloud=f"cloud-{number}", observed_at=NOW)
    skypilot(aws=csv(h100_at("320.01"), *AWS[2:]))
    assert verdict() == (
        "out_of_band: 40.00125 USD per GPU-hour is outside 0.2 to 5 times 8, the median of 5 prices of 30 days"
    )
    skypilot(NOW + HALF_AN_HOUR, aws=csv(h100_at("320"), *AWS[2:]))
    assert verdict() == ""


@pytest.mark.parametrize(
    "values",
    [
        {"observed_at": NOW - timedelta(days=31)},
        {"priced_on": date(2026, 1, 1), "observed_at": NOW},
        {"is_list": True, "observed_at": NOW},
        {"held_back": "out_of_band: ...", "observed_at": NOW},
        {"is_whole": False, "observed_at": NOW},
        {"market": "spot", "observed_at": NOW},
        {"instance_type": "one-machine", "cloud": "lambda", "observed_at": NOW},
    ],
)
def test_old_listed_held_back_sliced_other_market_and_repeated_prices_make_no_median(values: Mapping[str, Any]):
    for number in range(5):
        place: dict[str, Any] = {"cloud": f"cloud-{number}", "region": f"r{number}", **values}
        make_offer(gpu=known_gpu("h100-sxm"), price="100", **place)
    skypilot(aws=csv(*AWS))
    assert verdict() == ""


def test_a_file_whose_prices_all_jump_is_held_back():
    rows = [f"Standard_NC{n}as_T4_v3,T4,1,4,28,T4,{{}},,eastus," for n in (4, 8, 16)]
    more = ["Standard_NC4as_T4_v3,T4,1,4,28,T4,{},,westus,", "Standard_NC64as_T4_v3,T4,4,64,440,T4,{},,eastus,"]
    skypilot(azure=csv(*(row.format("0.6") for row in rows + more)), scp=csv("g1v1,T4,1,8,64,T4,0.5,,KOREA-1,"))
    skypilot(NOW + HALF_AN_HOUR, azure=csv(*(row.format("6.0") for row in rows + more)))
    held = Offer.objects.filter(document__key="azure", gone_at=None).exclude(held_back="")
    assert held.count() >= 4


def test_a_verdict_stands_while_the_content_stands():
    skypilot(aws=csv(h100_at("160"), *AWS[2:]))
    for number in range(5):
        make_offer(gpu=known_gpu("h100-sxm"), price="2", cloud=f"cloud-{number}", observed_at=NOW)
    assert counts(skypilot(NOW + HALF_AN_HOUR, aws=csv(h100_at("160"), *AWS[2:]))) == (0, 0, 0)
    assert verdict() == ""
    skypilot(NOW + 2 * HALF_AN_HOUR, aws=csv(h100_at("160"), *AWS[2:], "g6.xlarge,L4,1,4,16,,0.80,,us-east-1,a"))
    assert verdict().startswith("out_of_band")


def test_a_price_without_any_median_is_shown_and_counted():
    skypilot(aws=csv("p2.xlarge,K80,1,4,61,,0.90,,us-east-1,use1-az1", *AWS))
    assert verdict("p2.xlarge") == ""
    assert SourceDocument.objects.get(key="aws").band_skipped == 1
