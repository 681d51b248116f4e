"""`/account/members/`: who belongs to the organisation and in which role. `/account/invitation/<token>/`: join it."""

from datetime import UTC, datetime
from smtplib import SMTPException

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST

from users.access import EVERYONE, OWNERS, for_members, may
from users.audit import ip_address_of
from users.invitations import (
    VALID_FOR,
    AlreadyInvited,
    AlreadyMember,
    HasOrganisation,
    InvitationRefused,
    InvitationUsed,
    OtherAddress,
    TooManyInvitations,
    UnknownInvitation,
    accept,
    invitation_of,
    invite,
    obstacle_for,
    withdraw,
)
from users.members import LastOwner, UnknownMember, change_role, remove
from users.models import Membership, Role, User
from users.queries import members_of, other_owners_of, unanswered_invitations_of

_NOT_INVITED: dict[type[InvitationRefused], Promise] = {
    AlreadyMember: _("Somebody with this address is a member already."),
    AlreadyInvited: _("This address has an open invitation. Withdraw it below to send a new one."),
    TooManyInvitations: _("Too many invitations were sent within 24 hours. Try again tomorrow."),
}
_LAST_OWNER = _("This is the last owner. Make somebody else an owner first; nothing was changed.")


class InviteForm(forms.Form):
    """Whom to ask, and what they may do."""

    email = forms.EmailField(label=_("E-mail address"), max_length=254)
    role = forms.ChoiceField(label=_("Role"), choices=Role.choices, initial=Role.VIEWER)


class RoleForm(forms.Form):
    """A member's new role."""

    role = forms.ChoiceField(label=_("Role"), choices=Role.choices)


@for_members(*OWNERS)
@require_http_methods(["GET", "HEAD", "POST"])
def show_members(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show members and open invitations; an owner invites from here."""
    form = InviteForm(request.POST or None)
    if request.method == "POST" and form.is_valid() and _invited(request, membership, form):
        return redirect("users:members")
    return render(request, "users/members.html", page_of(membership, form, now=datetime.now(UTC)))


def page_of(membership: Membership, form: InviteForm, *, now: datetime) -> dict[str, object]:
    """Return what the page shows to a member. Three queries."""
    organisation = membership.organisation
    return {
        "now": now,
        "own": membership,
        "organisation": organisation,
        "members": list(members_of(organisation)),
        "invitations": list(unanswered_invitations_of(organisation)),
        "form": form,
        "roles": Role.choices,
        "may_change": may(membership, *OWNERS),
        "is_last_owner": membership.role == Role.OWNER and not other_owners_of(membership).exists(),
        "valid_days": VALID_FOR.days,
    }


def _invited(request: HttpRequest, membership: Membership, form: InviteForm) -> bool:
    email, role = form.cleaned_data["email"], Role(form.cleaned_data["role"])
    try:
        invite(
            organisation=membership.organisation,
            email=email,
            role=role,
            invited_by=membership.user,
            now=datetime.now(UTC),
            link=lambda token: request.build_absolute_uri(reverse("users:invitation", args=[token])),
            ip_address=ip_address_of(request),
        )
    except InvitationRefused as refusal:
        form.add_error("email", str(_NOT_INVITED[type(refusal)]))
        return False
    except (SMTPException, OSError):
        messages.error(request, _("The mail could not be sent. Withdraw the invitation below and try again."))
        return True
    messages.success(request, _("An invitation is on its way to %(email)s.") % {"email": email})
    return True


@require_POST
@for_members(*OWNERS)
def set_role(request: HttpRequest, membership: Membership, membership_id: int) -> HttpResponse:
    """Give a member another role."""
    form = RoleForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("There is no such role; nothing was changed."))
        return redirect("users:members")
    try:
        change_role(
            organisation=membership.organisation,
            membership_id=membership_id,
            role=Role(form.cleaned_data["role"]),
            changed_by=membership.user,
            now=datetime.now(UTC),
            ip_address=ip_address_of(request),
        )
    except UnknownMember:
        raise Http404 from None
    except LastOwner:
        messages.error(request, _LAST_OWNER)
    return redirect("users:members")


@require_POST
@for_members(*OWNERS)
def remove_member(request: HttpRequest, membership: Membership, membership_id: int) -> HttpResponse:
    """End somebody's membership."""
    if _removed(request, membership, membership_id):
        messages.success(request, _("Removed. They can no longer see anything of the organisation."))
    return redirect("users:members" if membership_id != membership.pk else "users:account")


@require_POST
@for_members(*EVERYONE)
def leave(request: HttpRequest, membership: Membership) -> HttpResponse:
    """End one's own membership."""
    if not _removed(request, membership, membership.pk):
        return redirect("users:members")
    messages.success(request, _("You left the organisation."))
    return redirect("users:account")


def _removed(request: HttpRequest, membership: Membership, membership_id: int) -> bool:
    try:
        remove(
            organisation=membership.organisation,
            membership_id=membership_id,
            removed_by=membership.user,
            now=datetime.now(UTC),
            ip_address=ip_address_of(request),
        )
    except UnknownMember:
        raise Http404 from None
    except LastOwner:
        messages.error(request, _LAST_OWNER)
        return False
    return True


@require_POST
@for_members(*OWNERS)
def withdraw_invitation(request: HttpRequest, membership: Membership, invitation_id: int) -> HttpResponse:
    """Take an invitation back."""
    try:
        withdraw(
            organisation=membership.organisation,
            invitation_id=invitation_id,
            withdrawn_by=membership.user,
            now=datetime.now(UTC),
            ip_address=ip_address_of(request),
        )
    except UnknownInvitation:
        raise Http404 from None
    except InvitationUsed:
        messages.error(request, _("They had accepted before: they are a member now."))
    else:
        messages.success(request, _("The invitation was withdrawn; its link no longer works."))
    return redirect("users:members")


@require_http_methods(["GET", "HEAD", "POST"])
def show_invitation(request: HttpRequest, token: str) -> HttpResponse:
    """Say who invites, and let the invited person join; a newcomer joins by signing up from here."""
    user, now = request.user if isinstance(request.user, User) else None, datetime.now(UTC)
    try:
        if request.method == "POST" and user is not None:
            accept(token=token, user=user, now=now, ip_address=ip_address_of(request))
            return redirect("users:account")
        invitation = invitation_of(token, now)
    except (OtherAddress, HasOrganisation):
        return redirect(request.path)  # which says so; an error's line in the log would hold a token that works
    except InvitationRefused as refusal:
        context = {"reason": type(refusal).__name__, "valid_days": VALID_FOR.days}
        return render(
            request, "users/invitation.html", context, status=404 if isinstance(refusal, UnknownInvitation) else 410
        )
    obstacle = obstacle_for(user, invitation=invitation) if user else None
    context = {"invitation": invitation, "reason": type(obstacle).__name__ if obstacle else ""}
    return render(request, "users/invitation.html", context)
