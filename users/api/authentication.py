"""`Authorization: Bearer bourse_...`: which organisation calls, and what its key may do."""

from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from django.utils.translation import gettext as _
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from common.problems import Problem
from users.api_keys import KeyExpired, KeyRevoked, UnknownKey, key_of, note_use
from users.models import ApiKey, Scope

REALM = 'Bearer realm="GPU Bourse API"'


class BearerAuthentication(BaseAuthentication):
    """Puts the key at `request.auth`; without a good one the answer is 401."""

    def authenticate(self, request: Request) -> tuple[None, ApiKey]:
        """Return the key, and no person: keys belong to organisations. Raises NotAuthenticated, AuthenticationFailed."""
        now = datetime.now(UTC)
        try:
            key = key_of(_secret_of(request), now=now)
        except UnknownKey:
            raise AuthenticationFailed(_("This is not a key of ours."), code="unknown_key") from None
        except KeyExpired:
            raise AuthenticationFailed(_("This key has expired."), code="key_expired") from None
        except KeyRevoked:
            raise AuthenticationFailed(_("This key was revoked."), code="key_revoked") from None
        note_use(key, now=now)
        return None, key

    def authenticate_header(self, request: Request) -> str:
        """Return the challenge of a 401 (RFC 6750)."""
        return f'{REALM}, error="invalid_token"' if get_authorization_header(request) else REALM


def _secret_of(request: Request) -> str:
    """Return the key as sent. Raises NotAuthenticated where the request carries none."""
    words = get_authorization_header(request).decode("latin-1").split()
    if len(words) != 2 or words[0].lower() != "bearer":
        raise NotAuthenticated(_("Send a key of your organisation as `Authorization: Bearer bourse_...`."))
    return words[1]


class HasScope(BasePermission):
    """Lets a key through that has the scope which the call names for this method."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Return True. Raises a 403 problem that names the scope the key lacks."""
        needed = scope_of(view, request.method or "")
        if needed is not None and needed.value not in key_in(request).scopes:
            raise ScopeMissing(needed)
        return True


def key_in(request: Request) -> ApiKey:
    """Return the key that calls."""
    assert isinstance(request.auth, ApiKey)
    return request.auth


class ScopeMissing(Problem):
    """The key is good, but not for this."""

    def __init__(self, needed: Scope) -> None:
        detail = _("This call needs a key with the scope %(scope)s.") % {"scope": needed.value}
        super().__init__(status=HTTPStatus.FORBIDDEN, code="scope_missing", detail=detail, scope=needed.value)
        self.auth_header = f'{REALM}, error="insufficient_scope", scope="{needed.value}"'


def scope_of(view: Any, method: str) -> Scope | None:
    """Return the scope that a call needs for this method; None where it has no such method (405 follows)."""
    scopes: dict[str, Scope] = view.scopes
    return scopes.get("GET" if method == "HEAD" else method)
