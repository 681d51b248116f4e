"""Every filter of offers against the same rule in plain Python, alone and together; and the counts of what each removes."""

from datetime import timedelta
from decimal import Decimal
from itertools import cycle, islice
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog.compare.filters import FILTERS, PRECISIONS, asks_where, count_removed, offers_where
from catalog.compare.presets import PRESETS, with_preset
from catalog.freshness import Freshness, freshness
from catalog.models import BestAsk, Cloud, Offer
from tests.factories import NOW, make_best_ask, make_cloud, make_gpu, make_offer, make_source

pytestmark = pytest.mark.django_db
SLOW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

GPUS: list[dict[str, Any]] = [
    {
        "slug": "h100",
        "interconnect": "NVLink 4 + NVSwitch; PCIe Gen5",
        "fp64_tflops": Decimal(34),
        "fp8_dense_tflops": Decimal(1979),
    },
    {
        "slug": "mi300x",
        "vendor": "AMD",
        "memory_gb": Decimal(192),
        "interconnect": "Infinity Fabric",
        "rt_cores": False,
    },
    {
        "slug": "l4",
        "memory_gb": Decimal(24),
        "memory_bandwidth_gb_s": None,
        "rt_cores": True,
        "bf16_dense_tflops": None,
    },
    {
        "slug": "t4",
        "memory_gb": Decimal(16),
        "memory_bandwidth_gb_s": Decimal(320),
        "fp64_tflops": Decimal(0),
        "tf32_dense_tflops": Decimal(1),
    },
]
CLOUDS: list[dict[str, Any]] = [
    {"slug": "unknown"},
    {
        "slug": "second",
        "billing_step_seconds": 1,
        "minimum_seconds": 60,
        "egress_usd_per_gb": Decimal(0),
        "persistent_volumes": True,
        "volume_survives_stop": True,
        "multi_node": True,
        "fabric": "InfiniBand, 400 Gb/s",
        "spot_notice_seconds": 120,
        "storage_mib_s": Decimal(125),
    },
    {
        "slug": "hour",
        "billing_step_seconds": 3600,
        "minimum_seconds": 3600,
        "egress_usd_per_gb": Decimal("0.09"),
        "persistent_volumes": False,
        "volume_survives_stop": False,
        "multi_node": False,
        "fabric": "Ethernet",
        "spot_notice_seconds": 0,
    },
]


@pytest.fixture
def rows():
    """Offers whose columns go round in cycles of coprime lengths, so that combinations differ; and asks of ours."""
    gpus = [make_gpu(**values) for values in GPUS]
    clouds = [make_cloud(**values) for values in CLOUDS]
    sources = [make_source(name=name) for name in ("skypilot", "vast")]
    columns: dict[str, list[Any]] = {
        "gpu": gpus,
        "cloud": [cloud.slug for cloud in clouds],
        "source": [*sources, sources[0], sources[1], sources[0]],
        "price": ["0.40", "1.00", "2.00", "2.00", "3.50", "9.99", "2.50"],
        "gpu_count": ["1", "8", "0.5", "2", "4"],
        "market": ["on_demand", "spot", "on_demand", "reserved", "spot", "on_demand", "reserved"],
        "term": [1, 12, None],
        "country": ["NL", "US", "", "DE", "NL", "US", "", "PL", "FI", "US", "NL"],
        "region": ["eu-1", "us-1", ""],
        "interconnect": ["", "NVLink 3", "", "PCIe", "", "", "InfiniBand"],
        "billing_step_seconds": [None, 60, None, 1, 3600],
        "availability": ["yes", "low", "no", "unknown"],
        "age": [1, 3, 13, 25, 0.5, 11.9],
        "priced_days": [None, 3, 15, None, 14],
        "is_list": [False, False, True],
        "gone": [None, None, None, None, None, None, None, NOW],
    }
    for values in islice(zip(*(cycle(column) for column in columns.values()), strict=False), 90):
        row = dict(zip(columns, values, strict=True))
        term, age, days, gone = row.pop("term"), row.pop("age"), row.pop("priced_days"), row.pop("gone")
        make_offer(
            **row,
            term_months=term if row["market"] == "reserved" else None,
            observed_at=NOW - timedelta(hours=age),
            priced_on=None if days is None else (NOW - timedelta(days=days)).date(),
            gone_at=gone,
        )
    for gpu, price, age in zip(gpus, ("2.88", "4.16", "0.70", "0.35"), (0.1, 5, 20, 40), strict=True):
        make_best_ask(gpu=gpu, price=price, observed_at=NOW - timedelta(hours=age))


def some_of(*options: str) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(options), min_size=1, max_size=3, unique=True).map(tuple)


ANSWER = st.sampled_from(["true", "false"])
VALUES = {
    "gpu": some_of("h100", "mi300x", "l4", "t4"),
    "vendor": some_of("NVIDIA", "AMD"),
    "cloud": some_of("unknown", "second", "hour"),
    "source": some_of("skypilot", "vast"),
    "market": some_of("on_demand", "spot", "reserved"),
    "term_months": st.sampled_from([1, 12, 36]),
    "country": some_of("NL", "US", "DE", "FR"),
    "region": some_of("eu-1", "us-1"),
    "min_gpus": st.integers(1, 9),
    "max_gpus": st.integers(1, 9),
    "min_memory_gb": st.sampled_from([Decimal(0), Decimal(24), Decimal(80), Decimal(200)]),
    "min_total_memory_gb": st.sampled_from([Decimal(0), Decimal(12), Decimal(160), Decimal(640)]),
    "min_memory_bandwidth_gb_s": st.sampled_from([Decimal(0), Decimal(320), Decimal(321), Decimal(4000)]),
    "min_fp64_tflops": st.sampled_from([Decimal(0), Decimal(1), Decimal(34)]),
    "precision": some_of(*PRECISIONS),
    "rt_cores": ANSWER,
    "interconnect": some_of("nvlink", "PCIe", "infinity", "xe"),
    "multi_node": ANSWER,
    "fabric": some_of("infiniband", "ether", "efa"),
    "billing_step_max_seconds": st.sampled_from([1, 60, 3600]),
    "minimum_time_max_seconds": st.sampled_from([0, 60, 3600]),
    "persistent_volumes": ANSWER,
    "volume_survives_stop": ANSWER,
    "min_spot_notice_seconds": st.sampled_from([0, 30, 121]),
    "min_storage_mib_s": st.sampled_from([Decimal(0), Decimal(125), Decimal(126)]),
    "max_egress_usd_per_gb": st.sampled_from([Decimal(0), Decimal("0.05"), Decimal("0.09")]),
    "availability": some_of("yes", "low", "no", "unknown"),
    "freshness": some_of(*(tier.value for tier in Freshness)),
    "max_price_usd_per_gpu_hour": st.sampled_from([Decimal("0.40"), Decimal(2), Decimal("2.5"), Decimal(100)]),
}
WANTED = st.fixed_dictionaries({}, optional=VALUES)


def at_least(value, least) -> bool:
    return value is not None and value >= least


def at_most(value, most) -> bool:
    return value is not None and value <= most


def has_part(text: str, parts) -> bool:
    return any(part.lower() in text.lower() for part in parts)


def answers(value: bool | None, wanted: str) -> bool:
    return value is not None and value == (wanted == "true")


def meets(name: str, wanted, offer: Offer) -> bool:
    """The rules, in plain words."""
    gpu, cloud = offer.gpu, offer.cloud
    step = cloud.billing_step_seconds if offer.billing_step_seconds is None else offer.billing_step_seconds
    tier = freshness(observed_at=offer.observed_at, priced_on=offer.priced_on, is_list=offer.is_list, now=NOW)
    return {
        "gpu": lambda: gpu.slug in wanted,
        "vendor": lambda: gpu.vendor in wanted,
        "cloud": lambda: cloud.slug in wanted,
        "source": lambda: offer.source.name in wanted,
        "market": lambda: offer.market in wanted,
        "term_months": lambda: offer.term_months == wanted,
        "country": lambda: offer.country in wanted,
        "region": lambda: offer.region in wanted,
        "min_gpus": lambda: offer.gpu_count >= wanted,
        "max_gpus": lambda: offer.gpu_count <= wanted,
        "min_memory_gb": lambda: gpu.memory_gb >= wanted,
        "min_total_memory_gb": lambda: gpu.memory_gb * offer.gpu_count >= wanted,
        "min_memory_bandwidth_gb_s": lambda: at_least(gpu.memory_bandwidth_gb_s, wanted),
        "min_fp64_tflops": lambda: at_least(gpu.fp64_tflops, wanted),
        "precision": lambda: all(getattr(gpu, PRECISIONS[each]) for each in wanted),
        "rt_cores": lambda: answers(gpu.rt_cores, wanted),
        "interconnect": lambda: has_part(offer.interconnect or gpu.interconnect, wanted),
        "multi_node": lambda: answers(cloud.multi_node, wanted),
        "fabric": lambda: has_part(cloud.fabric, wanted),
        "billing_step_max_seconds": lambda: at_most(step, wanted),
        "minimum_time_max_seconds": lambda: at_most(cloud.minimum_seconds, wanted),
        "persistent_volumes": lambda: answers(cloud.persistent_volumes, wanted),
        "volume_survives_stop": lambda: answers(cloud.volume_survives_stop, wanted),
        "min_spot_notice_seconds": lambda: at_least(cloud.spot_notice_seconds, wanted),
        "min_storage_mib_s": lambda: at_least(cloud.storage_mib_s, wanted),
        "max_egress_usd_per_gb": lambda: at_most(cloud.egress_usd_per_gb, wanted),
        "availability": lambda: offer.availability in wanted,
        "freshness": lambda: tier.value in wanted,
        "max_price_usd_per_gpu_hour": lambda: offer.price_usd_per_gpu_hour <= wanted,
    }[name]()


def ask_meets(name: str, wanted, ask: BestAsk) -> bool:
    """The same for an ask: one whole device, on demand, billed by the second, nothing else charged, nothing kept."""
    stands_for = Offer(
        gpu=ask.gpu,
        cloud=Cloud(
            minimum_seconds=0, egress_usd_per_gb=Decimal(0), persistent_volumes=False, volume_survives_stop=False
        ),
        source=make_source(),
        market="on_demand",
        gpu_count=Decimal(1),
        billing_step_seconds=1,
        availability="yes",
        price_usd_per_gpu_hour=ask.price_usd_per_gpu_hour,
        observed_at=ask.observed_at,
    )
    return name not in ("cloud", "source", "country", "region") and meets(name, wanted, stands_for)


def test_the_rules_are_written_here_for_every_filter():
    assert set(VALUES) == {each.name for each in FILTERS}


def tiers_shown(wanted):
    return {"freshness": ("fresh", "warned", "old", "list"), **wanted}


@SLOW
@given(wanted=WANTED)
def test_offers_are_those_that_meet_every_filter(rows, wanted):
    on_sale = Offer.objects.on_sale().select_related("gpu", "cloud", "source")
    expected = {o.pk for o in on_sale if all(meets(name, value, o) for name, value in tiers_shown(wanted).items())}
    assert {offer.pk for offer in offers_where(wanted, now=NOW)} == expected


@pytest.mark.parametrize("name", VALUES)
@settings(SLOW, max_examples=8)
@given(data=st.data())
def test_one_filter_alone_does_what_it_says(rows, name, data):
    wanted = {name: data.draw(VALUES[name])}
    on_sale = Offer.objects.on_sale().select_related("gpu", "cloud", "source")
    expected = {o.pk for o in on_sale if all(meets(each, value, o) for each, value in tiers_shown(wanted).items())}
    assert {offer.pk for offer in offers_where(wanted, now=NOW)} == expected


@SLOW
@given(wanted=WANTED)
def test_our_asks_are_those_that_meet_every_filter_and_no_age_hides_one_unasked(rows, wanted):
    asks = BestAsk.objects.select_related("gpu")
    expected = {ask.pk for ask in asks if all(ask_meets(name, value, ask) for name, value in wanted.items())}
    assert {ask.pk for ask in asks_where(wanted, now=NOW)} == expected


@SLOW
@given(wanted=WANTED)
def test_the_counts_are_of_offers_that_miss_one_filter_alone(rows, wanted):
    on_sale = list(Offer.objects.on_sale().select_related("gpu", "cloud", "source"))
    missed = [
        {name for name, value in tiers_shown(wanted).items() if not meets(name, value, offer)} for offer in on_sale
    ]
    removed = count_removed(wanted, now=NOW)
    assert removed.total == len(on_sale)
    assert removed.found == missed.count(set())
    assert removed.by_filter == {name: missed.count({name}) for name in tiers_shown(wanted)}


def test_counting_is_one_query(rows, django_assert_num_queries):
    with django_assert_num_queries(1):
        count_removed({"gpu": ("h100",), "min_gpus": 2, "multi_node": "true", "precision": ("FP8",)}, now=NOW)


@pytest.mark.parametrize("use", PRESETS)
def test_a_use_is_its_filters_and_a_value_given_goes_before(rows, use):
    values = PRESETS[use].values
    assert set(values) <= set(VALUES)
    assert with_preset({"use_case": use}) == {**values, "use_case": use}
    first = next(iter(values))
    assert with_preset({"use_case": use, first: "mine"})[first] == "mine"
    assert first not in with_preset({"use_case": use}, blank=frozenset({first}))
