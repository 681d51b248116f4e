"""A state machine over every verb, against a plain model in Python: the two never differ by a micro."""

from dataclasses import dataclass

import pytest
from django.db import transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from billing import holds, ledger
from billing.accounts import open_account
from billing.checks import run_checks
from billing.ledger import AlreadyReversed, HoldExceeded, InsufficientFunds, KeyReused, Line
from billing.models import Account, Hold
from tests.billing.conftest import NOW, wallet_of

amounts = st.integers(1, 40)


@dataclass
class ModelHold:
    wallet: str
    remaining: int
    expires: bool


class Books(RuleBasedStateMachine):
    entries = Bundle("entries")
    open_holds = Bundle("open_holds")

    def __init__(self):
        super().__init__()
        self.example = transaction.atomic()  # each example starts from the same rows
        self.example.__enter__()
        self.posted: dict[str, int] = {}

    @initialize()
    def people(self):
        self.account = {name: wallet_of(name) for name in ("ana", "bo")}
        self.account["revenue"] = open_account(kind=Account.Kind.REVENUE, currency="EUR")
        self.account["losses"] = open_account(kind=Account.Kind.LOSSES, currency="EUR")
        self.posted = dict.fromkeys(self.account, 0)
        self.held = {"ana": 0, "bo": 0}
        self.moves: dict[int, list[tuple[str, int]]] = {}
        self.holds: dict[int, ModelHold] = {}
        self.keys = 0

    def key(self) -> str:
        self.keys += 1
        return f"k{self.keys}"

    def covered(self, moves):
        after = dict(self.posted)
        for name, amount in moves:
            after[name] += amount
        return all(after[name] >= self.held[name] for name in self.held)

    def attempt(self, action, allowed, *refusals):
        """Do it in a transaction of its own; what the model does not allow must be refused for the right reason."""
        try:
            with transaction.atomic():
                result = action()
        except refusals:
            assert not allowed
            return None
        assert allowed
        return result

    def post(self, moves):
        lines = [Line(self.account[name].pk, amount) for name, amount in moves]
        key = self.key()

        def write():
            return ledger.post(key=key, kind="grant", lines=lines, effective_at=NOW)

        entry = self.attempt(write, self.covered(moves), InsufficientFunds)
        if entry is None:
            return multiple()
        assert write() == entry, "asking twice is asking once"
        for name, amount in moves:
            self.posted[name] += amount
        self.moves[entry] = moves
        return entry

    @rule(target=entries, who=st.sampled_from(["ana", "bo"]), amount=amounts)
    def grant(self, who, amount):
        return self.post([(who, amount), ("losses", -amount)])

    @rule(target=entries, amount=amounts, rest=amounts)
    def pay(self, amount, rest):
        return self.post([("ana", -amount - rest), ("bo", amount), ("revenue", rest)])

    @rule(entry=consumes(entries))
    def reverse(self, entry):
        moves = [(name, -amount) for name, amount in self.moves[entry]]
        key = self.key()
        undone = self.attempt(
            lambda: ledger.reverse(key=key, entry_id=entry, effective_at=NOW), self.covered(moves), InsufficientFunds
        )
        if undone is not None:
            for name, amount in moves:
                self.posted[name] += amount
            self.attempt(
                lambda: ledger.reverse(key=self.key(), entry_id=entry, effective_at=NOW), False, AlreadyReversed
            )

    @rule(target=open_holds, who=st.sampled_from(["ana", "bo"]), amount=amounts, expires=st.booleans())
    def hold(self, who, amount, expires):
        key = self.key()

        def place(micros=amount):
            return holds.place_hold(
                key=key, account_id=self.account[who].pk, amount_micros=micros, expires_at=NOW if expires else None
            )

        hold = self.attempt(place, self.posted[who] - self.held[who] >= amount, InsufficientFunds)
        if hold is None:
            return multiple()
        assert place() == hold
        self.attempt(lambda: place(amount + 1), False, KeyReused)
        self.held[who] += amount
        self.holds[hold] = ModelHold(who, amount, expires)
        return hold

    @rule(hold=open_holds, amount=amounts)
    def capture(self, hold, amount):
        known, key = self.holds[hold], self.key()
        lines = [Line(self.account["revenue"].pk, amount)]
        entry = self.attempt(
            lambda: holds.capture(
                key=key, kind="settlement", hold_id=hold, amount_micros=amount, lines=lines, effective_at=NOW
            ),
            known.remaining >= amount,
            HoldExceeded,
        )
        if entry is not None:
            known.remaining -= amount
            self.held[known.wallet] -= amount
            self.posted[known.wallet] -= amount
            self.posted["revenue"] += amount

    @rule(hold=open_holds, amount=st.none() | amounts)
    def release(self, hold, amount):
        known, key = self.holds[hold], self.key()
        allowed = amount is None or known.remaining >= amount
        released = self.attempt(
            lambda: holds.release(key=key, hold_id=hold, amount_micros=amount), allowed, HoldExceeded
        )
        if released is not None:
            assert released == (known.remaining if amount is None else amount)
            known.remaining -= released
            self.held[known.wallet] -= released

    @rule()
    def expire(self):
        holds.release_expired(now=NOW)
        for known in self.holds.values():
            if known.expires:
                self.held[known.wallet] -= known.remaining
                known.remaining = 0

    @rule()
    def roll_up(self):
        ledger.roll_up(self.account["revenue"].pk)

    @invariant()
    def the_same_by_the_model_and_by_the_rows(self):
        if not self.posted:
            return
        assert {name: ledger.balance_micros(account.pk) for name, account in self.account.items()} == self.posted
        for name in self.held:
            assert Account.objects.get(pk=self.account[name].pk).held_micros == self.held[name]
        assert dict(Hold.objects.values_list("pk", "remaining_micros")) == {
            hold: known.remaining for hold, known in self.holds.items()
        }

    def teardown(self):
        try:
            assert all(check.ok for check in run_checks(now=NOW))
        finally:
            transaction.set_rollback(True)
            self.example.__exit__(None, None, None)


@pytest.mark.django_db
def test_the_ledger_and_a_plain_model_never_differ():
    run_state_machine_as_test(
        Books,
        settings=settings(
            max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


@pytest.mark.long
@pytest.mark.django_db
@pytest.mark.timeout(1800)
def test_the_ledger_and_a_plain_model_never_differ_in_long_runs():
    run_state_machine_as_test(
        Books,
        settings=settings(
            max_examples=400, stateful_step_count=60, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
