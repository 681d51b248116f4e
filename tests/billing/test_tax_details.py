"""What an organisation tells, what a person of ours rules, and both at once with the sweep."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from threading import Barrier, Thread
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from billing.models import TaxDecision, TaxDetails, VatCheck
from billing.tax.decide import AreaRuling
from billing.tax.details import NoAreaToRule, Told, rule_on_area, store_details, tell_and_check
from billing.tax.record import decide_due, decide_for, decision_at, preview
from billing.tax.vies import SampleRegister
from tests.factories import make_member, make_operator, make_organisation
from users.models import AuditRecord, Organisation

NOW = datetime(2026, 11, 30, 12, 20, tzinfo=UTC)
TWELVE = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def answered(organisation: Organisation) -> None:
    details = TaxDetails.objects.get(organisation=organisation)
    check = VatCheck.objects.create(
        organisation=organisation, vat_id=details.vat_id, register="vies", outcome="valid", asked_at=NOW
    )
    TaxDetails.objects.filter(pk=details.pk).update(last_answer=check)


def told(**values: str) -> Told:
    return Told(**{"country": "NL", "postcode": "", "register_number": "", "vat_id": "", **values})


@pytest.mark.django_db
def test_what_is_told_is_stored_recorded_and_decided():
    organisation = make_organisation(type="consumer")
    person = make_member(organisation=organisation)
    decide_for(organisation=organisation, now=NOW)
    assert store_details(organisation_id=organisation.pk, told=told(country="FI"), told_by=person, now=NOW) is False
    organisation.refresh_from_db()
    assert organisation.country == "FI"
    record = AuditRecord.objects.get(action="tax.details_changed")
    assert (record.actor, record.before, record.after) == (person, {"country": "NL"}, {"country": "FI"})
    assert decision_at(organisation.pk, TWELVE + HOUR).rate_percent == Decimal("25.5")
    assert store_details(organisation_id=organisation.pk, told=told(country="FI"), told_by=person, now=NOW) is None
    assert AuditRecord.objects.filter(action="tax.details_changed").count() == 1


@pytest.mark.django_db
def test_a_new_number_forgets_the_answer_about_the_old_one_and_is_due_at_once():
    organisation = make_organisation(country="DE")
    TaxDetails.objects.create(organisation=organisation, vat_id="DE136695976")
    answered(organisation)
    person = make_member(organisation=organisation)
    new = told(country="DE", vat_id="DE129273398")
    assert store_details(organisation_id=organisation.pk, told=new, told_by=person, now=NOW) is True
    details = TaxDetails.objects.get()
    assert (details.vat_id, details.last_answer, details.next_check_at) == ("DE129273398", None, NOW)
    gone = told(country="DE")
    assert store_details(organisation_id=organisation.pk, told=gone, told_by=person, now=NOW) is False
    assert TaxDetails.objects.get().next_check_at is None


@pytest.mark.django_db
def test_a_person_of_ours_ends_the_review_of_an_area_with_a_reason():
    organisation = make_organisation(country="ES", postcode="35001", register_number="B12345674")
    operator = make_operator()
    assert decide_for(organisation=organisation, now=NOW).treatment == "review"
    with pytest.raises(CommandError):
        call_command("rule_tax_area", organisation.pk, "outside", operator=operator.email, reason=" ")
    with pytest.raises(CommandError):
        call_command("rule_tax_area", organisation.pk, "outside", operator=make_member().email, reason="x")
    call_command("rule_tax_area", organisation.pk, "outside", operator=operator.email, reason="Registered for IGIC")
    record = AuditRecord.objects.get(action="tax.area_ruled")
    assert (record.actor, record.reason, record.after) == (operator, "Registered for IGIC", {"area_ruling": "outside"})
    assert preview(organisation, now=NOW).en16931_code == "O"


@pytest.mark.django_db
def test_a_ruling_ends_with_the_address_it_was_about():
    organisation = make_organisation(country="ES", postcode="35001")
    operator, person = make_operator(), make_member(organisation=organisation)
    rule_on_area(
        organisation_id=organisation.pk, ruling=AreaRuling.MAINLAND, operator=operator, reason="seat in Madrid", now=NOW
    )
    assert TaxDetails.objects.get().area_ruling == "mainland"
    moved = told(country="ES", postcode="51001")
    store_details(organisation_id=organisation.pk, told=moved, told_by=person, now=NOW)
    assert TaxDetails.objects.get().area_ruling == ""
    assert decision_at(organisation.pk, TWELVE + HOUR).treatment == "review"
    with pytest.raises(NoAreaToRule):
        rule_on_area(
            organisation_id=make_organisation(name="b").pk,
            ruling=AreaRuling.MAINLAND,
            operator=operator,
            reason="x",
            now=NOW,
        )


@pytest.mark.django_db
def test_a_number_is_asked_about_in_the_same_breath_and_decided_once():
    organisation = make_organisation(country="DE")
    person = make_member(organisation=organisation)
    new = told(country="DE", vat_id="DE136695976")
    arguments: dict[str, Any] = {
        "organisation_id": organisation.pk,
        "told": new,
        "told_by": person,
        "register": SampleRegister(),
    }
    assert tell_and_check(**arguments, now=NOW) is True
    assert decision_at(organisation.pk, NOW).en16931_code == "AE"
    assert TaxDecision.objects.count() == VatCheck.objects.count() == 1
    assert tell_and_check(**arguments, now=NOW) is False


# --- Races -----------------------------------------------------------------------------------------------------


def together(*works: Any) -> None:
    gate = Barrier(len(works))
    failures: list[BaseException] = []

    def run(work: Any) -> None:
        try:
            gate.wait()
            work()
        except BaseException as why:
            failures.append(why)
        finally:
            connection.close()

    threads = [Thread(target=run, args=[work]) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.django_db(transaction=True)
def test_deciding_eight_times_at_once_stores_one_decision():
    organisation = make_organisation()
    together(*[lambda: decide_for(organisation=organisation, now=NOW)] * 8)
    only = TaxDecision.objects.get()
    assert (only.valid_from, only.valid_to, only.rate_percent) == (TWELVE, None, Decimal(21))


@pytest.mark.django_db(transaction=True)
def test_a_change_and_the_sweep_at_once_end_with_what_was_told():
    organisation = make_organisation(type="consumer")
    person = make_member(organisation=organisation)
    decide_for(organisation=organisation, now=NOW)
    for country in ("FI", "DE", "SE", "NL", "EE"):
        together(
            lambda country=country: store_details(
                organisation_id=organisation.pk, told=told(country=country), told_by=person, now=NOW
            ),
            lambda: decide_for(organisation=organisation, now=NOW),
            lambda: decide_due(now=NOW),
        )
        assert decision_at(organisation.pk, TWELVE + HOUR).buyer_country == country
    rows = TaxDecision.objects.filter(organisation=organisation, valid_to=None)
    assert rows.get().buyer_country == "EE"


def _somebody_waits_for_us() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))")
        return cursor.fetchone() is not None


@pytest.mark.django_db(transaction=True)
def test_whoever_waits_for_a_change_decides_from_what_it_left():
    organisation = make_organisation(country="US")
    person = make_member(organisation=organisation)
    decide_for(organisation=organisation, now=NOW)

    def decide() -> None:
        decide_for(organisation=organisation, now=NOW)
        connection.close()

    other, has_waited = Thread(target=decide), False
    with transaction.atomic():
        store_details(
            organisation_id=organisation.pk,
            told=told(country="US", register_number="12-3456789"),
            told_by=person,
            now=NOW,
        )
        other.start()
        while other.is_alive() and not has_waited:
            has_waited = _somebody_waits_for_us()
    other.join()
    assert has_waited
    assert decision_at(organisation.pk, TWELVE + HOUR).treatment == "outside_scope"
