"""The stored tax decisions of an organisation: one for each full UTC hour, decided ahead and never changed backwards.

A change counts from the next full hour. The first decision begins with the hour it is made in, so that a purchase in
that hour is covered. Known changes of the rate are stored ahead, each from local midnight of its day, so that nothing
has to run at that moment. An hour that has begun is never decided again: there is no re-rating of past hours.
"""

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.db import transaction
from django.db.models import F, Q, QuerySet

from billing.models import TaxDecision, TaxDetails, VatCheck
from billing.tax.company_names import NameMatch, compare
from billing.tax.decide import AreaRuling, Buyer, BuyerType, Decision, Seller, Treatment, VatState, decide
from billing.tax.rates import RateTable, known_rates
from billing.tax.seller import SellerUnknown, seller
from billing.tax.territories import vat_country
from billing.tax.vat_ids import read_stored
from users.models import Organisation

# A yes of the register stands so long; then it is no proof any more, unless it was renewed.
ANSWER_HOLDS_FOR = timedelta(days=90)
HOUR = timedelta(hours=1)
_BATCH = 500
log = logging.getLogger(__name__)


class NotDecided(LookupError):
    """No decision is stored for this organisation and hour."""


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What a decision is made from, and what is stored with it."""

    buyer: Buyer
    vat_id: str
    vat_check: VatCheck | None
    register_number: str


def decide_for(*, organisation: Organisation, now: datetime, rates: RateTable | None = None) -> TaxDecision:
    """Make what is stored fit what is known, from the next full hour on, and return the decision that holds now.

    Steps: lock the tax details (made where missing), decide for the next hour and for each known change of the rate
    after it, compare with what is stored; where it differs end the stored ones there and write the new. A second run
    changes nothing. Lock order: the tax details' row, before any of money.

    Raises SellerUnknown, UnknownCountry and NoRate; then nothing is written.
    """
    with transaction.atomic():
        details = lock_details(organisation.pk)
        stored = list(_from(now, TaxDecision.objects.filter(organisation=organisation)))
        is_first = not stored and not TaxDecision.objects.filter(organisation=organisation).exists()
        starts_at = _hour_of(now) if is_first else next_hour(now)
        planned = _plan(details, starts_at=starts_at, now=now, rates=rates or known_rates())
        if _fits(stored, planned, starts_at):
            return decision_at(organisation.pk, now)
        later = TaxDecision.objects.filter(organisation=organisation, valid_from__gte=starts_at)
        _in_force(later).update(valid_to=F("valid_from"))
        _in_force(TaxDecision.objects.filter(organisation=organisation, valid_from__lt=starts_at)).filter(
            _ends_after(starts_at)
        ).update(valid_to=starts_at)
        TaxDecision.objects.bulk_create(planned)
        return decision_at(organisation.pk, now)


def lock_details(organisation_id: int) -> TaxDetails:
    """Lock an organisation's tax details, made where missing; its tax is changed and decided by one at a time."""
    TaxDetails.objects.bulk_create([TaxDetails(organisation_id=organisation_id)], ignore_conflicts=True)
    # Not joined to the organisation: that would be read as it was before we waited.
    return TaxDetails.objects.select_for_update().get(organisation=organisation_id)


def tax_details_changed(*, organisation_id: int, now: datetime) -> None:
    """Decide again after an organisation's country, type, postcode, number, proof or answer changed; see `decide_for`.

    What cannot be decided is logged and stays as it was: what was told is stored all the same, and `decide_due` tries on.
    """
    _decide_again(Organisation.objects.get(pk=organisation_id), now=now, rates=known_rates())


def decision_at(organisation_id: int, at: datetime) -> TaxDecision:
    """Return the decision that holds at an instant; an hour's is the one at its start. Raises NotDecided."""
    found = TaxDecision.objects.filter(_ends_after(at), organisation=organisation_id, valid_from__lte=at).first()
    if found is None:
        raise NotDecided(f"No tax decision of organisation {organisation_id} holds at {at}.")
    return found


def preview(organisation: Organisation, *, now: datetime) -> TaxDecision:
    """Return what would be stored for the next full hour, unstored. Raises as `decide_for`."""
    details = _details().filter(organisation=organisation).first() or TaxDetails(organisation=organisation)
    return _plan(details, starts_at=next_hour(now), now=now, rates=known_rates())[0]


def decide_due(*, now: datetime, rates: RateTable | None = None) -> int:
    """Decide again wherever the stored decisions no longer fit: a new rate, an old answer, changed details; return how many.

    One organisation that cannot be decided is logged and left as it is; the others go on. A second run finds nothing.
    """
    try:
        seller()
    except SellerUnknown as why:
        log.error("Nobody's tax can be decided: %s", why)
        return 0
    table, last, changed = rates or known_rates(), 0, 0
    while batch := list(Organisation.objects.filter(pk__gt=last).order_by("pk")[:_BATCH]):
        last = batch[-1].pk
        changed += sum(_decide_again(organisation, now=now, rates=table) for organisation in _due(batch, now, table))
    return changed


def next_hour(now: datetime) -> datetime:
    """Return the start of the next full UTC hour, always after `now`."""
    return _hour_of(now) + HOUR


def _hour_of(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


def _details() -> QuerySet[TaxDetails]:
    return TaxDetails.objects.select_related("organisation", "last_answer")


def _in_force(decisions: QuerySet[TaxDecision]) -> QuerySet[TaxDecision]:
    """Leave out those that were replaced before their hour came."""
    return decisions.exclude(valid_to=F("valid_from"))


def _ends_after(at: datetime) -> Q:
    return Q(valid_to__isnull=True) | Q(valid_to__gt=at)


def _from(now: datetime, decisions: QuerySet[TaxDecision]) -> QuerySet[TaxDecision]:
    """Return the decisions of the next full hour and after it, in order."""
    return _in_force(decisions).filter(_ends_after(next_hour(now))).order_by("valid_from")


def _due(batch: list[Organisation], now: datetime, rates: RateTable) -> list[Organisation]:
    """Return those of a batch whose stored decisions differ from what would be decided; three queries."""
    details = {row.organisation_id: row for row in _details().filter(organisation__in=batch)}
    stored: dict[int, list[TaxDecision]] = {organisation.pk: [] for organisation in batch}
    for decision in _from(now, TaxDecision.objects.filter(organisation__in=batch)):
        stored[decision.organisation_id].append(decision)
    due = []
    for organisation in batch:
        known = details.get(organisation.pk) or TaxDetails(organisation=organisation)
        try:
            planned = _plan(known, starts_at=next_hour(now), now=now, rates=rates)
            is_due = not _fits(stored[organisation.pk], planned, next_hour(now))
        except LookupError:
            is_due = True  # deciding it says why it cannot be
        if is_due:
            due.append(organisation)
    return due


def _decide_again(organisation: Organisation, *, now: datetime, rates: RateTable) -> bool:
    try:
        decide_for(organisation=organisation, now=now, rates=rates)
    except (LookupError, SellerUnknown) as why:
        log.error("The tax of organisation %s was not decided: %s", organisation.pk, why)
        return False
    return True


def _plan(details: TaxDetails, *, starts_at: datetime, now: datetime, rates: RateTable) -> list[TaxDecision]:
    """Return the decisions from `starts_at` on, one more for each known change of the rate; the last one is open."""
    who, situation = seller(), _situation(details, at=starts_at)
    planned: list[TaxDecision] = []
    at: datetime | None = starts_at
    while at is not None:
        decision = decide(seller=who, buyer=situation.buyer, rates=rates, at=at)
        if planned:
            planned[-1].valid_to = at
        planned.append(_row(details.organisation, who, situation, decision, valid_from=at, now=now))
        at = rates.next_change_at(decision.country_of_tax, after=at) if decision.en16931_code == "S" else None
    return planned


def _situation(details: TaxDetails, *, at: datetime) -> Situation:
    organisation = details.organisation
    return Situation(
        buyer=Buyer(
            type=BuyerType(organisation.type),
            country=organisation.country,
            postcode=organisation.postcode,
            vat_state=vat_state(details, at=at),
            has_business_proof=bool(organisation.register_number) or _is_local_tax_number(details),
            area_ruling=AreaRuling(details.area_ruling),
        ),
        vat_id=details.vat_id,
        vat_check=details.last_answer,
        register_number=organisation.register_number,
    )


def vat_state(details: TaxDetails, *, at: datetime) -> VatState:
    """Return what an organisation's number proves at an instant. A yes older than 90 days proves nothing any more."""
    if not details.vat_id:
        return VatState.MISSING
    if read_stored(details.vat_id).country != vat_country(details.organisation.country):
        return VatState.OTHER_COUNTRY
    answer = details.last_answer
    if answer is None or answer.asked_at + ANSWER_HOLDS_FOR <= at:
        return VatState.UNKNOWN
    if answer.outcome == VatCheck.Outcome.INVALID:
        return VatState.INVALID
    match = compare(details.organisation.name, answer.name) if answer.name else NameMatch(answer.name_match)
    return VatState.OTHER_NAME if match == NameMatch.DIFFERS else VatState.VALID


def _is_local_tax_number(details: TaxDetails) -> bool:
    """A British number proves a business there without any register of the Union."""
    if not details.vat_id:
        return False
    number = read_stored(details.vat_id)
    return not number.is_in_union and number.country == vat_country(details.organisation.country)


def _row(
    organisation: Organisation,
    who: Seller,
    situation: Situation,
    decision: Decision,
    *,
    valid_from: datetime,
    now: datetime,
) -> TaxDecision:
    is_reverse_charge = decision.treatment == Treatment.REVERSE_CHARGE
    return TaxDecision(
        organisation=organisation,
        valid_from=valid_from,
        treatment=decision.treatment.value,
        rate_percent=decision.rate_percent,
        country_of_tax=decision.country_of_tax,
        en16931_code=decision.en16931_code,
        legal_text_key=decision.legal_text_key,
        reasons=[reason.value for reason in decision.reasons],
        seller_country=who.country,
        buyer_type=situation.buyer.type.value,
        buyer_country=situation.buyer.country,
        buyer_postcode=situation.buyer.postcode,
        vat_id=situation.vat_id,
        vat_check=situation.vat_check if is_reverse_charge else None,
        register_number=situation.register_number,
        decided_at=now,
    )


def _fits(stored: list[TaxDecision], planned: list[TaxDecision], starts_at: datetime) -> bool:
    """Whether the stored decisions from `starts_at` on say the same as the planned ones, for the same hours."""
    return [(max(row.valid_from, starts_at), _result(row)) for row in stored] == [
        (row.valid_from, _result(row)) for row in planned
    ]


def _result(row: TaxDecision) -> tuple[str, Decimal | None, str, str, str, tuple[str, ...], str, str, str]:
    """What makes a decision another one. A renewed answer that says the same does not, nor does a postcode."""
    return (
        row.treatment,
        row.rate_percent,
        row.country_of_tax,
        row.en16931_code,
        row.legal_text_key,
        tuple(row.reasons),
        row.seller_country,
        row.buyer_country,
        row.vat_id,
    )
