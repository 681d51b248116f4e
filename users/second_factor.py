"""A second step besides the password: who has one, what asks for it, and that changing it ends all other sessions."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from users.models import User

Rest = ParamSpec("Rest")
View = Callable[Concatenate[HttpRequest, Rest], HttpResponseBase]
_STEPS = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)


def has_second_factor(user_id: int) -> bool:
    """Whether a password alone does not open this person's account. One query."""
    return bool(Authenticator.objects.filter(user_id=user_id, type__in=_STEPS).exists())


def lacks_second_factor(request: HttpRequest) -> bool:
    """Whether the site asks this person for a second step that they have not set up (SECOND_FACTOR_REQUIRED)."""
    return settings.SECOND_FACTOR_REQUIRED and not has_second_factor(request.user.pk or 0)


def sent_to_set_one_up(request: HttpRequest) -> HttpResponseBase:
    """Send the person to where a second step is set up, and say why."""
    messages.warning(
        request,
        _(
            "This takes a second step besides your password. Add a passkey or an app, then try again. Nothing was changed."
        ),
    )
    return redirect("users:account")


def ends_other_sessions(view: View[Rest]) -> View[Rest]:
    """Make a view that, where it changed the password or a second step, ends the person's sessions elsewhere."""

    @wraps(view)
    def answer(request: HttpRequest, /, *args: Rest.args, **kwargs: Rest.kwargs) -> HttpResponseBase:
        user_id = request.user.pk
        if user_id is None:
            return view(request, *args, **kwargs)
        before = _guards_of(user_id)
        response = view(request, *args, **kwargs)
        if _guards_of(user_id) != before and _end_others(request, user_id):
            messages.info(request, _("You are signed out in all other browsers."))
        return response

    return answer


def _guards_of(user_id: int) -> tuple[object, ...]:
    password = User.objects.filter(pk=user_id).values_list("password", flat=True).first()
    steps = Authenticator.objects.filter(user_id=user_id, type__in=_STEPS).order_by("pk")
    return (password, *steps.values_list("pk", flat=True))


def _end_others(request: HttpRequest, user_id: int) -> int:
    others = list(UserSession.objects.filter(user_id=user_id).exclude(session_key=request.session.session_key))
    for session in others:
        session.end()
    return len(others)
