"""A company applies to sell: fields checked one by one, terms in a version, a review with reasons, and its states."""

from datetime import timedelta

import pytest
from django.core import mail
from django.db import DatabaseError, transaction
from hypothesis import given
from hypothesis import strategies as st

from marketplace.listings import Offered
from marketplace.models import Listing, Provider, ProviderApplication, ProviderReview
from marketplace.orders.place import NotARenter, place_order
from marketplace.providers import states
from marketplace.providers.application import (
    ApplicationLocked,
    Incomplete,
    NotAProvider,
    save_application,
    submit_application,
    take_application_back,
    value_of,
)
from marketplace.providers.fields import FieldRefused
from marketplace.providers.fleet import change_offer, pause_offer, put_up, resume_offer
from marketplace.providers.missing import (
    APPLICATION,
    SELF_BILLING,
    TERMS,
    Fleet,
    Next,
    Stated,
    missing_fields,
    next_steps,
)
from marketplace.providers.onboarding import onboarding_of
from marketplace.providers.review import ProviderBusy, ReasonMissing, decide_on_provider
from marketplace.providers.states import Step, StepRefused, after
from marketplace.servers import NotApproved
from tests.factories import make_member, make_operator, make_organisation
from tests.marketplace.companies import IBAN, STATED, applied, approved, make_company
from tests.marketplace.conftest import NOW, make_listing, make_running_rental, make_server, order_for
from users.api_keys import scopes_open_to
from users.models import AuditRecord, Organisation, Scope, User

pytestmark = pytest.mark.django_db
NOTHING = Fleet(servers=0, verified=0, listed=0, selling=0)


@pytest.fixture
def company(db) -> Organisation:
    return make_company()


@pytest.fixture
def operator(db) -> User:
    return make_operator()


def save(organisation: Organisation, agrees_to=(), **changes: str) -> Provider:
    return save_application(organisation_id=organisation.pk, changes=changes, agrees_to=agrees_to, by=None, now=NOW)


def decide(organisation: Organisation, step: Step, operator: User, reason: str = "we looked") -> Provider:
    return decide_on_provider(provider_id=organisation.pk, step=step, operator=operator, reason=reason, now=NOW)


def test_a_draft_is_saved_field_by_field_and_says_what_is_missing(company):
    save(company, company_name="Noord Compute B.V.", iban="nl91 abna 0417 1643 00")
    found = onboarding_of(company, now=NOW)
    assert found.provider.state == "draft"
    assert found.missing == tuple(
        name for name in (*APPLICATION, TERMS, SELF_BILLING) if name not in ("company_name", "iban", "postcode")
    )
    assert found.steps[:2] == (Next.APPLICATION, Next.REVIEW)


def test_who_has_said_nothing_yet_has_no_row_and_lacks_everything(company):
    found = onboarding_of(company, now=NOW)
    assert (found.provider.state, found.application, found.fleet) == ("draft", None, NOTHING)
    assert not Provider.objects.exists()


def test_the_bank_account_is_stored_encrypted_and_is_in_no_record(company):
    save(company, iban=IBAN)
    stored = ProviderApplication.objects.get()
    assert IBAN not in stored.iban_encrypted
    assert (stored.iban_hint, value_of(stored, "iban")) == ("NL..4300", IBAN)
    assert IBAN not in str(AuditRecord.objects.values())
    assert AuditRecord.objects.get().after == {"fields": ["iban"]}
    save(company, iban="")
    stored.refresh_from_db()
    assert (stored.iban_hint, stored.iban_encrypted) == ("", "")


@pytest.mark.parametrize(
    ("field", "text", "code"),
    [
        ("iban", "NL91ABNA0417164301", "invalid"),
        ("iban", "NL91", "invalid"),
        ("vat_id", "NL123", "invalid"),
        ("vat_id", "DE136695976", "other_country"),
        ("contact_email", "noor at noord", "invalid"),
        ("contact_phone", "call me", "invalid"),
        ("company_name", "a\x07b", "invalid"),
        ("city", "x" * 101, "too_long"),
    ],
)
def test_a_bad_field_is_refused_by_its_name_and_nothing_is_stored(company, field, text, code):
    with pytest.raises(FieldRefused) as refused:
        save(company, company_name="Noord", **{field: text}) if field != "company_name" else save(
            company, company_name=text
        )
    assert (refused.value.field, refused.value.code) == (field, code)
    assert not ProviderApplication.objects.exists()


def test_a_company_from_where_no_vat_number_can_be_checked_needs_none(operator):
    company = make_company(country="US")
    with pytest.raises(FieldRefused) as refused:
        save(company, vat_id="12-3456789")
    assert refused.value.code == "no_register"
    assert applied(company, vat_id="").state == "submitted"


def test_saving_the_same_again_writes_nothing(company):
    save(company, agrees_to=[TERMS], **STATED)
    before = AuditRecord.objects.count()
    save(company, agrees_to=[TERMS], **STATED)
    assert AuditRecord.objects.count() == before


def test_agreeing_stores_the_versions_with_who_and_when(company):
    owner = make_member(organisation=company)
    applied(company, by=owner)
    stored = ProviderApplication.objects.get()
    assert (stored.terms_version, stored.self_billing_version) == ("1", "1")
    assert (stored.agreed_by, stored.agreed_at) == (owner, NOW)


def test_an_application_that_lacks_something_is_not_sent(company):
    save(company, company_name="Noord")
    with pytest.raises(Incomplete) as refused:
        submit_application(organisation_id=company.pk, by=None, now=NOW)
    assert "register_number" in refused.value.fields
    assert TERMS in refused.value.fields
    assert Provider.objects.get().state == "draft"


def test_what_was_sent_for_review_stays_until_it_is_taken_back(company):
    applied(company)
    with pytest.raises(ApplicationLocked):
        save(company, city="Utrecht")
    with pytest.raises(StepRefused):
        submit_application(organisation_id=company.pk, by=None, now=NOW)
    take_application_back(organisation_id=company.pk, by=None, now=NOW)
    save(company, city="Utrecht")
    assert ProviderApplication.objects.get().city == "Utrecht"
    with pytest.raises(StepRefused):
        take_application_back(organisation_id=company.pk, by=None, now=NOW)


def test_a_renter_cannot_apply():
    with pytest.raises(NotAProvider):
        save(make_organisation(name="Orla Labs B.V."), company_name="Orla")
    assert not Provider.objects.exists()


def test_a_review_sends_back_with_a_reason_and_approves_the_next_time(
    company, operator, django_capture_on_commit_callbacks
):
    make_member(organisation=company, email="noor@noord.example")
    applied(company)
    with pytest.raises(ReasonMissing):
        decide(company, Step.REJECTED, operator, reason="  ")
    with django_capture_on_commit_callbacks(execute=True):
        decide(company, Step.REJECTED, operator, reason="The register extract is of another company.")
    assert "another company" in mail.outbox[-1].body
    assert onboarding_of(company, now=NOW).last_reason == "The register extract is of another company."
    submit_application(organisation_id=company.pk, by=None, now=NOW)
    assert decide(company, Step.APPROVED, operator, reason="").approved_at == NOW
    steps = ProviderReview.objects.order_by("pk").values_list("step", flat=True)
    assert list(steps) == ["submitted", "rejected", "submitted", "approved"]
    actions = AuditRecord.objects.filter(subject_type="provider", actor=operator).values_list("action", "reason")
    assert list(actions) == [
        ("provider.rejected", "The register extract is of another company."),
        ("provider.approved", ""),
    ]


def test_the_history_of_a_review_only_grows(company):
    applied(company)
    for change in (lambda: ProviderReview.objects.update(reason="x"), lambda: ProviderReview.objects.all().delete()):
        with pytest.raises(DatabaseError, match="only grows"), transaction.atomic():
            change()


@pytest.mark.parametrize("state", Provider.State.values)
@pytest.mark.parametrize("step", Step)
def test_a_step_that_is_not_open_changes_nothing(company, operator, state, step):
    applied(company)
    Provider.objects.filter(pk=company.pk).update(state=state, approved_at=NOW)
    by_hand = step in states.BY_THE_PROVIDER
    is_open = (state, step) in states._WAYS
    rows = ProviderReview.objects.count()

    def take() -> Provider:
        if not by_hand:
            return decide(company, step, operator)
        flow = submit_application if step == Step.SUBMITTED else take_application_back
        return flow(organisation_id=company.pk, by=None, now=NOW)

    if is_open:
        assert take().state == states._WAYS[state, step]
    else:
        with pytest.raises(StepRefused):
            take()
        assert (Provider.objects.get().state, ProviderReview.objects.count()) == (state, rows)


@given(st.lists(st.sampled_from(list(Step)), max_size=12))
def test_whatever_happens_nobody_is_approved_without_a_review(steps):
    state, was_submitted = "draft", False
    for step in steps:
        try:
            state = after(step, state=state)
        except StepRefused:
            continue
        was_submitted |= step == Step.SUBMITTED
        assert state != "approved" or was_submitted


@given(st.sets(st.sampled_from(APPLICATION)), st.booleans(), st.sampled_from(["", "0", "1"]))
def test_what_is_missing_is_what_is_not_filled(filled, needs_vat_id, version):
    stated = Stated(
        needs_vat_id=needs_vat_id, filled=frozenset(filled), terms_version=version, self_billing_version="1"
    )
    missing = set(missing_fields(stated))
    assert missing.isdisjoint(filled)
    assert missing | filled | {"postcode", "vat_id"} >= set(APPLICATION)
    assert ("vat_id" in missing) == (needs_vat_id and "vat_id" not in filled)
    assert (TERMS in missing) == (version != "1")


def test_what_comes_next_ends_where_something_sells():
    whole = Stated(needs_vat_id=False, filled=frozenset(APPLICATION), terms_version="1", self_billing_version="1")
    selling = Fleet(servers=1, verified=1, listed=1, selling=1)
    assert next_steps(state="approved", stated=whole, fleet=selling) == ()
    assert next_steps(state="suspended", stated=whole, fleet=selling) == (Next.SUSPENSION,)
    idle = Fleet(servers=2, verified=1, listed=0, selling=0)
    assert next_steps(state="approved", stated=whole, fleet=idle) == (Next.LISTING, Next.HEARTBEAT)


def test_a_suspended_provider_sells_nothing_more_and_pauses_at_most(company, operator, h100, renter):
    provider = approved(company, operator=operator)
    listing = make_listing(gpu=h100, provider=provider)
    other = make_listing(gpu=h100, provider=provider, price="3.00")
    pause_offer(organisation_id=company.pk, listing_id=other.pk, now=NOW)
    rental = make_running_rental(renter=renter, gpu=h100, ready_at=NOW, listing=listing)
    decide(company, Step.SUSPENDED, operator, reason="Two machines were not what they were said to be.")
    assert set(Listing.objects.values_list("state", flat=True)) == {"paused"}
    rental.refresh_from_db()
    assert rental.state == "running"
    refused = [
        lambda: resume_offer(organisation_id=company.pk, listing_id=listing.pk, now=NOW),
        lambda: change_offer(
            organisation_id=company.pk,
            listing_id=listing.pk,
            offered=Offered(price=listing.price_usd_per_gpu_hour),
            now=NOW,
        ),
        lambda: put_up(
            organisation_id=company.pk,
            server_id=listing.server_id,
            offered=Offered(price=listing.price_usd_per_gpu_hour),
            now=NOW,
        ),
    ]
    for call in refused:
        with pytest.raises(NotApproved):
            call()
    pause_offer(organisation_id=company.pk, listing_id=listing.pk, now=NOW)
    decide(company, Step.REOPENED, operator, reason="They were replaced.")
    resume_offer(organisation_id=company.pk, listing_id=listing.pk, now=NOW)
    assert set(Listing.objects.values_list("state", flat=True)) == {"active", "paused"}


def test_a_provider_with_an_open_rental_is_not_closed_and_a_closed_one_has_no_listing(company, operator, h100, renter):
    provider = approved(company, operator=operator)
    listing = make_listing(gpu=h100, provider=provider, devices=2)
    rental = make_running_rental(renter=renter, gpu=h100, ready_at=NOW, listing=listing)
    with pytest.raises(ProviderBusy):
        decide(company, Step.CLOSED, operator)
    assert Listing.objects.get().state == "active"
    idle = make_company(name="Idle B.V.")
    approved(idle, operator=operator)
    make_listing(gpu=h100, provider=Provider.objects.get(pk=idle.pk))
    assert decide(idle, Step.CLOSED, operator).state == "closed"
    assert Listing.objects.exclude(server=rental.server_id).get().state == "ended"
    assert decide(idle, Step.REOPENED, operator).state == "draft"


def test_a_provider_cannot_buy(company, operator, h100):
    approved(company, operator=operator)
    make_server(gpu=h100, provider=Provider.objects.get(pk=company.pk))
    assert Scope.TRADE not in scopes_open_to(company.kind)
    with pytest.raises(NotARenter):
        place_order(organisation_id=company.pk, instruction=order_for(h100), now=NOW + timedelta(seconds=1))
