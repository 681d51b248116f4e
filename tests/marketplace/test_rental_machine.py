"""The state machine of the book, extended by everything that happens to rentals; every invariant after each step.

Time passes in three ways: with the platform up and servers that beat unless they are silent; unheard, as in the book's
own steps; and with the platform down. At the end all is stopped and settled, and each renter has paid exactly the lines
that stand.
"""

from datetime import timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any, ClassVar

import pytest
from django.db import transaction
from django.db.models import Sum
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule, run_state_machine_as_test

from billing.models import Account, Hold, Refund, TopUp
from billing.refunds.request import (
    DisputeOpen,
    MoreThanIsLeft,
    NotAnAmount,
    OrganisationFrozen,
    ReceivableOpen,
    request_refund,
)
from billing.tax.record import tax_details_changed
from fx.models import Rate
from marketplace.models import Order, Rental, Server, Settlement
from marketplace.orders.close import cancel_order
from marketplace.orders.place import NotEnoughMoney, place_order
from marketplace.orders.place import OrganisationFrozen as FrozenPlaces
from marketplace.rentals.end import acknowledge_stop
from marketplace.rentals.provision import accept_start, report_failed
from marketplace.rentals.ready import report_ready
from marketplace.rentals.states import RentalStateRefused
from marketplace.rentals.stop import request_stop
from marketplace.settlement.due import settle_due
from marketplace.sweep import sweep
from tests.billing.conftest import paid_top_up
from tests.billing.gateway_double import GatewayDouble, install
from tests.factories import make_operator
from tests.marketplace.conftest import NOW, make_renter, order_for
from tests.marketplace.rental_clock import ACCESS, pass_time, up_all_along
from tests.marketplace.test_market_machine import Exchange
from users.freezing import freeze, unfreeze

HOUR = timedelta(hours=1)
NO_REFUND = (MoreThanIsLeft, NotAnAmount, OrganisationFrozen, ReceivableOpen, DisputeOpen)
which = st.integers(0, 30)


class Rentals(Exchange):
    """The book's two renters in USD, and one in EUR whose country changes and who is frozen now and then."""

    counted: ClassVar[dict[str, int]] = {}

    @initialize()
    def open_the_market(self):
        Exchange.open_the_market(self)
        for days, rate in ((1, "1.1476"), (0, "1.1500"), (-1, "1.0931")):
            on = NOW - timedelta(days=days)
            Rate.objects.create(day=on.date(), currency="USD", units_per_eur=Decimal(rate), origin="ecb", stored_at=on)
        self.aalto = make_renter(name="Aalto", currency="EUR", units=40, country="FI", type="consumer")
        self.operator = make_operator()
        self.silent: set[Any] = set()
        up_all_along(since=NOW, until=NOW)

    def rental(self, number: int, *states: str) -> Rental | None:
        return self.pick(Rental.objects.filter(state__in=states).order_by("fill__sequence"), number)

    def wallet(self, number: int) -> Account:
        return self.pick(Account.objects.filter(kind="wallet").order_by("pk"), number)

    @rule(
        limit=st.sampled_from(["2.88", "2.95"]), gpu_count=st.integers(1, 2), hours=st.sampled_from([None, None, 1, 3])
    )
    def order_in_eur(self, limit, gpu_count, hours):
        instruction = order_for(
            self.gpu, limit=limit, gpu_count=gpu_count, hours=hours, currency="EUR", confirm_price=True
        )
        try:
            place_order(organisation_id=self.aalto.pk, instruction=instruction, now=self.now)
        except (NotEnoughMoney, FrozenPlaces):
            self.count("order refused")

    # servers

    @rule(number=which)
    def start(self, number):
        if rental := self.rental(number, "pending"):
            accept_start(rental_id=rental.pk, now=self.now)

    @rule(number=which, seconds=st.integers(1, 40), micros=st.sampled_from([0, 1, 999_999]))
    def ready(self, number, seconds, micros):
        self.pass_time(timedelta(seconds=seconds, microseconds=micros))
        if rental := self.rental(number, "provisioning"):
            try:
                report_ready(rental_id=rental.pk, access=ACCESS, now=self.now)
                self.count("ready")
            except RentalStateRefused:
                self.count("ready too late")

    @rule()
    def everything_gets_going(self):
        for rental in Rental.objects.filter(state__in=Rental.STARTING, filled_at__gt=self.now - timedelta(minutes=9)):
            accept_start(rental_id=rental.pk, now=self.now)
            report_ready(rental_id=rental.pk, access=ACCESS, now=self.now)
            self.count("ready")

    @rule(number=which)
    def fail(self, number):
        if rental := self.rental(number, "pending", "provisioning", "running"):
            report_failed(rental_id=rental.pk, reason="gpu_fell_off_the_bus", now=self.now)
            self.count("failed")

    @rule(number=which)
    def acknowledge(self, number):
        if rental := self.rental(number, "ending"):
            acknowledge_stop(rental_id=rental.pk, now=self.now)

    @rule(number=which, is_silent=st.sampled_from([True, False, False]))
    def fall_silent(self, number, is_silent):
        server = self.pick(Server.objects.order_by("created_at", "pk"), number)
        (self.silent.add if is_silent else self.silent.discard)(server)

    # time

    @rule(seconds=st.integers(1, 240))
    def a_moment(self, seconds):
        self.pass_time(timedelta(seconds=seconds))

    @rule(minutes=st.integers(5, 100))
    def a_while(self, minutes):
        self.pass_time(timedelta(minutes=minutes))

    @rule(minutes=st.integers(2, 200))
    def the_platform_is_down(self, minutes):
        self.now += timedelta(minutes=minutes)
        sweep(now=self.now)

    @rule(minutes_ago=st.integers(0, 300))
    def settle(self, minutes_ago):
        sweep(now=self.now)
        lines = settle_due(until=self.now - timedelta(minutes=minutes_ago), now=self.now)
        assert lines["above_hold"] == 0
        self.count("settled", lines["hours"])

    # renters and their money

    @rule(number=which)
    def stop(self, number):
        if rental := self.rental(number, "pending", "provisioning", "running", "ending"):
            request_stop(organisation_id=rental.organisation_id, rental_id=rental.pk, now=self.now)

    @rule(number=which, cents=st.integers(1, 3000))
    def top_up(self, number, cents):
        paid_top_up(self.wallet(number), micros=cents * 10_000, paid_at=self.now)

    @rule(number=which, cents=st.integers(1, 4000))
    def refund(self, number, cents):
        wallet = self.wallet(number)
        try:
            with transaction.atomic():
                request_refund(
                    organisation=wallet.owner,
                    currency=wallet.currency,
                    amount=Decimal(cents) / 100,
                    requested_by=None,
                    now=self.now,
                )
        except NO_REFUND:
            self.count("refund refused")

    @rule(country=st.sampled_from(["FI", "NL", "DE", "LU"]))
    def change_tax_status(self, country):
        self.aalto.refresh_from_db()
        self.aalto.country = country
        self.aalto.save()
        tax_details_changed(organisation_id=self.aalto.pk, now=self.now)

    @rule(is_frozen=st.sampled_from([True, False, False]))
    def freeze_or_not(self, is_frozen):
        if is_frozen:
            freeze(organisation_id=self.aalto.pk, reason="disputed", now=self.now)
        else:
            unfreeze(organisation_id=self.aalto.pk, operator=self.operator, reason="paid", now=self.now)
        sweep(now=self.now)

    # what always holds

    @invariant()
    def lines_come_in_order_and_stay_under_what_was_held(self):
        if not hasattr(self, "aalto"):
            return
        for rental in Rental.objects.select_related("hold"):
            lines = list(Settlement.objects.filter(rental=rental).order_by("hour"))
            assert sum(line.gross_micros for line in lines) == rental.hold.captured_micros <= rental.hold.placed_micros
            assert all(second.hour - first.hour == HOUR for first, second in pairwise(lines))
            assert rental.ready_at is not None or not lines
            assert all(line.reversed_at is None for line in lines) or rental.state == "interrupted"

    @invariant()
    def each_renter_has_paid_the_lines_that_stand(self):
        if not hasattr(self, "aalto"):
            return
        for wallet in Account.objects.filter(kind="wallet"):
            paid_in = sum_of(TopUp.objects.filter(wallet=wallet, state="paid"), "amount_micros")
            refunds = Refund.objects.filter(top_up__wallet=wallet).exclude(state="failed")
            lines = Settlement.objects.filter(rental__wallet=wallet, reversed_at=None)
            assert wallet.posted_micros == paid_in - sum_of(refunds, "amount_micros") - sum_of(lines, "gross_micros")
        earned = Settlement.objects.filter(reversed_at=None)
        owed = sum_of(Account.objects.filter(kind="payable"), "posted_micros")
        assert owed == sum_of(earned, "payable_micros")

    def teardown(self):
        try:
            if hasattr(self, "aalto"):
                self.everything_ends_settled()
        finally:
            super().teardown()

    def everything_ends_settled(self):
        for order in Order.objects.filter(state__in=Order.RESTING):
            cancel_order(organisation_id=order.organisation_id, order_id=order.pk, now=self.now)
        for rental in Rental.objects.filter(state__in=Rental.OPEN):
            request_stop(organisation_id=rental.organisation_id, rental_id=rental.pk, now=self.now)
        self.pass_time(timedelta(minutes=8))
        assert not Rental.objects.filter(state__in=Rental.OPEN).exists()
        settle_due(until=self.now, now=self.now)
        assert not Rental.objects.filter(ready_at__isnull=False, fully_settled_at=None).exists()
        assert sum_of(Hold.objects.filter(reference_type="rental"), "remaining_micros") == 0
        for rental in Rental.objects.all():
            self.lines_cover_what_was_billed(rental)
            self.count(rental.state)
        self.every_check_of_the_books_and_of_the_market_holds()
        self.each_renter_has_paid_the_lines_that_stand()

    def lines_cover_what_was_billed(self, rental: Rental) -> None:
        """Every second from the probe to the end of billing is in a line, billed or a gap; the credit is the last lines."""
        lines = list(Settlement.objects.filter(rental=rental).order_by("hour"))
        ends = [at for at in (rental.stop_requested_at, rental.paid_until, rental.unbilled_from) if at is not None]
        if rental.ready_at is None:
            assert lines == []
            return
        before_credit = [line for line in lines if rental.unbilled_from is None or line.hour < rental.unbilled_from]
        seconds = sum(line.billed_seconds + line.gap_seconds for line in before_credit)
        assert seconds == max(0, (min(ends) - rental.ready_at).total_seconds())
        if rental.state == "interrupted":
            credited = [line for line in lines if line.reversed_at is not None]
            assert credited == [*before_credit[-1:], *lines[len(before_credit) :]]

    def pass_time(self, lasts: timedelta) -> None:
        until = self.now + lasts
        pass_time(since=self.now, until=until, silent=tuple(self.silent), step=timedelta(minutes=4))
        self.now = until

    def count(self, name: str, more: int = 1) -> None:
        self.counted[name] = self.counted.get(name, 0) + more


def sum_of(rows, column: str) -> int:
    return int(rows.aggregate(total=Sum(column))["total"] or 0)


def run_it(monkeypatch, *, examples: int, steps: int) -> None:
    install(monkeypatch, GatewayDouble())
    Rentals.counted = {}
    run_state_machine_as_test(
        Rentals,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.django_db
@pytest.mark.timeout(600)
def test_whatever_happens_every_invariant_holds(monkeypatch):
    run_it(monkeypatch, examples=5, steps=25)


@pytest.mark.long
@pytest.mark.django_db
@pytest.mark.timeout(7200)
def test_whatever_happens_every_invariant_holds_in_long_runs(monkeypatch):
    run_it(monkeypatch, examples=150, steps=60)
    assert {"ready", "failed", "ended", "interrupted", "settled"} <= set(Rentals.counted), Rentals.counted
