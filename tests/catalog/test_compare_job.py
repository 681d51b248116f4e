"""What a job costs, line by line, against sums worked out by hand."""

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.compare.job import HOURS_PER_MONTH, Job, Terms, break_even_per_day, plan

ONE = Terms(gpu_count=Decimal(1), billing_step_seconds=1, minimum_seconds=0)
SPOT = replace(ONE, is_spot=True)


def total(job: Job, terms: Terms, price: str) -> Decimal:
    return plan(job, terms).cost(Decimal(price)).total_usd


def test_ten_hours_at_three_dollars_are_thirty():
    cost = plan(Job(hours=Decimal(10)), ONE).cost(Decimal("3.00"))
    assert (cost.work_usd, cost.lost_usd, cost.rounding_usd, cost.total_usd) == (
        Decimal(30),
        Decimal(0),
        Decimal(0),
        Decimal(30),
    )
    assert not cost.is_at_least


def test_eight_gpus_on_machines_of_two_are_four_machines_and_on_one_of_sixteen_a_whole_one():
    job = Job(hours=Decimal(5), gpus=8)
    assert plan(job, replace(ONE, gpu_count=Decimal(2))).machines == 4
    assert total(job, replace(ONE, gpu_count=Decimal(2)), "4.00") == 80
    assert total(job, replace(ONE, gpu_count=Decimal(16)), "32.00") == 160


def test_each_start_is_rounded_up_to_the_billing_step():
    # 100 minutes in 3 starts are 33 min 20 s each; by ten minutes that is 40, by the hour 60
    job = Job(hours=Decimal(100) / 60, starts=3)
    assert plan(job, replace(ONE, billing_step_seconds=600)).billed_hours == 2
    assert total(job, replace(ONE, billing_step_seconds=600), "3.00") == 6
    assert total(job, replace(ONE, billing_step_seconds=3600), "3.00") == 9


def test_a_start_that_ends_on_a_step_is_not_rounded_though_the_division_does_not_come_out_even():
    # one hour in 3 starts of 1200 s; a third of an hour has no end as a decimal
    assert plan(Job(hours=Decimal(1), starts=3), replace(ONE, billing_step_seconds=600)).billed_hours == 1


def test_each_start_costs_at_least_the_minimum_time():
    # six starts of ten minutes at a minimum of half an hour: three hours
    assert plan(Job(hours=Decimal(1), starts=6), replace(ONE, minimum_seconds=1800)).billed_hours == 3


def test_a_volume_is_paid_while_it_runs_and_while_it_is_stopped():
    # 730 GB at 0.10 a month are 0.10 an hour: 10 hours running, 20 stopped
    terms = replace(ONE, storage_usd_per_gb_month=Decimal("0.10"), volume_survives_stop=True)
    cost = plan(Job(hours=Decimal(10), storage_gb=Decimal(730), stopped_hours=Decimal(20)), terms).cost(Decimal(1))
    assert (cost.plan.storage_usd, cost.plan.stopped_storage_usd, cost.total_usd) == (
        Decimal(1),
        Decimal(2),
        Decimal(13),
    )


def test_where_nothing_survives_a_stop_nothing_is_paid_meanwhile():
    terms = replace(ONE, storage_usd_per_gb_month=Decimal("0.10"), volume_survives_stop=False)
    assert total(Job(hours=Decimal(10), storage_gb=Decimal(730), stopped_hours=Decimal(20)), terms, "1.00") == 11


@pytest.mark.parametrize(("survives", "paid"), [(False, 30), (None, 30), (True, 10)])
def test_a_stop_that_bills_in_full_costs_as_if_it_ran_unless_a_volume_outlives_the_machine(survives, paid):
    terms = replace(ONE, bills_when_stopped=True, volume_survives_stop=survives)
    assert total(Job(hours=Decimal(10), stopped_hours=Decimal(20)), terms, "1.00") == paid


def test_traffic_is_paid_by_the_gigabyte():
    assert (
        total(Job(hours=Decimal(1), egress_gb=Decimal(200)), replace(ONE, egress_usd_per_gb=Decimal("0.09")), "2.00")
        == 20
    )


def test_what_is_not_known_is_left_out_and_named():
    cost = plan(
        Job(hours=Decimal(1), egress_gb=Decimal(200), storage_gb=Decimal(10), stopped_hours=Decimal(1)),
        Terms(gpu_count=Decimal(1)),
    ).cost(Decimal(2))
    assert cost.total_usd == 2
    assert cost.is_at_least
    assert cost.plan.unknown == ("billing_step", "minimum", "storage", "egress", "volume")
    assert (
        not plan(Job(hours=Decimal(1)), Terms(gpu_count=Decimal(1))).cost(Decimal(2)).is_at_least
    )  # no traffic, no volume


def test_a_fixed_term_is_paid_whole_and_as_often_as_it_takes():
    month = replace(ONE, term_months=1)
    assert HOURS_PER_MONTH == 730
    assert total(Job(hours=Decimal(10)), month, "1.00") == 730
    assert total(Job(hours=Decimal(731)), month, "1.00") == 1460
    assert plan(Job(hours=Decimal(731)), month).terms_paid == 2


def test_interruptions_waste_what_saving_and_loading_take_and_each_is_a_start_more():
    # 2 minutes to save, one interruption a day: sqrt(240/86400) + 120/86400 = 5.409 % of the time
    made = plan(Job(hours=Decimal(24)), replace(SPOT, billing_step_seconds=3600))
    assert round(made.run_hours, 3) == Decimal("25.372")
    assert round(made.interruptions, 3) == Decimal("1.057")
    assert made.starts == 3  # one of the job's own, two after interruptions
    assert made.billed_hours == 27  # 8.46 hours each, rounded up


def test_a_notice_long_enough_to_save_halves_the_saving():
    # sqrt(240/86400)/2 + 120/86400 = 2.774 %
    made = plan(Job(hours=Decimal(24)), replace(SPOT, spot_notice_seconds=120))
    assert round(made.run_hours, 3) == Decimal("24.685")
    assert plan(Job(hours=Decimal(24)), replace(SPOT, spot_notice_seconds=119)).run_hours > Decimal("25.3")


def test_two_machines_are_interrupted_twice_as_often():
    # sqrt(2 * 240/86400) + 2 * 120/86400 = 7.731 %
    assert round(plan(Job(hours=Decimal(24), gpus=2), SPOT).run_hours, 3) == Decimal("26.011")


@pytest.mark.parametrize(
    "job",
    [Job(hours=Decimal(24), interruptions_per_day=Decimal(0)), Job(hours=Decimal(24), checkpoint_minutes=Decimal(0))],
)
def test_without_interruptions_or_checkpoints_nothing_is_wasted(job):
    assert plan(job, SPOT).run_hours == 24


def test_only_spot_is_interrupted():
    assert plan(Job(hours=Decimal(24), interruptions_per_day=Decimal(100)), ONE).run_hours == 24


@pytest.mark.parametrize(
    ("spot", "on_demand", "rate"), [("2", "2", Decimal(0)), ("3", "2", Decimal(0)), ("0.04", "1", None)]
)
def test_spot_that_is_no_cheaper_never_pays_and_that_costs_next_to_nothing_always_does(spot, on_demand, rate):
    found = break_even_per_day(
        Job(hours=Decimal(1)), SPOT, spot_usd_per_hour=Decimal(spot), on_demand_usd_per_hour=Decimal(on_demand)
    )
    assert found == rate


@given(
    discount=st.decimals("0.01", "0.94", places=2),
    minutes=st.integers(1, 60),
    gpus=st.integers(1, 8),
    notice=st.sampled_from([None, 30, 3600]),
)
def test_at_the_break_even_rate_spot_and_on_demand_cost_the_same(discount, minutes, gpus, notice):
    job = Job(hours=Decimal(100), gpus=gpus, checkpoint_minutes=Decimal(minutes))
    terms = replace(SPOT, spot_notice_seconds=notice)
    rate = break_even_per_day(job, terms, spot_usd_per_hour=1 - discount, on_demand_usd_per_hour=Decimal(1))
    assert rate is not None
    spot = plan(replace(job, interruptions_per_day=rate), terms)
    assert abs(spot.run_hours * (1 - discount) - 100) < Decimal("0.001")


amounts = st.decimals(0, 10_000, places=2)


@given(
    job=st.builds(
        Job,
        hours=st.decimals("0.01", 5000, places=2),
        gpus=st.integers(1, 64),
        starts=st.integers(1, 50),
        storage_gb=amounts,
        stopped_hours=amounts,
        egress_gb=amounts,
        checkpoint_minutes=st.decimals(0, 60, places=1),
        interruptions_per_day=st.decimals(0, 20, places=1),
    ),
    terms=st.builds(
        Terms,
        gpu_count=st.sampled_from([Decimal(1), Decimal(2), Decimal(4), Decimal(8)]),
        is_spot=st.booleans(),
        billing_step_seconds=st.sampled_from([None, 1, 60, 600, 3600]),
        minimum_seconds=st.sampled_from([None, 0, 60, 3600]),
        egress_usd_per_gb=st.sampled_from([None, Decimal(0), Decimal("0.09")]),
        storage_usd_per_gb_month=st.sampled_from([None, Decimal("0.07")]),
        volume_survives_stop=st.sampled_from([None, True, False]),
        bills_when_stopped=st.sampled_from([None, True, False]),
        spot_notice_seconds=st.sampled_from([None, 0, 120]),
    ),
    price=st.decimals("0.000001", 500, places=6),
)
def test_the_lines_add_up_to_the_total_and_billing_never_takes_less_than_the_work(job, terms, price):
    cost = plan(job, terms).cost(price)
    parts = cost.work_usd + cost.lost_usd + cost.rounding_usd + cost.idle_usd + cost.plan.fixed_usd
    assert abs(parts - cost.total_usd) <= Decimal("0.000003")
    assert (
        cost.plan.billed_hours
        >= cost.plan.run_hours - Decimal("0.000001")
        >= cost.plan.work_hours - Decimal("0.000002")
    )
    assert abs(cost.plan.machine_hours * price + cost.plan.fixed_usd - cost.total_usd) <= Decimal("0.000001")
    assert cost.plan.machines * terms.gpu_count >= job.gpus
