"""The reference snapshot, and collected rows that a better source replaces."""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

import pytest

from catalog.models import Offer
from catalog.refresh import refresh_source
from tests.catalog.refreshes import AWS, HALF_AN_HOUR, LAMBDA, NOW, counts, csv, known_gpu, skypilot
from tests.factories import make_offer, make_source

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
