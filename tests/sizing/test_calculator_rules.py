"""The calculator's rules without a page: what an address holds, which set is taken, what remedies and spot say."""

import json
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sizing.calculator import config_text
from sizing.calculator.address import DETAILS, MODEL_NAMES, NAMES, address
from sizing.calculator.answer import CardPrice, GpuSet, Row, answer_of, best_of, memory_of
from sizing.calculator.numbers import read_b_params, read_tokens, short_tokens
from sizing.calculator.remedies import changes, remedies_for
from sizing.calculator.spot import spot_row
from sizing.engine.cards import Card
from sizing.engine.config_reader import ConfigError
from sizing.engine.cost import cost_usd
from sizing.engine.estimate import estimate
from sizing.engine.interruptions import Interruptions
from sizing.engine.request import read_request
from sizing.facts import presets

H100 = Card(slug="h100", memory_gb=80, memory_type="HBM3", bandwidth_gb_s=3350, bf16_tflops=989, nvlink_gb_s=900)
L4 = Card(slug="l4", memory_gb=24, memory_type="GDDR6", has_ecc=True, bandwidth_gb_s=300, bf16_tflops=121)
PRICES = {
    "h100": CardPrice(usd_per_gpu_hour=Decimal("2.88"), is_live=True),
    "l4": CardPrice(usd_per_gpu_hour=Decimal("0.60"), is_live=True),
}
FIELDS = {"model": "llama-3.1-8b", "task": "full", "seq_len": 2048, "tokens": 10**8}


def estimated(fields, prices=PRICES):
    found = estimate(replace(read_request(fields, presets=presets()), cards=(H100, L4)))
    return found, answer_of(found, prices)


def a_set(count: int, *, verdict="fits", cost: str | None = "10", more=False) -> GpuSet:
    return GpuSet(
        gpu_count=count,
        verdict=verdict,
        headroom_gib=Decimal(1),
        tokens_per_s=Decimal(1),
        hours=Decimal(8) / count,
        cost_usd=None if cost is None else Decimal(cost),
        is_more_than_free=more,
    )


# --- The config in the address ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", presets())
@pytest.mark.parametrize("task", ["full", "inference"])
def test_the_estimate_of_what_the_address_holds_is_the_one_of_the_whole_config(name, task):
    whole = {**presets()[name].config, "torch_dtype": "bfloat16", "architectures": ["Some"], "rope_scaling": {"a": 1}}
    kept = config_text.from_address(config_text.for_address(whole))
    assert len(config_text.for_address(whole)) < 700
    of_whole, of_kept = (
        estimate(read_request({"config": config, "task": task}, presets={})) for config in (whole, kept)
    )
    assert of_kept == of_whole


def test_a_config_of_several_parts_keeps_its_note_and_its_quantisation():
    inner = dict(presets()["gemma-3-4b"].config)
    outer = {"model_type": "gemma3", "text_config": inner, "vision_config": {"hidden_size": 1}}
    outer["quantization_config"] = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    kept = config_text.from_address(config_text.for_address(outer))
    assert "vision_config" not in kept
    assert kept["quantization_config"] == {"quant_method": "fp8"}
    fields = ({"config": config, "task": "inference"} for config in (outer, kept))
    assert len({repr(estimate(read_request(each, presets={}))) for each in fields}) == 1


@given(st.binary(max_size=400))
def test_no_bytes_are_more_than_refused(raw):
    with suppress(config_text.ConfigTextError, ConfigError):
        config_text.for_address(config_text.read_config_text(raw))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
_CONFIGS = st.dictionaries(
    st.sampled_from([*presets()["gemma-3-4b"].config, "layer_types", "text_config", "quantization_config"]), _JSON
)


@settings(max_examples=300)
@given(_CONFIGS)
def test_no_config_is_more_than_refused(changed):
    config = {**presets()["gemma-3-4b"].config, **changed}
    try:
        text = config_text.for_address(config)
    except (config_text.ConfigTextError, ConfigError):
        return
    kept = config_text.from_address(text)
    assert config_text.for_address(kept) == text, "what is read from an address is written back the same"
    assert json.loads(text).keys() <= {*config, "model_type"}


# --- The address ------------------------------------------------------------------------------------------------

_ANSWERS = st.dictionaries(st.sampled_from([*NAMES, "go", "csrf"]), st.text(max_size=12))


@given(_ANSWERS, _ANSWERS)
def test_an_address_holds_one_model_and_leads_to_itself(sent, before):
    found = address(sent, before=before)
    names = [name for name, _ in found]
    assert len(set(names) & set(MODEL_NAMES)) <= 1
    assert names == [name for name in NAMES if name in names]
    assert all(value.strip() for _, value in found)
    assert address(dict(found), before=dict(found)) == found


def test_what_is_longer_than_anybody_means_is_cut():
    assert address({"loss": "x" * 10_000}, before={}) == [("loss", "x" * 200)]


@given(st.integers(1, 10**18))
def test_a_number_of_tokens_is_read_back_as_it_was_written(count):
    assert read_tokens(short_tokens(count)) == count


@given(st.text(max_size=30))
def test_any_text_is_a_number_or_none(text):
    count, size = read_tokens(text), read_b_params(text)
    assert count is None or count >= 0
    assert size is None or 0 <= size < float("inf")


# --- Which set is taken -----------------------------------------------------------------------------------------


def count_of(sets: list[GpuSet]) -> int:
    best = best_of(sets)
    assert best is not None
    return best.gpu_count


def test_the_set_that_costs_least_is_taken_and_of_equal_ones_the_fastest():
    assert count_of([a_set(1, cost="9"), a_set(8, cost="10")]) == 1
    assert count_of([a_set(1, cost="10.00"), a_set(8, cost="10.05")]) == 8


def test_a_tight_set_is_taken_only_where_none_fits():
    assert count_of([a_set(1, verdict="tight", cost="1"), a_set(2, cost="9")]) == 2
    assert count_of([a_set(1, verdict="no"), a_set(2, verdict="tight")]) == 2
    assert best_of([a_set(1, verdict="no", cost=None)]) is None


def test_what_is_not_free_is_taken_only_where_nothing_else_is():
    assert count_of([a_set(2), a_set(8, more=True)]) == 2
    assert count_of([a_set(2, verdict="no"), a_set(8, more=True)]) == 8


def test_begun_hours_are_full_ones():
    hours = [replace(a_set(1), hours=Decimal(text)).whole_hours for text in ("0", "0.01", "4", "4.01", "4.68")]
    assert hours == [1, 1, 4, 5, 5]


def test_a_live_price_is_named_before_a_lower_list_price():
    prices = {**PRICES, "l4": replace(PRICES["l4"], usd_per_gpu_hour=Decimal("0.01"), is_live=False)}
    _, answer = estimated({**FIELDS, "task": "lora"}, prices)
    assert [row.slug for row in answer.priced] == ["l4", "h100"]
    assert answer.cheapest.slug == "h100"
    _, without = estimated({**FIELDS, "task": "lora"}, {"l4": prices["l4"]})
    assert without.cheapest.slug == "l4"


def test_what_is_free_is_named_before_what_is_cheaper_and_is_not():
    prices = {**PRICES, "l4": replace(PRICES["l4"], usd_per_gpu_hour=Decimal("0.01"), gpus_free=0)}
    _, answer = estimated({**FIELDS, "task": "lora"}, prices)
    assert [row.slug for row in answer.priced] == ["l4", "h100"]
    assert answer.cheapest.slug == "h100"


@pytest.mark.parametrize("task", ["full", "lora", "qlora", "inference"])
def test_the_parts_fill_the_bar_to_the_total_and_the_interval_stays_inside(task):
    found, _ = estimated({**FIELDS, "task": task})
    for row in found.per_gpu:
        memory = memory_of(row)
        assert float(sum(part.gib for part in memory.parts)) == pytest.approx(row.nvidia_smi_gib, abs=0.03)
        end = max(float(part.x) + float(part.width) for part in memory.parts)
        assert end <= 100.05
        assert 0 < float(memory.low_x) < float(memory.high_x) <= 100
        edges = [float(part.x) for part in memory.parts]
        assert edges == sorted(edges)


# --- Remedies ---------------------------------------------------------------------------------------------------


def test_every_remedy_saves_what_it_says_by_its_own_estimate():
    base, _ = estimated({**FIELDS, "micro_batch": 4, "checkpointing": "none", "gpu_counts": [1, 8]})
    fields = {**FIELDS, "micro_batch": 4, "checkpointing": "none", "gpu_counts": [1, 8]}
    as_asked, *found = remedies_for(fields, base, largest_gib=H100.usable_gib, estimator=estimated)
    assert [remedy.total_gib for remedy in found] == sorted(remedy.total_gib for remedy in found)
    assert {"checkpointing", "smaller_batch", "optimizer_8bit", "fused_loss"} <= {r.change.name for r in found}
    for remedy in found:
        assert remedy.saved_gib == as_asked.total_gib - remedy.total_gib > 0
        again = {**fields, **remedy.change.fields, "gpu_counts": [remedy.change.gpu_count]}
        alone, answer = estimated({name: value for name, value in again.items() if value is not None})
        assert float(remedy.total_gib) == alone.per_gpu[0].nvidia_smi_gib
        assert remedy.cards == sum(fit.verdict == "fits" for fit in alone.fits)
        assert remedy.cost_usd == (answer.cheapest.best.cost_usd if answer.cheapest else None)


@pytest.mark.parametrize("task", ["full", "lora", "qlora", "inference"])
@pytest.mark.parametrize("detail", [{}, {"sharding": "ddp"}, {"framework": "deepspeed"}, {"batch": 64}])
def test_every_change_can_be_asked_for(task, detail):
    if task == "inference" and "framework" in detail:
        return
    fields = {**FIELDS, "task": task, **detail}
    row = estimated(fields)[0].per_gpu[-1]
    for change in changes(row.job, row.gpu_count):
        asked = {**fields, **change.fields}
        read_request({name: value for name, value in asked.items() if value is not None}, presets=presets())
        assert set(change.fields) <= {*DETAILS, "micro_batch", "batch", "seq_len", "task"}


def test_what_cannot_help_on_one_gpu_is_measured_on_as_many_as_it_takes():
    fields = {**FIELDS, "model": "llama-3.1-405b", "gpu_counts": [1, 8, 64]}
    base, _ = estimated(fields)
    as_asked, *_ = remedies_for(fields, base, largest_gib=H100.usable_gib, estimator=estimated)
    assert as_asked.change.gpu_count == 64


# --- Spot -------------------------------------------------------------------------------------------------------

_PRICE = st.decimals("0.05", "20", places=2)


@given(_PRICE, _PRICE, st.integers(1, 64), st.integers(1, 500), st.integers(1, 600), st.integers(0, 3600))
def test_spot_costs_the_same_at_its_break_even(spot, usual, count, hours_between, save, restart):
    interruptions = Interruptions(mean_s=hours_between * 3600.0, checkpoint_s=save, restart_s=restart)
    best = replace(a_set(count), hours=Decimal(100), cost_usd=usual * 100 * count)
    price = CardPrice(usd_per_gpu_hour=usual, spot_usd_per_gpu_hour=spot)
    row = spot_row(Row(slug="h100", sets=(best,), best=best, price=price), interruptions)
    assert row is not None
    assert best.cost_usd is not None
    waste = interruptions.waste(count)
    assert row.is_cheaper == (row.spot_cost_usd < best.cost_usd)
    at_even = cost_usd(
        hours=100, gpu_count=count, price_usd_per_gpu_hour=usual * (1 - Decimal(repr(waste))), waste=waste
    )
    assert at_even == pytest.approx(best.cost_usd, rel=Decimal("0.0001"))
    if row.break_even_mean_s is None:
        assert spot >= usual
    else:
        even = replace(interruptions, mean_s=row.break_even_mean_s).waste(count)
        assert min(0.95, 1 - float(spot / usual)) == pytest.approx(even, rel=1e-6)


def test_a_row_without_a_spot_price_has_nothing_to_say():
    best = a_set(1)
    row = Row(slug="h100", sets=(best,), best=best, price=CardPrice(usd_per_gpu_hour=Decimal(1)))
    assert spot_row(row, Interruptions()) is None
