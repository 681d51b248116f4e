"""The pure rules of top-ups: states only move forward, limits hold at their edges, payments are compared whole."""

from datetime import timedelta
from decimal import Decimal
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.gateway.objects import Payment
from billing.models import TopUp
from billing.topups import states
from billing.topups.limits import History, Limits, Tier, breach_of, left_micros
from billing.topups.match import Expected, differences
from billing.topups.states import Seen, before, state_of
from common.money import to_micros
from tests.billing.conftest import NOW, UNIT

any_state = st.sampled_from(states.STATES)
LIMITS = Limits(
    minimum_micros=10 * UNIT,
    per_hour=5,
    tiers=[
        Tier(age=timedelta(0), clean_payments=0, per_day_micros=250 * UNIT, per_week_micros=500 * UNIT),
        Tier(age=timedelta(days=7), clean_payments=1, per_day_micros=1000 * UNIT, per_week_micros=2500 * UNIT),
    ],
)


def history(**values) -> History:
    whole = {"age": timedelta(0), "clean_payments": 0, "day_micros": 0, "week_micros": 0, "started_in_hour": 0}
    return History(**{**whole, **values})


def test_the_rules_know_the_states_of_the_row():
    assert set(states.STATES) == set(TopUp.State.values)


@given(st.lists(any_state, min_size=1, max_size=4))
def test_whatever_the_order_the_furthest_state_is_reached(seen):
    ends = set()
    for order in permutations(seen):
        state = "created"
        for one in order:
            state = one if state in before(one) else state
        ends.add(state)
    assert len(ends) == 1


@given(any_state, any_state)
def test_of_two_states_one_may_become_the_other_and_never_back(one, other):
    assert (one in before(other)) + (other in before(one)) == (one != other)
    assert "paid" not in before(other)


@pytest.mark.parametrize(
    ("checkout", "payment", "state"),
    [
        ("open", "", "open"),
        ("open", "requires_payment_method", "open"),  # declined: the page takes another card
        ("open", "requires_action", "open"),
        ("complete", "processing", "processing"),
        ("complete", "", "processing"),
        ("complete", "succeeded", "processing"),  # only `credit` says paid
        ("complete", "requires_payment_method", "failed"),
        ("complete", "canceled", "failed"),
        ("expired", "canceled", "expired"),
        ("expired", "", "expired"),
        ("expired", "succeeded", "expired"),
        ("something new", "something newer", "open"),
    ],
)
def test_what_the_gateway_says_has_one_meaning(checkout, payment, state):
    assert state_of(Seen(checkout=checkout, payment=payment)) == state


@given(st.text(max_size=12), st.text(max_size=12))
def test_no_word_of_the_gateway_alone_makes_a_top_up_paid(checkout, payment):
    assert state_of(Seen(checkout=checkout, payment=payment)) != "paid"


@pytest.mark.parametrize(
    ("units", "so_far", "breach"),
    [
        ("9.99", {}, "below_minimum"),
        ("0", {}, "below_minimum"),
        ("-10", {}, "below_minimum"),
        ("10", {}, None),
        ("250", {}, None),
        ("250.01", {}, "above_limit"),
        ("50", {"day_micros": 200 * UNIT, "week_micros": 200 * UNIT}, None),
        ("50.01", {"day_micros": 200 * UNIT, "week_micros": 200 * UNIT}, "above_limit"),
        ("50", {"week_micros": 450 * UNIT}, None),
        ("50.01", {"week_micros": 450 * UNIT}, "above_limit"),
        ("1000", {"age": timedelta(days=7), "clean_payments": 1}, None),
        ("1000", {"age": timedelta(days=7)}, "above_limit"),  # age alone is not enough
        ("1000", {"age": timedelta(days=7, microseconds=-1), "clean_payments": 9}, "above_limit"),
        ("10", {"started_in_hour": 4}, None),
        ("10", {"started_in_hour": 5}, "too_many"),
    ],
)
def test_limits_at_their_edges(units, so_far, breach):
    micros = to_micros(Decimal(units), currency="EUR")
    assert breach_of(micros, history=history(**so_far), limits=LIMITS) == breach


@given(day=st.integers(0, 10**12), week=st.integers(0, 10**12))
def test_what_is_left_may_be_paid_in_and_a_cent_more_may_not(day, week):
    past = history(day_micros=min(day, week), week_micros=week)
    left = left_micros(history=past, limits=LIMITS)
    assert left >= 0
    assert breach_of(left + UNIT // 100, history=past, limits=LIMITS) in ("above_limit", "below_minimum")
    if left >= LIMITS.minimum_micros:
        assert breach_of(left, history=past, limits=LIMITS) is None


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({}, []),
        ({"received_micros": 99}, ["amount"]),
        ({"amount_micros": 101, "received_micros": 101}, ["amount"]),
        ({"currency": "USD"}, ["currency"]),
        ({"customer_id": "cus_2"}, ["customer"]),
        ({"customer_id": None}, ["customer"]),
        ({"top_up_id": "other"}, ["metadata"]),
        ({"id": "pi_2"}, ["payment"]),
        ({"received_micros": 1, "currency": "GBP"}, ["amount", "currency"]),
    ],
)
def test_a_payment_is_compared_word_by_word(change, found):
    expected = Expected(
        top_up_id="t1", amount_micros=100, currency="EUR", customer_id="cus_1", payment_intent_id="pi_1"
    )
    payment = {
        "id": "pi_1",
        "status": "succeeded",
        "amount_micros": 100,
        "received_micros": 100,
        "currency": "EUR",
        "customer_id": "cus_1",
        "top_up_id": "t1",
        "failure_reason": "",
        "created_at": NOW,
    }
    assert differences(expected, Payment(**{**payment, **change})) == found
