"""What fits on a GPU: the simple rules against their published table, and the same on every page."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.what_fits import CEILINGS, GPU_COUNTS, decode_ceilings, what_fits
from sizing.engine.measured_bf16 import MEASURED_BF16_TFLOPS, measured_percent
from sizing.engine.simple_rule import (
    SERVING_BYTES,
    SERVING_SHARE,
    decode_ceiling_tokens_per_s,
    floor_to_step,
    lora_b_params,
    qlora_b_params,
    serving_b_params,
)

# GB: training on 1 and 8, LoRA, QLoRA, serving in FP16, FP8, INT4 on 1. Billions of parameters.
PUBLISHED = {
    288: (10, 110, 90, 300, 100, 200, 360),
    256: (10, 100, 80, 270, 85, 170, 320),
    192: (9, 75, 60, 200, 65, 130, 240),
    180: (9, 70, 55, 190, 60, 120, 220),
    141: (7, 55, 45, 150, 45, 95, 170),
    96: (4, 35, 30, 100, 30, 65, 120),
    94: (4, 35, 30, 100, 30, 65, 110),
    80: (4, 30, 25, 85, 25, 55, 100),
    48: (2, 15, 15, 50, 15, 30, 60),
    32: (1, 10, 10, 30, 10, 20, 40),
    24: (1, 9, 7, 25, 8, 15, 30),
}
# GB/s: tokens per second of one conversation with 8 B parameters in FP16.
LIMITS = {8000: 500, 7700: 481, 6000: 375, 5300: 331, 4800: 300, 3900: 243, 3350: 209, 2039: 127, 1792: 112, 1008: 63, 300: 18}  # fmt: skip

sizes = st.decimals(min_value=1, max_value=10_000, places=2)


@pytest.mark.parametrize("memory_gb", PUBLISHED)
def test_every_cell_of_the_published_table_is_met(memory_gb):
    lines = {fit.task: fit.sizes for fit in what_fits(Decimal(memory_gb))}
    found = (lines["full"][0], lines["full"][3], *(lines[task][0] for task in ("lora", "qlora", "fp16", "fp8", "int4")))
    assert found == PUBLISHED[memory_gb]


@pytest.mark.parametrize("bandwidth", LIMITS)
def test_one_conversation_is_never_faster_than_its_weights_are_read(bandwidth):
    found = decode_ceiling_tokens_per_s(bandwidth_gb_s=Decimal(bandwidth), b_params=8, precision="fp16")
    assert found == LIMITS[bandwidth]


@given(memory_gb=sizes)
def test_what_is_told_to_fit_takes_no_more_than_the_share_of_memory(memory_gb):
    for precision, size in SERVING_BYTES.items():
        for count in GPU_COUNTS:
            told = serving_b_params(memory_gb=memory_gb, gpu_count=count, precision=precision)
            assert told * size <= SERVING_SHARE * memory_gb * count
    assert lora_b_params(memory_gb=memory_gb) <= qlora_b_params(memory_gb=memory_gb)


@given(smaller=sizes, larger=sizes)
def test_more_memory_never_fits_less(smaller, larger):
    smaller, larger = sorted((smaller, larger))
    for one, other in zip(what_fits(smaller), what_fits(larger), strict=True):
        assert all(a <= b for a, b in zip(one.sizes, other.sizes, strict=True)), one.task
        assert list(one.sizes) == sorted(one.sizes), "nor do more GPUs"


@given(b_params=st.decimals(min_value=0, max_value=10**6, places=3))
def test_rounding_goes_down_and_by_less_than_a_step(b_params):
    assert b_params - 10 < floor_to_step(b_params) <= b_params


@given(memory_gb=sizes, bandwidth=st.decimals(min_value=1, max_value=20_000, places=1))
def test_a_speed_limit_is_told_exactly_for_models_that_fit(memory_gb, bandwidth):
    limits = decode_ceilings(memory_gb=memory_gb, bandwidth_gb_s=bandwidth)
    assert [(limit.b_params, limit.precision) for limit in limits] == list(CEILINGS)
    for limit in limits:
        needed = limit.b_params * SERVING_BYTES[limit.precision]
        assert (limit.tokens_per_s is not None) == (needed <= SERVING_SHARE * memory_gb)


def test_bars_are_on_one_scale_and_a_size_is_never_invisible():
    shares = {fit.task: fit.share for fit in what_fits(Decimal(80))}
    assert shares == {"full": 4, "lora": 25, "qlora": 85, "fp16": 25, "fp8": 55, "int4": 100}
    assert all(fit.share == 0 for fit in what_fits(Decimal("0.1")))


@pytest.mark.django_db
def test_measured_figures_are_of_gpus_in_the_catalogue_and_below_their_dense_ones(client, site_data):
    for slug, tflops in MEASURED_BF16_TFLOPS.items():
        dense = Decimal(client.get(f"/api/v1/gpus/{slug}/").json()["bf16_dense_tflops"])
        assert tflops < dense, slug
        percent = measured_percent(slug, bf16_dense_tflops=dense)
        assert percent is not None
        assert abs(percent - 100 * tflops / dense) <= Decimal("0.5"), slug
        assert f"{percent}% of the dense figure" in client.get(f"/gpus/{slug}/").content.decode()


@pytest.mark.django_db
def test_the_page_and_the_api_tell_the_same_training_sizes(client, site_data):
    for slug in ("h100-sxm", "b300", "rtx-4090", "t4"):
        told = client.get(f"/api/v1/gpus/{slug}/").json()
        fits = what_fits(Decimal(str(told["memory_gb"])))[0].sizes
        assert {"1": fits[0], "8": fits[3]} == told["full_training_b_params"]
