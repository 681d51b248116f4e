"""`/account/history/`: what was decided in the organisation, newest first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.core.paginator import InvalidPage, Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.functional import Promise
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from common import formats
from common.money import from_micros
from users.access import EVERYONE, OWNERS, for_members, may
from users.audit_words import ACTIONS, DETAILS
from users.models import AuditRecord, Membership, Role, User
from users.queries import history_of

PER_PAGE = 50
_PLACES = {name: place for place, name in enumerate(DETAILS)}


@dataclass(frozen=True, kw_only=True)
class Detail:
    """One thing that a decision named or changed; `before` is None where it only named it."""

    label: str | Promise
    before: str | None
    after: str


@dataclass(frozen=True, kw_only=True)
class HistoryLine:
    """One decision in words."""

    at: datetime
    action: str | Promise
    actor: str
    details: Sequence[Detail]
    reason: str
    ip_address: str | None


@require_safe
@for_members(*EVERYONE)
def show_history(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show a page of the record; a page that is not there is a 404."""
    paginator = Paginator(history_of(membership.organisation), PER_PAGE)
    try:
        page = paginator.page(request.GET.get("page", 1))
    except InvalidPage:
        raise Http404 from None
    lines = [line_of(record, reader=membership.user) for record in page]
    context = {"page": page, "lines": lines, "shows_addresses": may(membership, *OWNERS)}
    return render(request, "users/audit.html", context)


def line_of(record: AuditRecord, *, reader: User) -> HistoryLine:
    """Return a record in words, as this reader sees it: operators have no name."""
    return HistoryLine(
        at=record.at,
        action=ACTIONS.get(record.action, record.action),
        actor=actor_in_words(record.actor, reader=reader),
        details=details_of(record.before, record.after),
        reason=record.reason,
        ip_address=record.ip_address,
    )


def actor_in_words(actor: User | None, *, reader: User) -> str:
    """Return who decided."""
    if actor is None:
        return _("the site")
    if actor == reader:
        return _("you")
    return _("an operator") if actor.is_staff else actor.email


def details_of(before: Mapping[str, object], after: Mapping[str, object]) -> Sequence[Detail]:
    """Return what the record names, in the order of DETAILS: what changed with both values, the rest once."""
    return [
        Detail(
            label=DETAILS.get(name, name),
            before=in_words(name, before[name]) if _has_changed(name, before, after) else None,
            after=in_words(name, after.get(name, before.get(name))),
        )
        for name in sorted({*before, *after}, key=_place)
    ]


def _place(name: str) -> tuple[int, str]:
    return (_PLACES.get(name, len(_PLACES)), name)


def _has_changed(name: str, before: Mapping[str, object], after: Mapping[str, object]) -> bool:
    return name in before and name in after and before[name] != after[name]


def in_words(name: str, value: object) -> str:
    """Return a recorded value as text."""
    if value is None or value == "":
        return _("none")
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, list):
        return ", ".join(in_words(name, item) for item in value)
    if name.endswith("_micros") and isinstance(value, int):
        return formats.figure(from_micros(value), language=get_language() or "en", decimals=6)
    if name == "role" and value in Role.values:
        return str(Role(value).label)
    return str(value)
