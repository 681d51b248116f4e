"""Whatever order messages come in, and however often: one end, one credit.

A late `failed` that undoes `paid`, or an event applied before the one it follows: failure kind 21
(laravel/cashier-stripe#1201, getlago/lago-api#3703).
"""

import random
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import pytest
from django.db import transaction

from billing import ledger
from billing.models import Account, GatewayEvent, JournalEntry, Refund, TopUp
from billing.topups.apply_event import apply_due_events
from billing.topups.start import start_top_up
from billing.topups.take_event import take_event
from tests.billing.conftest import NOW, UNIT
from tests.billing.gateway_double import SOON, GatewayDouble, event, install
from tests.factories import make_organisation

pytestmark = pytest.mark.django_db
KINDS = [
    "checkout.session.completed",
    "payment_intent.succeeded",
    "checkout.session.async_payment_succeeded",
    "payment_intent.payment_failed",
    "checkout.session.expired",
    "charge.refunded",
]


@pytest.fixture
def gateway(monkeypatch) -> GatewayDouble:
    double = GatewayDouble()
    install(monkeypatch, double)
    return double


def start() -> TopUp:
    return start_top_up(
        organisation=make_organisation(),
        currency="EUR",
        amount=Decimal(100),
        created_by=None,
        now=NOW,
        return_url_of=lambda top_up_id: f"https://bourse.example/{top_up_id}/",
        locale="en",
    )


def message(kind: str, top_up: TopUp, payment_id: str, *, copy: int = 0):
    if kind == "charge.refunded":
        return event(kind, "ch_1", event_id=f"evt_{kind}_{copy}", payment_intent_id=payment_id)
    about = payment_id if kind.startswith("payment_intent") else top_up.checkout_session_id
    return event(kind, about or "", event_id=f"evt_{kind}_{copy}")


def apply(kind: str, top_up: TopUp, payment_id: str, *, copy: int = 0) -> None:
    take_event(message(kind, top_up, payment_id, copy=copy), now=NOW)
    assert apply_due_events(now=SOON) == 1, GatewayEvent.objects.filter(applied_at=None).values_list("last_error")


def end_of(top_up: TopUp) -> tuple[object, ...]:
    top_up.refresh_from_db()
    balances = {account.kind: ledger.balance_micros(account.pk) // UNIT for account in Account.objects.all()}
    refunds = list(Refund.objects.values_list("state", "amount_micros"))
    entries = sorted(JournalEntry.objects.values_list("kind", flat=True))
    return top_up.state, top_up.refunded_micros, {k: v for k, v in balances.items() if v}, refunds, entries


SAID = re.findall(
    r"^\| (open|complete|expired) \| (\w+) \| (\w+) \|$",
    (Path(__file__).resolve().parent.parent.parent / "docs" / "money.md").read_text(),
    re.MULTILINE,
)


@pytest.mark.parametrize(("page", "payment", "state"), SAID)
def test_the_document_says_what_a_top_up_becomes(gateway, page, payment, state):
    top_up = start()
    gateway.arrange(top_up.pk, page=page, payment="" if payment == "none" else payment)
    apply("checkout.session.completed", top_up, "")
    assert end_of(top_up)[0] == state


def test_the_document_says_how_much_may_be_paid_in(settings):
    document = (Path(__file__).resolve().parent.parent.parent / "docs" / "money.md").read_text()
    tiers = re.findall(r"^\| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", document, re.MULTILINE)
    assert [tuple(map(int, tier)) for tier in tiers] == settings.TOP_UP_TIERS
    assert len(SAID) == 9
    assert f"The smallest top-up is {settings.TOP_UP_MINIMUM}, and at most {settings.TOP_UPS_PER_HOUR}" in document


class Undo(Exception):
    """Ends one order's transaction, so that the next begins where this one began."""


def ends_of(top_up: TopUp, payment_id: str, kinds: list[str], *, orders: Iterable[Sequence[str]] | None = None):
    """Apply the messages in every order, or in these; return the different ends.

    Where the rows are as they were on another way, with the same messages left, the rest is not walked again.
    """
    ends: list[tuple[object, ...]] = []
    known: list[object] = []

    def walk(left: Sequence[str], *, is_fixed: bool) -> None:
        """Apply one of those left, then the others; go back and apply the next."""
        end = end_of(top_up)
        row = {**TopUp.objects.values().get(), "credit_entry_id": None}  # its number grows with every try
        place = (end, row, sorted(left))
        if not left and end not in ends:
            ends.append(end)
        if place in known and not is_fixed:
            return
        known.append(place)
        for number, kind in enumerate(left[:1] if is_fixed else left):
            with suppress(Undo), transaction.atomic():
                apply(kind, top_up, payment_id, copy=len(left))
                walk([*left[:number], *left[number + 1 :]], is_fixed=is_fixed)
                raise Undo

    for order in orders or [kinds]:
        walk(order, is_fixed=orders is not None)
    top_up.refresh_from_db()
    return ends


def test_every_order_of_six_messages_ends_the_same(gateway):
    top_up = start()
    payment = gateway.pay(top_up.pk)
    gateway.refund(payment, amount_micros=40 * UNIT)
    ends = ends_of(top_up, payment.id, KINDS)
    assert ends == [
        (
            "paid",
            40 * UNIT,
            {"wallet": 60, "gateway": -60},
            [("succeeded", 40 * UNIT)],
            ["refund", "refund", "topup"],
        )
    ]


@pytest.mark.parametrize("seed", range(5))
def test_orders_with_every_message_repeated_end_the_same(gateway, seed):
    top_up = start()
    payment = gateway.pay(top_up.pk)
    gateway.refund(payment, amount_micros=40 * UNIT)
    dice = random.Random(seed)
    orders = [dice.sample(KINDS * 3, len(KINDS) * 3) for _ in range(6)]
    [end] = ends_of(top_up, payment.id, KINDS, orders=orders)
    assert end[0] == "paid"
    assert end[2] == {"wallet": 60, "gateway": -60}


def test_any_part_of_the_messages_is_enough(gateway):
    """Each of those that say that money came, alone, credits."""
    top_up = start()
    payment = gateway.pay(top_up.pk)
    ends = ends_of(top_up, payment.id, KINDS, orders=[[kind] for kind in KINDS])
    assert ends == [("paid", 0, {"wallet": 100, "gateway": -100}, [], ["topup"])]


def test_a_completed_page_without_money_credits_nothing_until_the_money_is_there(gateway):
    """An unpaid session stored as captured for good (anolilab/lunora#627); a credit before it was confirmed."""
    top_up = start()
    payment = gateway.debit(top_up.pk)
    for copy, kind in enumerate(("checkout.session.completed", "payment_intent.processing")):
        apply(kind, top_up, payment.id, copy=copy)
        assert end_of(top_up) == ("processing", 0, {}, [], [])
    gateway.debit_succeeds(top_up.pk)
    apply("checkout.session.async_payment_succeeded", top_up, payment.id)
    assert end_of(top_up) == ("paid", 0, {"wallet": 100, "gateway": -100}, [], ["topup"])


def test_a_debit_that_fails_credits_nothing(gateway):
    top_up = start()
    payment = gateway.debit(top_up.pk)
    apply("checkout.session.completed", top_up, payment.id)
    gateway.debit_fails(top_up.pk)
    apply("checkout.session.async_payment_failed", top_up, payment.id)
    assert end_of(top_up) == ("failed", 0, {}, [], [])


def test_a_declined_card_leaves_the_page_open_for_another(gateway):
    top_up = start()
    payment = gateway.decline(top_up.pk)
    apply("payment_intent.payment_failed", top_up, payment.id)
    assert end_of(top_up)[0] == "open"
    gateway.pay(top_up.pk)
    apply("payment_intent.succeeded", top_up, payment.id)
    assert end_of(top_up)[0] == "paid"


@pytest.mark.parametrize("ended", ["failed", "expired"])
def test_a_payment_that_arrives_after_the_end_counts_and_stays(gateway, ended):
    top_up = start()
    payment = gateway.debit(top_up.pk)
    TopUp.objects.filter(pk=top_up.pk).update(state=ended)
    gateway.debit_succeeds(top_up.pk)
    apply("payment_intent.succeeded", top_up, payment.id)
    assert end_of(top_up)[0] == "paid"
    gateway.debit_fails(top_up.pk)  # the gateway itself changes its mind
    for copy, kind in enumerate(("payment_intent.payment_failed", "checkout.session.async_payment_failed")):
        apply(kind, top_up, payment.id, copy=copy)
    assert end_of(top_up) == ("paid", 0, {"wallet": 100, "gateway": -100}, [], ["topup"])


def test_an_expired_page_in_either_order_with_its_cancelled_payment(gateway):
    top_up = start()
    payment = gateway.decline(top_up.pk)
    gateway.expire(top_up.checkout_session_id or "")
    kinds = ["checkout.session.expired", "payment_intent.canceled", "payment_intent.payment_failed"]
    ends = ends_of(top_up, payment.id, kinds)
    assert ends == [("expired", 0, {}, [], [])]


def test_a_refund_or_dispute_that_is_told_before_its_payment_waits_for_nothing(gateway):
    top_up = start()
    payment = gateway.pay(top_up.pk)
    refund = gateway.refund(payment, amount_micros=10 * UNIT)
    dispute = gateway.dispute(payment, amount_micros=90 * UNIT)
    take_event(event("refund.updated", refund.id), now=NOW)
    take_event(event("charge.dispute.created", dispute.id), now=NOW)
    assert apply_due_events(now=SOON) == 2
    assert end_of(top_up)[:3] == ("paid", 10 * UNIT, {})
    assert JournalEntry.objects.filter(kind="topup").count() == 1


def test_a_page_of_someone_else_on_the_same_account_changes_nothing_here(gateway):
    top_up = start()
    gateway.create_checkout(
        key="theirs",
        top_up_id="",
        amount_micros=5 * UNIT,
        currency="EUR",
        customer_id="cus_theirs",
        expires_at=SOON,
    )
    [theirs] = [session.id for session in gateway.sessions.values() if session.top_up_id == ""]
    take_event(event("checkout.session.expired", theirs), now=NOW)
    assert apply_due_events(now=SOON) == 1
    assert end_of(top_up)[0] == "open"


def test_a_second_page_that_names_our_top_up_does_not_become_its_page(gateway):
    top_up = start()
    gateway.create_checkout(
        key="second",
        top_up_id=str(top_up.pk),
        amount_micros=5 * UNIT,
        currency="EUR",
        customer_id="cus_theirs",
        expires_at=SOON,
    )
    second = next(session.id for session in gateway.sessions.values() if session.id != top_up.checkout_session_id)
    gateway.expire(second)
    take_event(event("checkout.session.expired", second), now=NOW)
    assert apply_due_events(now=SOON) == 1
    assert end_of(top_up)[0] == "open"
