"""One step of a provider from state to state: the conditional update, its review row, its audit record."""

from datetime import datetime

from marketplace.models import Provider, ProviderReview
from marketplace.providers.states import Step, after
from users.audit import record
from users.models import User

_ACTIONS = {
    Step.SUBMITTED: "provider.submitted",
    Step.TAKEN_BACK: "provider.taken_back",
    Step.APPROVED: "provider.approved",
    Step.REJECTED: "provider.rejected",
    Step.SUSPENDED: "provider.suspended",
    Step.REOPENED: "provider.reopened",
    Step.CLOSED: "provider.closed",
}


def take_step(
    *,
    provider: Provider,
    step: Step,
    by: User | None,
    now: datetime,
    reason: str = "",
    ip_address: str | None = None,
) -> None:
    """Move a provider that the caller has locked, in the caller's transaction. Raises StepRefused."""
    before = provider.state
    state = after(step, state=before)
    Provider.objects.filter(pk=provider.pk, state=before).update(
        state=state, approved_at=now if step == Step.APPROVED else provider.approved_at
    )
    ProviderReview.objects.create(provider=provider, step=step.value, reason=reason, by=by, at=now)
    record(
        at=now,
        action=_ACTIONS[step],
        actor=by,
        organisation=provider.organisation,
        subject_type="provider",
        subject_id=provider.pk,
        reason=reason,
        before={"state": before},
        after={"state": state},
        ip_address=ip_address,
    )
    provider.refresh_from_db(fields=["state", "approved_at"])
