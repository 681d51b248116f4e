"""Who may open a page: the one place where a view learns which organisation asks, and in which role.

An object of another organisation is answered with 404 by looking it up among the organisation's own rows; a role
that may not do this is answered with 403; someone who is not signed in is sent to sign in first.
"""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.utils.cache import patch_cache_control

from users.models import Membership, Role, User
from users.second_factor import lacks_second_factor, sent_to_set_one_up

Rest = ParamSpec("Rest")
MemberView = Callable[Concatenate[HttpRequest, Membership, Rest], HttpResponseBase]
View = Callable[Concatenate[HttpRequest, Rest], HttpResponseBase]

EVERYONE = tuple(Role)
TRADERS = (Role.OWNER, Role.TRADER)
PAYERS = (Role.OWNER, Role.BILLING)
OWNERS = (Role.OWNER,)
_KEPT = "membership_of_who_asks"


def for_members(*roles: Role) -> Callable[[MemberView[Rest]], View[Rest]]:
    """Make a view of members in one of `roles`: it gets the membership as its second argument. Never cached.

    Looking (GET, HEAD) is open to every member; `roles` say who may change something.
    """

    def wrap(view: MemberView[Rest]) -> View[Rest]:
        @wraps(view)
        def answer(request: HttpRequest, /, *args: Rest.args, **kwargs: Rest.kwargs) -> HttpResponseBase:
            membership = membership_of(request)
            if request.method not in ("GET", "HEAD") and membership.role not in roles:
                raise PermissionDenied
            response = view(request, membership, *args, **kwargs)
            patch_cache_control(response, private=True, no_store=True)
            return response

        return login_required(answer)

    return wrap


def for_operators(view: View[Rest]) -> View[Rest]:
    """Make a view of operators: everyone else who is signed in gets 403. Never cached.

    Whoever has no second step may look, and is sent to set one up before the first decision.
    """

    @wraps(view)
    def answer(request: HttpRequest, /, *args: Rest.args, **kwargs: Rest.kwargs) -> HttpResponseBase:
        if not person_of(request).is_staff:
            raise PermissionDenied
        if request.method not in ("GET", "HEAD") and lacks_second_factor(request):
            return sent_to_set_one_up(request)
        response = view(request, *args, **kwargs)
        patch_cache_control(response, private=True, no_store=True)
        return response

    return login_required(answer)


def with_second_factor(view: MemberView[Rest]) -> MemberView[Rest]:
    """Make a member's view that changes nothing without a second step: who has none is sent to set one up."""

    @wraps(view)
    def answer(
        request: HttpRequest, membership: Membership, /, *args: Rest.args, **kwargs: Rest.kwargs
    ) -> HttpResponseBase:
        if request.method not in ("GET", "HEAD") and lacks_second_factor(request):
            return sent_to_set_one_up(request)
        return view(request, membership, *args, **kwargs)

    return answer


def membership_of(request: HttpRequest) -> Membership:
    """Return the membership of who asks. Raises PermissionDenied for a person without an organisation."""
    membership = membership_if_any(request)
    if membership is None:
        raise PermissionDenied
    return membership


def membership_if_any(request: HttpRequest) -> Membership | None:
    """Return the membership of who asks; None for an operator. One query per request, however often it is asked for."""
    user_id = person_of(request).pk
    if not hasattr(request, _KEPT):
        found = Membership.objects.select_related("organisation", "user").filter(user_id=user_id).first()
        setattr(request, _KEPT, found)
    kept: Membership | None = getattr(request, _KEPT)
    return kept


def person_of(request: HttpRequest) -> User:
    """Return the person who asks. Raises PermissionDenied for someone who is not signed in."""
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


def may(membership: Membership, *roles: Role) -> bool:
    """Whether this member acts in one of the roles: what a page asks before it shows a button."""
    return membership.role in roles
