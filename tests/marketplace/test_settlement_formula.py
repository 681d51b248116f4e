"""What an hour comes to: DESIGN's vectors, and the same to the micro in SQL and in Python, whatever the numbers."""

from decimal import Decimal
from fractions import Fraction

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from billing.tax import amounts
from marketplace.pricing import Terms, hold_micros
from marketplace.settlement.formula import HourAmounts, Part, Priced, hold_needed_micros, settle_hour

FX = Decimal("0.8713837574")
FI = Decimal("25.5")
LOT = Priced(price=Decimal("2.88"), gpu_count=4, fee_percent=Decimal(10))


def part(seconds: int, *, fx: Decimal = FX, held: Decimal = FI) -> Part:
    return Part(seconds=seconds, fx_rate=fx, held_tax_rate_percent=held)


@pytest.mark.parametrize(
    ("seconds", "net", "tax", "payable"),
    [
        (3330, 9_285_465, 2_367_794, 9_590_400),
        (3480, 9_703_730, 2_474_451, 10_022_400),
        (1800, 5_019_170, 1_279_888, 5_184_000),
    ],
)
def test_the_hours_of_a_lot(seconds, net, tax, payable):
    hour = settle_hour(LOT, [part(seconds)], tax_rate_percent=FI)
    assert (hour.net_micros, hour.tax_micros, hour.payable_micros) == (net, tax, payable)


def test_two_held_hours_in_one_utc_hour_are_summed_and_rounded_once():
    hour = settle_hour(
        Priced(price=Decimal("4.19"), gpu_count=1, fee_percent=Decimal(10)),
        [part(2520), part(1080, fx=Decimal("0.8695652174"))],
        tax_rate_percent=FI,
    )
    assert (hour.net_micros, hour.tax_micros) == (3_648_812, 930_447)
    assert (hour.usd_net_micros, hour.payable_micros, hour.fee_micros) == (4_190_000, 3_771_000, 419_000)


def test_a_rate_above_the_held_one_takes_no_more_than_was_promised():
    hour = settle_hour(LOT, [part(3600, held=Decimal(21))], tax_rate_percent=FI)
    promised = settle_hour(LOT, [part(3600, held=Decimal(21))], tax_rate_percent=Decimal(21))
    assert hour.gross_micros == promised.gross_micros
    assert hour.tax_micros == round(Fraction(hour.gross_micros) * Fraction(FI) / (100 + Fraction(FI)))
    assert hour.net_micros < promised.net_micros
    assert hour.payable_micros == promised.payable_micros, "the provider's side does not change"


def test_a_rate_below_the_held_one_costs_less():
    hour = settle_hour(LOT, [part(3600)], tax_rate_percent=Decimal(21))
    assert hour.tax_micros == round(Fraction(hour.net_micros * 21, 100))


def test_each_of_two_held_hours_keeps_its_own_promise():
    """Held at 21 % before a move to Finland and at 25.5 % after it: only the first part was promised at 21."""
    hour = settle_hour(LOT, [part(2520, held=Decimal(21)), part(1080)], tax_rate_percent=FI)
    first = settle_hour(LOT, [part(2520, held=Decimal(21))], tax_rate_percent=Decimal(21))
    second = settle_hour(LOT, [part(1080)], tax_rate_percent=FI)
    assert abs(hour.gross_micros - first.gross_micros - second.gross_micros) <= 2
    assert hour.tax_micros == round(hour.gross_micros * Fraction(FI) / (100 + Fraction(FI)))


def test_without_a_decided_rate_each_part_is_taxed_as_it_was_held():
    parts = [part(2520, held=Decimal(21)), part(1080)]
    hour = settle_hour(LOT, parts, tax_rate_percent=None)
    assert hour.gross_micros == settle_hour(LOT, parts, tax_rate_percent=Decimal(27)).gross_micros
    alone = settle_hour(LOT, [part(3600, held=Decimal(21))], tax_rate_percent=None)
    assert alone == settle_hour(LOT, [part(3600, held=Decimal(21))], tax_rate_percent=Decimal(21))


rates = st.sampled_from(
    [Decimal(0), Decimal(21), FI, Decimal("27.00"), Decimal("8.1"), Decimal("0.01"), Decimal("99.99")]
)
prices = st.integers(1, 100_000_000).map(lambda ticks: Decimal(ticks).scaleb(-4))
fx_rates = st.integers(1, 3 * 10**10).map(lambda number: Decimal(number).scaleb(-10))
seconds = st.integers(0, 3600)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Priced, list[Part], Decimal | None]:
    first = draw(seconds)
    parts = [Part(seconds=first, fx_rate=draw(fx_rates), held_tax_rate_percent=draw(rates))]
    if draw(st.booleans()):
        rest = draw(st.integers(0, 3600 - first))
        parts.append(Part(seconds=rest, fx_rate=draw(fx_rates), held_tax_rate_percent=draw(rates)))
    fee = draw(st.sampled_from([Decimal(10), Decimal(0), Decimal("12.34"), Decimal(100)]))
    priced = Priced(price=draw(prices), gpu_count=draw(st.integers(1, 64)), fee_percent=fee)
    return priced, parts, draw(st.none() | rates)


@given(cases())
def test_lines_never_exceed_what_their_seconds_hold(case):
    priced, parts, rate = case
    hour = settle_hour(priced, parts, tax_rate_percent=rate)
    assert 0 <= hour.gross_micros <= hold_needed_micros(priced, parts, touched_hours=1)
    assert min(hour.net_micros, hour.tax_micros, hour.payable_micros, hour.fee_micros) >= 0


@given(cases(), rates)
def test_one_held_hour_is_the_tax_rule_itself(case, rate):
    priced, parts, _ = case
    hour = settle_hour(priced, parts[:1], tax_rate_percent=rate)
    net = settle_hour(priced, parts[:1], tax_rate_percent=Decimal(0)).net_micros
    expected = amounts.settle(net, rate_percent=rate, held_rate_percent=parts[0].held_tax_rate_percent)
    assert (hour.net_micros, hour.tax_micros, hour.gross_micros) == (
        expected.net_micros,
        expected.tax_micros,
        expected.gross_micros,
    )


@given(prices, st.integers(1, 64), st.integers(1, 720), fx_rates, rates)
def test_a_lot_is_held_as_its_fill_held_it(price, gpu_count, hours, fx, rate):
    priced = Priced(price=price, gpu_count=gpu_count, fee_percent=Decimal(10))
    parts = [Part(seconds=hours * 3600, fx_rate=fx, held_tax_rate_percent=rate)]
    terms = Terms(gpu_count=gpu_count, hours=hours, fx_rate=fx, tax_rate_percent=rate)
    assert hold_needed_micros(priced, parts, touched_hours=hours + 1) == hold_micros(price, terms)


@pytest.mark.django_db
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(cases(), min_size=50, max_size=100))
def test_sql_and_python_agree_to_the_micro(many):
    assert in_sql(many) == [settle_hour(priced, parts, tax_rate_percent=rate) for priced, parts, rate in many]


@pytest.mark.django_db
def test_sql_and_python_agree_on_ties():
    """Prices and seconds whose exact net ends on half a micro, odd and even: PostgreSQL's own round() would differ."""
    many = [
        (
            Priced(price=Decimal(ticks).scaleb(-4), gpu_count=1, fee_percent=Decimal("0.50")),
            [part(18 * n, fx=Decimal("0.001"))],
            FI,
        )
        for ticks in range(1, 60)
        for n in (1, 3, 5, 10, 100, 200)
    ]
    exact = [
        1_000_000 * Fraction(priced.price) * parts[0].seconds * Fraction(1, 1000) / 3600 for priced, parts, _ in many
    ]
    ties = [share for share in exact if share.denominator == 2]
    assert len({int(share) % 2 for share in ties}) == 2, "ties that go up and ties that go down"
    assert in_sql(many) == [settle_hour(priced, parts, tax_rate_percent=rate) for priced, parts, rate in many]


@pytest.mark.django_db
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 10**18), st.integers(1, 10**6)), min_size=100, max_size=200))
def test_the_database_rounds_half_to_even(many):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT marketplace_half_even(a, b), marketplace_round_up(a, b)"
            " FROM unnest(%s::numeric[], %s::numeric[]) AS pair (a, b)",
            [[Decimal(a) for a, _ in many], [Decimal(b) for _, b in many]],
        )
        assert cursor.fetchall() == [(round(Fraction(a, b)), -(-a // b)) for a, b in many]


def in_sql(many: list[tuple[Priced, list[Part], Decimal | None]]) -> list[HourAmounts]:
    rows = [_row(*case) for case in many]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT amounts.net, amounts.tax, amounts.usd_net, amounts.payable"
            " FROM unnest(%s::numeric[], %s::numeric[], %s::bigint[], %s::numeric[], %s::numeric[], %s::bigint[],"
            "             %s::numeric[], %s::numeric[], %s::numeric[])"
            "      WITH ORDINALITY AS hour (price, fee, seconds, fx, held, more, next_fx, next_held, rate, line),"
            " LATERAL marketplace_hour_amounts(price, fee, seconds, fx, held, more, next_fx, next_held, rate) AS amounts"
            " ORDER BY line",
            [list(column) for column in zip(*rows, strict=True)],
        )
        found = cursor.fetchall()
    return [
        HourAmounts(
            net_micros=net,
            tax_micros=tax,
            gross_micros=net + tax,
            usd_net_micros=usd_net,
            payable_micros=payable,
            fee_micros=usd_net - payable,
        )
        for net, tax, usd_net, payable in found
    ]


def _row(priced: Priced, parts: list[Part], rate: Decimal | None) -> tuple[object, ...]:
    first, second = parts[0], parts[1] if len(parts) > 1 else None
    return (
        priced.price * priced.gpu_count,
        priced.fee_percent,
        first.seconds,
        first.fx_rate,
        first.held_tax_rate_percent,
        second.seconds if second else 0,
        second.fx_rate if second else None,
        second.held_tax_rate_percent if second else None,
        rate,
    )
