"""Who opens a provider's page: members of an organisation that sells. For others the pages with objects are not there."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import render

from users.access import MemberView, View, for_members
from users.models import Membership, Organisation, Role

Rest = ParamSpec("Rest")


def for_providers(
    *roles: Role, tells_renters: bool = False
) -> Callable[[Callable[Concatenate[HttpRequest, Membership, Rest], HttpResponseBase]], View[Rest]]:
    """Make a view of a provider's members, as `for_members` does. A renter gets 404, or the page that says why."""

    def wrap(view: MemberView[Rest]) -> View[Rest]:
        @wraps(view)
        def answer(
            request: HttpRequest, membership: Membership, /, *args: Rest.args, **kwargs: Rest.kwargs
        ) -> HttpResponseBase:
            if membership.organisation.kind == Organisation.Kind.PROVIDER:
                return view(request, membership, *args, **kwargs)
            if tells_renters and request.method in ("GET", "HEAD"):
                return render(
                    request, "marketplace/provider/for_renters.html", {"organisation": membership.organisation}
                )
            raise Http404

        return for_members(*roles)(answer)

    return wrap
