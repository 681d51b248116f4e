"""Which payments a refund takes from, and who bears what leaves a payment more than once."""

from datetime import UTC, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.refunds.allocation import (
    MoreThanRefundable,
    Part,
    Payment,
    allocate,
    most_refundable_micros,
    share_outflow,
)
from tests.billing.conftest import NOW, UNIT

CENT = UNIT // 100
micros = st.integers(0, 100 * UNIT)


def payment(number: int, units: int, *, refunded: int = 0, disputed: int = 0) -> Payment:
    return Payment(
        top_up_id=UUID(int=number),
        paid_at=NOW + timedelta(days=number),
        amount_micros=units * UNIT,
        refunded_micros=refunded * UNIT,
        disputed_micros=disputed * UNIT,
    )


def parts(payments, units, *, available=1000) -> list[tuple[int, int]]:
    shared = allocate(payments, wanted_micros=units * UNIT, available_micros=available * UNIT, step_micros=CENT)
    return [(part.top_up_id.int, part.amount_micros // UNIT) for part in shared]


def test_40_of_two_times_30_is_30_from_the_older_and_10_from_the_newer():
    assert parts([payment(2, 30), payment(1, 30)], 40) == [(1, 30), (2, 10)]


def test_what_was_refunded_or_is_disputed_is_not_refunded_again():
    payments = [payment(1, 30, refunded=30), payment(2, 30, refunded=10, disputed=5), payment(3, 30, disputed=40)]
    assert parts(payments, 15) == [(2, 15)]
    with pytest.raises(MoreThanRefundable) as refused:
        parts(payments, 16)
    assert refused.value.refundable_micros == 15 * UNIT


def test_the_wallet_bounds_the_refund_and_only_whole_cents_count():
    assert most_refundable_micros([payment(1, 30)], available_micros=12_345_678, step_micros=CENT) == 12_340_000
    assert most_refundable_micros([payment(1, 30)], available_micros=-1, step_micros=CENT) == 0
    with pytest.raises(MoreThanRefundable):
        parts([payment(1, 30)], 20, available=19)


payments_of = st.lists(
    st.builds(
        Payment,
        top_up_id=st.uuids(),
        paid_at=st.datetimes(min_value=NOW.replace(tzinfo=None), timezones=st.just(UTC)),
        amount_micros=micros,
        refunded_micros=micros,
        disputed_micros=micros,
    ),
    max_size=8,
    unique_by=lambda payment: payment.top_up_id,
)


@given(payments=payments_of, available=micros, wanted=st.integers(1, 300 * UNIT), seed=st.randoms())
def test_parts_sum_to_what_was_asked_oldest_first_and_never_beyond_a_payment(payments, available, wanted, seed):
    shuffled = seed.sample(payments, len(payments))
    limits = {"available_micros": available, "step_micros": CENT}
    most = most_refundable_micros(payments, **limits)
    assert most <= available
    assert most % CENT == 0
    if wanted > most:
        with pytest.raises(MoreThanRefundable):
            allocate(shuffled, wanted_micros=wanted, **limits)
        return
    shared = allocate(shuffled, wanted_micros=wanted, **limits)
    assert sum(part.amount_micros for part in shared) == wanted
    left = {part.top_up_id: part.amount_micros for part in shared}
    assert all(micros > 0 for micros in left.values())
    spent_up = True  # each older payment is used up before a newer one is touched
    for one in sorted(payments, key=lambda payment: (payment.paid_at, payment.top_up_id)):
        taken = left.get(one.top_up_id, 0)
        assert taken <= one.refundable_micros
        assert taken == 0 or spent_up
        spent_up = spent_up and taken == one.refundable_micros


def test_the_order_in_which_the_payments_come_does_not_matter():
    payments = [payment(3, 5), payment(1, 5), payment(2, 5)]
    assert parts(payments, 12) == parts(payments[::-1], 12) == [(1, 5), (2, 5), (3, 2)]
    assert allocate(payments, wanted_micros=CENT, available_micros=UNIT, step_micros=CENT) == [
        Part(top_up_id=UUID(int=1), amount_micros=CENT)
    ]


@given(paid=micros, steps=st.lists(st.integers(-60 * UNIT, 60 * UNIT), max_size=12))
def test_however_money_leaves_and_returns_a_payment_is_deducted_once(paid, steps):
    taken = customer = loss = 0
    for step in steps:
        after = max(0, taken + step)
        share = share_outflow(paid_micros=paid, before_micros=taken, after_micros=after)
        assert share.customer_micros + share.loss_micros == after - taken
        taken, customer, loss = after, customer + share.customer_micros, loss + share.loss_micros
        assert (customer, loss) == (min(paid, taken), max(0, taken - paid))
