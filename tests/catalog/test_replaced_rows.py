"""The reference snapshot, and collected rows that a better source replaces."""

from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from catalog.models import Offer
from catalog.refresh import refresh_source
from catalog.refresh.replaced_rows import hide_replaced_rows
from tests.catalog.refreshes import AWS, HALF_AN_HOUR, LAMBDA, NOW, counts, csv, known_gpu, skypilot
from tests.factories import make_document, make_offer, make_source

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loaded_catalogue")]


# The reference snapshot, and rows that a better source replaces


def test_the_reference_snapshot_is_read_from_the_repository_and_stays_a_list_price():
    report = refresh_source(source_name="reference", now=NOW)
    assert "0 held back, 0 unmapped" in report.line
    assert Offer.objects.count() == Offer.objects.dated(NOW).count() > 100
    assert set(Offer.objects.values_list("hidden_by_direct", flat=True)) == {False}
    assert counts(refresh_source(source_name="reference", now=NOW + HALF_AN_HOUR), "reference-prices") == (0, 0, 0)


def direct_offer(cloud: str, **values: Any) -> Offer:
    source = make_source(name=f"{cloud}-direct", is_collector=False)
    return make_offer(gpu=known_gpu("l40s"), price="1.80", cloud=cloud, source=source, **{"observed_at": NOW, **values})


def test_a_fresh_direct_source_replaces_the_clouds_collected_rows():
    direct_offer("aws")
    skypilot(aws=csv(*AWS), **{"lambda": csv(*LAMBDA)})
    hidden = set(Offer.objects.filter(hidden_by_direct=True).values_list("cloud__slug", flat=True))
    assert hidden == {"aws"}
    assert Offer.objects.on_sale().filter(cloud__slug="aws").get().source.name == "aws-direct"


@pytest.mark.parametrize(
    "values",
    [
        {"observed_at": NOW - timedelta(hours=12)},
        {"priced_on": date(2026, 11, 1)},
        {"is_list": True},
        {"held_back": "out_of_band: ..."},
        {"gone_at": NOW},
    ],
)
def test_a_direct_source_that_is_not_live_replaces_nothing(values: Mapping[str, Any]):
    direct_offer("aws", **values)
    skypilot(aws=csv(*AWS))
    assert not Offer.objects.filter(hidden_by_direct=True).exists()


def test_collected_rows_come_back_when_the_direct_source_grows_old():
    direct_offer("aws")
    skypilot(aws=csv(*AWS))
    skypilot(NOW + timedelta(hours=13), aws=csv(*AWS))
    assert not Offer.objects.filter(hidden_by_direct=True).exists()


def test_a_clouds_own_file_replaces_what_aggregators_resell_of_the_same_gpu():
    resold = [f"datacrunch__1x{name}__1__1,{name},1,1,1,,1.4,,FI," for name in ("L40S", "A6000")]
    skypilot(primeintellect=csv(*resold), verda=csv("1L40S.1V,L40S,1,1,1,,1.5,,FIN-01,"))
    assert {offer.instance_type for offer in Offer.objects.filter(hidden_by_direct=True)} == {
        "datacrunch__1xL40S__1__1"
    }


# Several collectors


def collected(source_name: str, cloud: str, price: str = "2.00", **values: Any) -> Offer:
    """An L40S of `cloud` as a collector lists it, its document called as the source calls it."""
    document = make_document(
        source=make_source(name=source_name, is_collector=True), key=values.pop("key", source_name)
    )
    facts = {"observed_at": NOW, "instance_type": "1x_l40s", **values}
    offer = make_offer(gpu=known_gpu("l40s"), price=price, cloud=cloud, source=document.source, **facts)
    Offer.objects.filter(pk=offer.pk).update(document=document)
    return offer


def shown() -> set[tuple[str, str]]:
    return set(Offer.objects.on_sale().values_list("source__name", "cloud__slug"))


def test_a_fresh_direct_source_replaces_the_cloud_at_every_collector_and_no_other_cloud(shared_data: Path):
    feeds = shared_data / "feeds"
    skypilot(**{"lambda": csv(*LAMBDA)}, shadeform=csv("nebius_L40S,L40S,1.0,8,32,,1.9,,eu-north1,"))
    for name in ("shadeform", "primeintellect"):
        refresh_source(source_name=name, now=NOW, from_path=feeds / f"{name}.json")
    assert {("skypilot", "lambda"), ("shadeform", "nebius")} <= shown()
    for name in ("lambda", "verda_instance_types"):
        source_name = name.partition("_")[0]
        refresh_source(source_name=source_name, now=NOW, from_path=feeds / f"{name}.json")
    left = shown()
    assert {source for source, cloud in left if cloud in {"lambda", "verda"}} == {"lambda", "verda"}
    assert {("shadeform", "nebius"), ("shadeform", "hyperstack"), ("primeintellect", "hyperstack")} <= left


def test_one_machine_at_two_aggregators_is_shown_once_at_the_lower_price():
    collected("shadeform", "hyperstack", "2.10")
    collected("primeintellect", "hyperstack", "2.00", instance_type="1X_L40S", region="elsewhere")
    hide_replaced_rows(NOW)
    assert shown() == {("primeintellect", "hyperstack")}


def test_of_one_machine_at_two_aggregators_the_one_in_stock_is_shown():
    collected("shadeform", "hyperstack", "2.10", availability="yes")
    collected("primeintellect", "hyperstack", "2.00", availability="no")
    hide_replaced_rows(NOW)
    assert shown() == {("shadeform", "hyperstack")}


@pytest.mark.parametrize(
    "other",
    [
        {"instance_type": "2x_l40s", "gpu_count": 2},
        {"instance_type": "1x_l40s_ib"},
        {"market": "spot"},
        {"observed_at": NOW - timedelta(hours=12)},
        {"held_back": "out_of_band: ..."},
        {"is_list": True},
    ],
)
def test_another_machine_and_one_that_is_not_live_hide_nothing(other: Mapping[str, Any]):
    first = collected("shadeform", "hyperstack", "2.10")
    collected("primeintellect", "hyperstack", "2.00", **other)
    hide_replaced_rows(NOW)
    first.refresh_from_db()
    assert not first.hidden_by_direct


def test_a_machine_in_two_regions_of_one_aggregator_stays_in_both():
    collected("shadeform", "hyperstack", "2.10", region="oslo-norway-1")
    collected("shadeform", "hyperstack", "2.00", region="montreal-canada-2")
    hide_replaced_rows(NOW)
    assert Offer.objects.on_sale().count() == 2


def test_a_collectors_copy_of_an_aggregator_that_is_read_itself_is_hidden_while_that_is_fresh():
    copy = collected("skypilot", "crusoe", "1.50", key="shadeform", instance_type="crusoe_L40S")
    own = collected("shadeform", "hyperstack", "2.10")
    hide_replaced_rows(NOW)
    assert shown() == {("shadeform", "hyperstack")}
    Offer.objects.filter(pk=own.pk).update(observed_at=NOW - timedelta(hours=12))
    hide_replaced_rows(NOW)
    copy.refresh_from_db()
    assert not copy.hidden_by_direct


def test_an_aggregators_own_machines_are_not_hidden_by_a_copy_of_its_list():
    collected("skypilot", "primeintellect", "1.50", key="primeintellect")
    collected("primeintellect", "primeintellect", "2.00")
    collected("shadeform", "primeintellect", "1.00")
    hide_replaced_rows(NOW)
    assert shown() == {("primeintellect", "primeintellect")}
