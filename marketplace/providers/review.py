"""What an operator decides about a provider: approved, sent back, suspended, closed, opened again.

Each decision has a review row, an audit record and a mail to the owners. What is sold goes on in any case.
"""

from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.utils.translation import get_language

from marketplace.book import lock_book
from marketplace.listings import end_listing, pause
from marketplace.models import Listing, Provider, Rental
from marketplace.providers.application import refuse_incomplete
from marketplace.providers.states import NEEDS_A_REASON, Step, StepRefused, steps_open_to_operators
from marketplace.providers.steps import take_step
from users.mails import mail_after_commit
from users.models import User
from users.queries import owner_addresses_of


class ReasonMissing(ValueError):
    """A decision against a provider, or one that lifts it, is told with its reason."""


class ProviderBusy(Exception):
    """A provider with open rentals cannot be closed; it can be suspended."""


def decide_on_provider(
    *,
    provider_id: int,
    step: Step,
    operator: User,
    reason: str,
    now: datetime,
    ip_address: str | None = None,
) -> Provider:
    """Take one step of a provider in an operator's name.

    Steps: lock the provider; ask whether the step is open (and the application whole, and no rental open, where that
    is asked); lock the books of its listings in order; pause what a suspended provider sells, end what a closed one
    does; write state, review and record; mail the owners. Lock order: provider, books by number, rows. A second run
    raises StepRefused. Raises ReasonMissing, StepRefused, Incomplete, ProviderBusy, Provider.DoesNotExist.
    """
    if step in NEEDS_A_REASON and not reason.strip():
        raise ReasonMissing
    with transaction.atomic():
        providers = Provider.objects.select_for_update(no_key=True, of=["self"]).select_related("organisation")
        provider = providers.get(pk=provider_id)
        if step not in steps_open_to_operators(provider.state):
            raise StepRefused(step, provider.state)
        if step == Step.APPROVED:
            refuse_incomplete(provider)
        if step in (Step.SUSPENDED, Step.CLOSED):
            _stop_selling(provider, step, now)
        take_step(provider=provider, step=step, by=operator, now=now, reason=reason.strip(), ip_address=ip_address)
        _mail(provider, step, reason.strip())
    return provider


def _stop_selling(provider: Provider, step: Step, now: datetime) -> None:
    listings = list(
        Listing.objects.filter(server__provider=provider).exclude(state=Listing.State.ENDED).order_by("gpu_id", "pk")
    )
    for gpu_id in sorted({listing.gpu_id for listing in listings}):
        lock_book(gpu_id, now=now)
    if step == Step.CLOSED and Rental.objects.filter(server__provider=provider, state__in=Rental.OPEN).exists():
        raise ProviderBusy
    stop = end_listing if step == Step.CLOSED else pause
    for listing in listings:
        stop(provider_id=provider.pk, listing_id=listing.pk, now=now)


def _mail(provider: Provider, step: Step, reason: str) -> None:
    mail_after_commit(
        template="marketplace/mail/provider_decision.txt",
        context={
            "organisation": provider.organisation,
            "step": step.value,
            "reason": reason,
            "operator_email": settings.OPERATOR_EMAIL,
        },
        to=owner_addresses_of(provider.organisation),
        language=get_language() or settings.LANGUAGE_CODE,
        is_optional=True,
    )
