"""Ask the register about VAT numbers: new ones at once, others again before 90 days are over, unanswered ones with back-off.

Asking is never done inside a transaction. A question is claimed by moving `next_check_at`, so that two workers do not
ask the same; who dies with a claim has it asked again when the claim runs out.
"""

import logging
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F

from billing.models import TaxDetails, VatCheck
from billing.tax.record import ANSWER_HOLDS_FOR, tax_details_changed
from billing.tax.vat_ids import read_stored
from billing.tax.vies import Answer, Outcome, VatRegister

# A week before an answer ends: room for a register that is down for days.
RENEW_AFTER = ANSWER_HOLDS_FOR - timedelta(days=7)
# A number may have been registered yesterday: a no is asked again sooner than a yes.
ASK_AGAIN_AFTER_NO = timedelta(days=7)
FIRST_RETRY_AFTER = timedelta(minutes=5)
LONGEST_RETRY = timedelta(hours=6)
BETWEEN_REQUESTS = timedelta(minutes=1)
_CLAIM_HOLDS = timedelta(minutes=5)
log = logging.getLogger(__name__)


class AskedTooSoon(Exception):
    """Somebody asked about this number within the last minute, or is asking now."""


def check_due(*, register: VatRegister, now: datetime, limit: int = 20) -> int:
    """Ask about the numbers that are due, the longest waiting first; return how many answers were stored."""
    due = TaxDetails.objects.filter(next_check_at__lte=now).order_by("next_check_at")[:limit]
    answered, at = 0, now
    for details in due:
        if not _claim(details, now=at):
            continue
        at += _ask_and_store(details, register=register, now=at)
        answered += 1
    return answered


def check_now(*, organisation_id: int, register: VatRegister, now: datetime) -> None:
    """Ask about an organisation's number because somebody wants to know. Raises AskedTooSoon; without a number does nothing."""
    details = TaxDetails.objects.filter(organisation=organisation_id, next_check_at__isnull=False).first()
    if details is None:
        return
    recent = VatCheck.objects.filter(
        organisation=organisation_id, vat_id=details.vat_id, asked_at__gt=now - BETWEEN_REQUESTS
    )
    if recent.exists() or not _claim(details, now=now):
        raise AskedTooSoon
    _ask_and_store(details, register=register, now=now)


def retry_after(unanswered: int) -> timedelta:
    """Return how long to wait after so many questions in a row without an answer: 5 minutes, doubled up to 6 hours.

    >>> [retry_after(count) // timedelta(minutes=1) for count in (1, 2, 3, 7, 8, 1000)]
    [5, 10, 20, 320, 360, 360]
    """
    doubled: int = 2 ** min(unanswered - 1, 10)
    return min(FIRST_RETRY_AFTER * doubled, LONGEST_RETRY)


def _claim(details: TaxDetails, *, now: datetime) -> bool:
    return bool(
        TaxDetails.objects.filter(pk=details.pk, vat_id=details.vat_id, next_check_at=details.next_check_at).update(
            next_check_at=now + _CLAIM_HOLDS
        )
    )


def _ask_and_store(details: TaxDetails, *, register: VatRegister, now: datetime) -> timedelta:
    """Ask about a claimed number, store the answer and what follows from it; return how long it took."""
    answer = register.ask(read_stored(details.vat_id), trader_name=details.organisation.name)
    if answer.outcome == Outcome.UNKNOWN:
        log.warning("No answer about %s: %s", details.vat_id, answer.fault)
    _store(details, answer, register=register, now=now + answer.waited)
    return answer.waited


def _store(asked: TaxDetails, answer: Answer, *, register: VatRegister, now: datetime) -> None:
    """Store an answer and decide the tax again.

    Steps: lock the tax details, insert the answer, note it and when to ask next, decide. An answer about a number
    that was replaced meanwhile is kept and counts for nothing. Lock order: as `decide_for`.
    """
    with transaction.atomic():
        current = TaxDetails.objects.select_for_update().get(pk=asked.pk)
        check = VatCheck.objects.create(
            organisation_id=asked.organisation_id,
            vat_id=asked.vat_id,
            register=register.name,
            outcome=answer.outcome.value,
            fault=answer.fault,
            name=answer.name,
            address=answer.address,
            name_match=answer.name_match.value,
            consultation_number=answer.consultation_number,
            asked_at=now,
        )
        if current.vat_id != asked.vat_id:
            return
        of_details = TaxDetails.objects.filter(pk=asked.pk)
        if answer.outcome == Outcome.UNKNOWN:
            wait = retry_after(current.unanswered_checks + 1)
            of_details.update(unanswered_checks=F("unanswered_checks") + 1, next_check_at=now + wait)
        else:
            wait = RENEW_AFTER if answer.outcome == Outcome.VALID else ASK_AGAIN_AFTER_NO
            of_details.update(last_answer=check, unanswered_checks=0, next_check_at=now + wait)
        tax_details_changed(organisation_id=asked.organisation_id, now=now)
