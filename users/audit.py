"""Who decided what, when and why: a row per decision, written in the decision's own transaction.

The database refuses to change or delete one (`users/sql/`). `before` and `after` hold what changed, as plain JSON:
`{"role": "viewer"}` and `{"role": "trader"}`. What an action is called on a page is said in `users.audit_words`.
"""

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from allauth.account.adapter import get_adapter
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from users.models import AuditRecord, Organisation, User


def record(
    *,
    at: datetime,
    action: str,
    actor: User | None = None,
    organisation: Organisation | None = None,
    subject_type: str = "",
    subject_id: str | int | UUID = "",
    reason: str = "",
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
    ip_address: str | None = None,
) -> None:
    """Write a decision down. `action` is dotted ("member.removed"); without an `actor` the site itself decided."""
    AuditRecord.objects.create(
        at=at,
        action=action,
        actor=actor,
        organisation=organisation,
        subject_type=subject_type,
        subject_id=str(subject_id),
        reason=reason,
        before=dict(before or {}),
        after=dict(after or {}),
        ip_address=ip_address,
    )


def ip_address_of(request: HttpRequest) -> str | None:
    """Return where a request came from; None where the server does not know.

    Behind proxies of ours it is what the outermost of them wrote (TRUSTED_PROXY_COUNT); whatever else stands in
    X-Forwarded-For was written by the sender and is not believed.
    """
    try:
        return str(get_adapter().get_client_ip(request))
    except PermissionDenied:
        return None
