"""Asking about numbers that are due: answers kept, nobody asked twice or inside a transaction."""

from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Barrier, Thread

import pytest
from django.db import DatabaseError, connection, transaction

from billing.models import TaxDecision, TaxDetails, VatCheck
from billing.tasks import check_vat_ids
from billing.tax.check_vat_ids import (
    ASK_AGAIN_AFTER_NO,
    FIRST_RETRY_AFTER,
    RENEW_AFTER,
    AskedTooSoon,
    check_due,
    check_now,
)
from billing.tax.decide import VatState
from billing.tax.record import ANSWER_HOLDS_FOR, decide_due, decide_for, decision_at, vat_state
from billing.tax.vies import Answer, Outcome
from tests.factories import make_organisation

NOW = datetime(2026, 11, 30, 12, 20, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


class Script:
    """A register that answers from a list and notes what it was asked."""

    name = "vies"

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str]] = []

    def ask(self, vat_id, *, trader_name):
        self.asked.append((vat_id.text, trader_name))
        return self.answers.pop(0)


VALID = Answer(outcome=Outcome.VALID, name="ORLA LABS", consultation_number="WAPIAAAAWsuGTKC9")
INVALID = Answer(outcome=Outcome.INVALID)
DOWN = Answer(outcome=Outcome.UNKNOWN, fault="MS_UNAVAILABLE")


def with_number(*, name: str = "Orla Labs GmbH", vat_id: str = "DE136695976", country: str = "DE") -> TaxDetails:
    organisation = make_organisation(name=name, country=country)
    return TaxDetails.objects.create(organisation=organisation, vat_id=vat_id, next_check_at=NOW)


@pytest.mark.django_db
def test_tax_18_an_answer_is_stored_with_its_proof_and_asked_again_before_90_days():
    details = with_number()
    register = Script(VALID)
    assert check_due(register=register, now=NOW) == 1
    assert register.asked == [("DE136695976", "Orla Labs GmbH")]
    check = VatCheck.objects.get()
    assert (check.outcome, check.name, check.consultation_number) == ("valid", "ORLA LABS", "WAPIAAAAWsuGTKC9")
    assert (check.register, check.vat_id, check.asked_at) == ("vies", "DE136695976", NOW)
    details.refresh_from_db()
    assert details.last_answer == check
    assert details.next_check_at == NOW + RENEW_AFTER < NOW + timedelta(days=90)
    assert check_due(register=register, now=NOW + RENEW_AFTER - MINUTE) == 0


@pytest.mark.django_db
def test_tax_18_an_answer_without_a_consultation_number_is_stored_too():
    with_number()
    check_due(register=Script(Answer(outcome=Outcome.VALID)), now=NOW)
    assert VatCheck.objects.get().consultation_number == ""
    assert decision_at(TaxDetails.objects.get().organisation_id, NOW).treatment == "reverse_charge"


@pytest.mark.django_db
def test_tax_04_two_faults_then_yes_charge_vat_and_then_reverse_charge_from_the_next_hour():
    details = with_number(country="FI", vat_id="FI20774740")
    organisation = details.organisation
    decide_for(organisation=organisation, now=NOW)
    register = Script(DOWN, replace(DOWN, fault="MS_MAX_CONCURRENT_REQ"), VALID)
    at = NOW
    for expected in (FIRST_RETRY_AFTER, 2 * FIRST_RETRY_AFTER):
        assert check_due(register=register, now=at) == 1
        held = decision_at(organisation.pk, at)
        assert (held.en16931_code, str(held.rate_percent), held.reasons) == ("S", "25.50", ["vat_id_unknown"])
        details.refresh_from_db()
        assert details.next_check_at == at + expected
        assert check_due(register=register, now=details.next_check_at - MINUTE) == 0
        at = details.next_check_at
    assert check_due(register=register, now=at) == 1
    assert [check.fault for check in VatCheck.objects.order_by("pk")] == ["MS_UNAVAILABLE", "MS_MAX_CONCURRENT_REQ", ""]
    next_hour = at.replace(minute=0) + timedelta(hours=1)
    assert decision_at(organisation.pk, next_hour - MINUTE).en16931_code == "S"
    now_valid = decision_at(organisation.pk, next_hour)
    assert (now_valid.en16931_code, now_valid.vat_check) == ("AE", VatCheck.objects.last())
    details.refresh_from_db()
    assert details.unanswered_checks == 0


@pytest.mark.django_db
def test_a_no_is_asked_again_after_a_week():
    details = with_number()
    check_due(register=Script(INVALID), now=NOW)
    details.refresh_from_db()
    assert details.next_check_at == NOW + ASK_AGAIN_AFTER_NO
    assert decision_at(details.organisation_id, NOW).reasons == ["vat_id_invalid"]


@pytest.mark.django_db
def test_no_answer_does_not_undo_a_yes_until_90_days_are_over():
    details = with_number()
    check_due(register=Script(VALID), now=NOW)
    renewal = NOW + RENEW_AFTER
    check_due(register=Script(DOWN), now=renewal)
    assert decision_at(details.organisation_id, renewal + timedelta(hours=1)).en16931_code == "AE"
    details = TaxDetails.objects.select_related("organisation", "last_answer").get()
    assert vat_state(details, at=NOW + ANSWER_HOLDS_FOR - MINUTE) == VatState.VALID
    assert vat_state(details, at=NOW + ANSWER_HOLDS_FOR) == VatState.UNKNOWN
    assert decide_due(now=NOW + ANSWER_HOLDS_FOR) == 1
    expired = decision_at(details.organisation_id, NOW + ANSWER_HOLDS_FOR + timedelta(hours=1))
    assert (expired.en16931_code, expired.reasons) == ("S", ["vat_id_unknown"])


@pytest.mark.django_db
def test_tax_02_a_number_under_another_name_is_no_proof_until_the_name_is_right():
    details = with_number(name="Bolt Labs GmbH")
    check_due(register=Script(VALID), now=NOW)
    assert decision_at(details.organisation_id, NOW).reasons == ["vat_id_other_name"]
    organisation = details.organisation
    organisation.name = "Orla Labs"
    organisation.save()
    assert decide_due(now=NOW) == 1
    assert decision_at(organisation.pk, NOW + timedelta(hours=1)).en16931_code == "AE"


@pytest.mark.django_db
def test_an_answer_about_a_number_that_was_replaced_meanwhile_counts_for_nothing():
    details = with_number()

    class Slow(Script):
        def ask(self, vat_id, *, trader_name):
            TaxDetails.objects.update(vat_id="DE129273398", next_check_at=NOW)
            return super().ask(vat_id, trader_name=trader_name)

    check_due(register=Slow(VALID), now=NOW)
    details.refresh_from_db()
    assert (details.last_answer, details.next_check_at) == (None, NOW)
    assert VatCheck.objects.get().vat_id == "DE136695976"
    assert not TaxDecision.objects.exists()


@pytest.mark.django_db
def test_an_answer_counts_from_when_it_came_not_from_when_it_was_asked_for():
    details = with_number()
    late = NOW.replace(minute=59, second=58)
    decide_for(organisation=details.organisation, now=late)
    check_due(register=Script(replace(VALID, waited=timedelta(seconds=8))), now=late)
    one = late.replace(minute=0, second=0) + timedelta(hours=1)
    assert decision_at(details.organisation_id, one).en16931_code == "S"
    assert decision_at(details.organisation_id, one + timedelta(hours=1)).en16931_code == "AE"


@pytest.mark.django_db
def test_somebody_who_wants_to_know_is_answered_once_a_minute():
    details = with_number()
    register = Script(DOWN, VALID)
    check_now(organisation_id=details.organisation_id, register=register, now=NOW)
    with pytest.raises(AskedTooSoon):
        check_now(organisation_id=details.organisation_id, register=register, now=NOW + MINUTE / 2)
    check_now(organisation_id=details.organisation_id, register=register, now=NOW + MINUTE)
    assert VatCheck.objects.count() == 2


@pytest.mark.django_db
def test_without_a_number_that_a_register_knows_nobody_is_asked():
    organisation = make_organisation(country="GB")
    TaxDetails.objects.create(organisation=organisation, vat_id="GB980780684")
    check_now(organisation_id=organisation.pk, register=Script(), now=NOW)
    assert check_due(register=Script(), now=NOW) == 0


@pytest.mark.django_db
def test_one_number_whose_tax_cannot_be_decided_does_not_hold_up_the_next(caplog):
    first, second = with_number(name="Nowhere"), with_number(name="Orla Labs")
    type(first.organisation).objects.filter(pk=first.organisation_id).update(country="ZZ")
    assert check_due(register=Script(VALID, VALID), now=NOW) == 2
    assert VatCheck.objects.count() == 2
    assert "was not decided" in caplog.text
    assert decision_at(second.organisation_id, NOW).en16931_code == "AE"


@pytest.mark.django_db
def test_the_task_asks_the_register_of_the_settings():
    details = with_number()
    TaxDetails.objects.update(next_check_at=datetime.now(UTC) - MINUTE)
    check_vat_ids()
    assert (VatCheck.objects.get().register, VatCheck.objects.get().outcome) == ("sample", "valid")
    details.refresh_from_db()
    assert details.last_answer is not None


@pytest.mark.django_db
def test_answers_only_grow():
    with_number()
    check_due(register=Script(VALID), now=NOW)
    for change in (
        lambda: VatCheck.objects.update(outcome="invalid"),
        lambda: VatCheck.objects.all()._raw_delete("default"),
    ):
        with pytest.raises(DatabaseError), transaction.atomic():
            change()


@pytest.mark.django_db(transaction=True)
def test_asking_holds_no_transaction_and_two_workers_do_not_ask_the_same():
    details = with_number()
    register, gate = Script(VALID, VALID), Barrier(2)

    class Watched(Script):
        def ask(self, vat_id, *, trader_name):
            assert not connection.in_atomic_block
            return register.ask(vat_id, trader_name=trader_name)

    answered: list[int] = []

    @contextmanager
    def own_connection():
        try:
            yield
        finally:
            connection.close()

    def work() -> None:
        with own_connection():
            gate.wait()
            answered.append(check_due(register=Watched(), now=NOW))

    threads = [Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answered) == [0, 1]
    assert VatCheck.objects.count() == len(register.asked) == 1
    assert decision_at(details.organisation_id, NOW).en16931_code == "AE"
