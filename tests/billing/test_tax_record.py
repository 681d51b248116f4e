"""Stored decisions: one for every hour, forward only, planned ahead, by one at a time."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from billing.models import TaxDecision, TaxDetails, VatCheck
from billing.tasks import decide_taxes
from billing.tax.rates import read_rates
from billing.tax.record import NotDecided, decide_due, decide_for, decision_at, next_hour, preview, tax_details_changed
from billing.tax.seller import SellerUnknown, seller
from tests.factories import make_organisation
from users.models import Organisation

NOW = datetime(2026, 11, 30, 12, 20, tzinfo=UTC)
TWELVE = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
HEADER = "country,standard_rate,valid_from,source_url"


def periods(organisation: Organisation) -> list[tuple[Any, ...]]:
    """Return (from, to, rate) of the decisions that held or will, in order."""
    rows = TaxDecision.objects.filter(organisation=organisation).exclude(valid_to=F("valid_from"))
    return [(row.valid_from, row.valid_to, row.rate_percent) for row in rows.order_by("valid_from")]


def move(organisation: Organisation, **values: Any) -> None:
    Organisation.objects.filter(pk=organisation.pk).update(**values)
    organisation.refresh_from_db()


def answered(organisation: Organisation, *, outcome: str = "valid", asked_at: datetime = NOW) -> None:
    details, _ = TaxDetails.objects.get_or_create(organisation=organisation)
    check = VatCheck.objects.create(
        organisation=organisation, vat_id=details.vat_id, register="vies", outcome=outcome, asked_at=asked_at
    )
    TaxDetails.objects.filter(pk=details.pk).update(last_answer=check)


# --- When a decision holds -------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_the_first_decision_covers_the_hour_in_which_it_is_made():
    organisation = make_organisation()
    with pytest.raises(NotDecided):
        decision_at(organisation.pk, NOW)
    found = decide_for(organisation=organisation, now=NOW)
    assert (found.valid_from, found.valid_to, found.rate_percent) == (TWELVE, None, Decimal("21.00"))
    assert (found.treatment, found.may_buy) == ("domestic", True)
    assert decision_at(organisation.pk, TWELVE) == found
    with pytest.raises(NotDecided):
        decision_at(organisation.pk, TWELVE - SECOND)


@pytest.mark.django_db
def test_a_second_run_changes_nothing():
    organisation = make_organisation()
    first = decide_for(organisation=organisation, now=NOW)
    assert decide_for(organisation=organisation, now=NOW + 5 * HOUR) == first
    assert TaxDecision.objects.count() == 1


@pytest.mark.django_db
def test_tax_17_a_change_counts_from_the_next_full_hour():
    organisation = make_organisation(type="consumer")
    decide_for(organisation=organisation, now=NOW)
    move(organisation, country="FI")
    held = decide_for(organisation=organisation, now=NOW + HOUR)
    assert held.rate_percent == 21
    assert periods(organisation) == [
        (TWELVE, TWELVE + 2 * HOUR, Decimal("21.00")),
        (TWELVE + 2 * HOUR, None, Decimal("25.50")),
    ]


@pytest.mark.django_db
def test_tax_17_on_the_stroke_of_the_hour_that_hour_has_begun():
    organisation = make_organisation(type="consumer")
    decide_for(organisation=organisation, now=TWELVE)
    move(organisation, country="FI")
    tax_details_changed(organisation_id=organisation.pk, now=TWELVE + HOUR)
    assert decision_at(organisation.pk, TWELVE + HOUR).country_of_tax == "NL"
    assert decision_at(organisation.pk, TWELVE + 2 * HOUR).country_of_tax == "FI"


@pytest.mark.django_db
def test_a_change_taken_back_within_the_hour_leaves_no_gap_and_an_empty_period():
    organisation = make_organisation(type="consumer")
    decide_for(organisation=organisation, now=NOW)
    for country in ("FI", "DE", "NL"):
        move(organisation, country=country)
        decide_for(organisation=organisation, now=NOW + SECOND)
    one = TWELVE + HOUR
    assert periods(organisation) == [(TWELVE, one, Decimal("21.00")), (one, None, Decimal("21.00"))]
    replaced = TaxDecision.objects.filter(valid_to=F("valid_from"))
    assert [row.country_of_tax for row in replaced.order_by("pk")] == ["FI", "DE"]


@pytest.mark.django_db
def test_known_changes_of_the_rate_are_stored_ahead_from_local_midnight():
    organisation = make_organisation(country="EE", type="consumer")
    before = datetime(2025, 5, 3, 8, 30, tzinfo=UTC)
    decide_for(organisation=organisation, now=before)
    midnight = datetime(2025, 6, 30, 21, tzinfo=UTC)
    assert periods(organisation) == [
        (before.replace(minute=0), midnight, Decimal("22.00")),
        (midnight, None, Decimal("24.00")),
    ]
    assert decision_at(organisation.pk, midnight - SECOND).rate_percent == 22
    assert decision_at(organisation.pk, midnight).rate_percent == 24
    assert decide_due(now=before + HOUR) == 0


@pytest.mark.django_db
def test_a_row_added_to_the_table_reaches_everybody_it_concerns_and_nobody_else():
    estonian, dutch = make_organisation(name="a", country="EE", type="consumer"), make_organisation(name="b")
    assert decide_due(now=NOW) == 2
    longer = read_rates([HEADER, "NL,21,2012-10-01,x", "EE,24,2025-07-01,x", "EE,26,2027-01-01,x"])
    assert decide_due(now=NOW, rates=longer) == 1
    midnight = datetime(2026, 12, 31, 22, tzinfo=UTC)
    assert periods(estonian) == [
        (TWELVE, TWELVE + HOUR, Decimal("24.00")),
        (TWELVE + HOUR, midnight, Decimal("24.00")),
        (midnight, None, Decimal("26.00")),
    ]
    assert decide_due(now=NOW, rates=longer) == 0
    assert periods(dutch) == [(TWELVE, None, Decimal("21.00"))]


@pytest.mark.django_db
def test_a_row_that_came_late_counts_from_the_next_hour_and_not_backwards():
    organisation = make_organisation(country="EE", type="consumer")
    at = datetime(2025, 7, 2, 9, 10, tzinfo=UTC)
    old = read_rates([HEADER, "EE,22,2024-01-01,x"])
    decide_for(organisation=organisation, now=at, rates=old)
    decide_due(now=at + HOUR)
    nine, eleven = at.replace(minute=0), at.replace(hour=11, minute=0)
    assert periods(organisation) == [(nine, eleven, Decimal("22.00")), (eleven, None, Decimal("24.00"))]


@pytest.mark.django_db
def test_a_change_of_country_replaces_what_was_planned():
    organisation = make_organisation(country="EE", type="consumer")
    before = datetime(2025, 5, 3, 8, 30, tzinfo=UTC)
    decide_for(organisation=organisation, now=before)
    move(organisation, country="FI")
    decide_for(organisation=organisation, now=before)
    eight, nine = before.replace(minute=0), before.replace(hour=9, minute=0)
    assert periods(organisation) == [(eight, nine, Decimal("22.00")), (nine, None, Decimal("25.50"))]


@pytest.mark.django_db
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.integers(0, 3 * 3600), st.sampled_from(["NL", "FI", "EE", "DE", "GB"])), min_size=1, max_size=8
    )
)
def test_tax_17_whatever_changes_when_no_hour_that_has_begun_is_ever_decided_again(steps):
    with transaction.atomic():
        organisation = Organisation.objects.create(name="any", kind="renter", type="consumer", country="NL")
        now = datetime(2025, 6, 30, 14, 7, tzinfo=UTC)  # Estonia's rate changes within the hours to come
        decide_for(organisation=organisation, now=now)
        begun: dict[datetime, tuple[Any, ...]] = {}
        for wait_seconds, country in steps:
            now += timedelta(seconds=wait_seconds)
            hour = datetime(2025, 6, 30, 14, tzinfo=UTC)
            while hour <= now:
                found = decision_at(organisation.pk, hour)
                assert begun.setdefault(hour, (found.pk, found.rate_percent)) == (found.pk, found.rate_percent)
                hour += HOUR
            move(organisation, country=country)
            decide_for(organisation=organisation, now=now)
            coming = decision_at(organisation.pk, next_hour(now))
            assert coming.buyer_country == country
            assert coming.country_of_tax == ("" if country == "GB" else country)
        _has_no_gap(organisation)
        transaction.set_rollback(True)


def _has_no_gap(organisation: Organisation) -> None:
    rows = periods(organisation)
    assert all(earlier[1] == later[0] for earlier, later in pairwise(rows))
    assert [row[1] for row in rows].count(None) == 1
    assert rows[-1][1] is None


# --- What it is made from --------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_tax_02_reverse_charge_keeps_the_number_and_the_answer_behind_it():
    organisation = make_organisation(country="DE")
    TaxDetails.objects.create(organisation=organisation, vat_id="DE136695976")
    answered(organisation)
    found = decide_for(organisation=organisation, now=NOW)
    assert (found.en16931_code, found.rate_percent, found.vat_id) == ("AE", Decimal(0), "DE136695976")
    assert found.vat_check == VatCheck.objects.get()


@pytest.mark.django_db
def test_a_renewed_answer_that_says_the_same_stores_no_new_decision():
    organisation = make_organisation(country="DE")
    TaxDetails.objects.create(organisation=organisation, vat_id="DE136695976")
    answered(organisation)
    decide_for(organisation=organisation, now=NOW)
    answered(organisation, asked_at=NOW + 80 * 24 * HOUR)
    decide_for(organisation=organisation, now=NOW + 80 * 24 * HOUR)
    assert TaxDecision.objects.count() == 1


@pytest.mark.django_db
def test_tax_10_a_british_number_proves_a_business_and_so_does_a_register_number_elsewhere():
    british, american = make_organisation(name="a", country="GB"), make_organisation(name="b", country="US")
    for organisation in (british, american):
        assert decide_for(organisation=organisation, now=NOW).treatment == "blocked"
    TaxDetails.objects.filter(organisation=british).update(vat_id="GB980780684")
    move(american, register_number="12-3456789")
    assert decide_due(now=NOW) == 2
    for organisation in (british, american):
        assert decision_at(organisation.pk, TWELVE + HOUR).en16931_code == "O"


@pytest.mark.django_db
def test_tax_11_a_northern_irish_number_never_gives_reverse_charge():
    irish, british = make_organisation(name="a", country="IE"), make_organisation(name="b", country="GB")
    for organisation in (irish, british):
        TaxDetails.objects.create(organisation=organisation, vat_id="XI980780684")
        answered(organisation)
    assert decide_for(organisation=irish, now=NOW).reasons == ["vat_id_other_country"]
    assert decide_for(organisation=irish, now=NOW).en16931_code == "S"
    assert decide_for(organisation=british, now=NOW).en16931_code == "O"


@pytest.mark.django_db
def test_an_unknown_country_is_refused_and_writes_nothing_and_the_sweep_goes_on(caplog):
    nowhere, dutch = make_organisation(name="a", country="ZZ"), make_organisation(name="b")
    with pytest.raises(LookupError):
        decide_for(organisation=nowhere, now=NOW)
    assert not TaxDecision.objects.exists()
    assert decide_due(now=NOW) == 1
    assert "was not decided" in caplog.text
    assert decision_at(dutch.pk, NOW).rate_percent == 21


@pytest.mark.django_db
def test_without_a_sellers_country_nothing_is_decided(settings, caplog):
    organisation = make_organisation()
    settings.SELLER_COUNTRY = ""
    with pytest.raises(SellerUnknown):
        decide_for(organisation=organisation, now=NOW)
    assert decide_due(now=NOW) == 0
    assert not TaxDecision.objects.exists()
    assert "SELLER_COUNTRY" in caplog.text


@pytest.mark.django_db
def test_the_demos_seller_is_dutch_and_sells_to_consumers_of_the_union(settings):
    assert (seller().country, seller().sells_to_consumers) == ("NL", True)
    assert "GB" not in seller().consumer_countries
    settings.B2C_ENABLED = False
    organisation = make_organisation(type="consumer")
    found = decide_for(organisation=organisation, now=NOW)
    assert (found.treatment, found.may_buy) == ("blocked", False)


@pytest.mark.django_db
def test_tax_20_tax_at_top_up_is_refused_until_it_is_built(settings):
    assert settings.TAX_POINT == "consumption"
    settings.TAX_POINT = "topup"
    with pytest.raises(Exception, match="TAX_POINT"):
        seller()


@pytest.mark.django_db
def test_a_preview_says_what_would_be_stored_and_stores_nothing():
    organisation = make_organisation(country="FI", type="consumer")
    assert preview(organisation, now=NOW).rate_percent == Decimal("25.5")
    assert not TaxDecision.objects.exists()
    assert not TaxDetails.objects.exists()


@pytest.mark.django_db
def test_the_sweep_reads_many_organisations_in_few_queries(django_assert_max_num_queries):
    for number in range(20):
        make_organisation(name=f"o{number}")
    decide_due(now=NOW)
    with django_assert_max_num_queries(4):
        assert decide_due(now=NOW) == 0


@pytest.mark.django_db
def test_the_task_decides_for_new_organisations():
    organisation = make_organisation()
    decide_taxes()
    assert decision_at(organisation.pk, datetime.now(UTC)).rate_percent == 21


# --- The database's own word -----------------------------------------------------------------------------------


def a_row(organisation: Organisation, **values: Any) -> TaxDecision:
    defaults: dict[str, Any] = {
        "valid_from": TWELVE, "treatment": "domestic", "rate_percent": Decimal(21), "country_of_tax": "NL",
        "en16931_code": "S", "legal_text_key": "domestic", "reasons": ["same_country"], "seller_country": "NL",
        "buyer_type": "business", "buyer_country": "NL", "decided_at": NOW,
    }  # fmt: skip
    return TaxDecision.objects.create(organisation=organisation, **{**defaults, **values})


@pytest.mark.django_db
@pytest.mark.parametrize(
    "values",
    [
        {},
        {"valid_from": TWELVE + HOUR, "valid_to": TWELVE + 2 * HOUR},
        {"valid_from": TWELVE - HOUR, "valid_to": TWELVE + HOUR},
    ],
)
def test_two_decisions_never_hold_in_one_hour(values):
    organisation = make_organisation()
    a_row(organisation)
    with pytest.raises(IntegrityError), transaction.atomic():
        a_row(organisation, **values)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "values",
    [
        {"valid_from": NOW},
        {"valid_to": NOW + HOUR},
        {"valid_to": TWELVE - HOUR},
        {"rate_percent": None},
        {"rate_percent": Decimal(0)},
        {"treatment": "reverse_charge", "en16931_code": "AE"},
        {"treatment": "blocked", "en16931_code": ""},
    ],
)
def test_a_decision_that_contradicts_itself_is_refused(values):
    with pytest.raises(IntegrityError), transaction.atomic():
        a_row(make_organisation(), **values)


@pytest.mark.django_db
def test_decisions_only_grow_and_end_sooner_at_most():
    row = a_row(make_organisation(), valid_to=TWELVE + 5 * HOUR)
    rows = TaxDecision.objects.filter(pk=row.pk)
    for change in (
        {"rate_percent": Decimal(9)},
        {"valid_from": TWELVE - HOUR},
        {"valid_to": None},
        {"valid_to": TWELVE + 6 * HOUR},
    ):
        with pytest.raises(DatabaseError), transaction.atomic():
            rows.update(**change)
    with pytest.raises(DatabaseError), transaction.atomic():
        rows._raw_delete("default")
    assert rows.update(valid_to=TWELVE + 4 * HOUR) == 1
