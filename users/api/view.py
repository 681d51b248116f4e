"""Calls with a key: who calls, what the key may do, how often, and the part of the description that says so."""

from collections.abc import Mapping
from typing import Any, ClassVar
from uuid import UUID

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.request import Request
from rest_framework.response import Response

from common.problems import ProblemSchema
from users.api.authentication import BearerAuthentication, HasScope, key_in, scope_of
from users.api.body import BodyParser
from users.api.idempotent import idempotency_header, is_idempotent
from users.api.throttling import CountedView, KeyQuota
from users.models import ApiKey, Organisation, Scope

_METHODS = ("get", "post", "put", "patch", "delete")


class KeyedSchema(ProblemSchema):
    """Describes a call with its key: the scope, the answers to a bad key, and the idempotency header."""

    def get_description(self) -> str:  # type: ignore[override]  # drf-spectacular's takes no arguments
        """Return what the call does, and the scope it needs."""
        needed = scope_of(self.view, self.method)
        said: str = super().get_description()
        return said if needed is None else f"{said.rstrip()} Needs a key with the scope `{needed.value}`."

    def get_override_parameters(self) -> list[Any]:
        """Return the call's own parameters, and the header that makes it safe to repeat."""
        own = list(super().get_override_parameters())
        return [*own, idempotency_header(is_required=True)] if self._is_idempotent() else own

    def _get_allowed_error_status_codes(self) -> list[str]:
        known = [*super()._get_allowed_error_status_codes(), "401", "403"]
        if self.method != "GET":
            known += ["409", "503"]
        return [*known, "422"] if self._is_idempotent() else known

    def _is_idempotent(self) -> bool:
        return is_idempotent(getattr(self.view, self.method.lower()))


class OrganisationView(CountedView):
    """A call of one organisation, which is all that it may see: look objects up among `self.organisation`'s own.

    `scopes` names the scope that each method needs, by HTTP method; a method without one is an error at import.
    A frozen organisation may go on reading; what it may not do is decided by each flow.
    """

    authentication_classes = (BearerAuthentication,)
    permission_classes = (HasScope,)
    throttle_classes = (KeyQuota,)
    parser_classes = (BodyParser,)
    schema = KeyedSchema()
    scopes: ClassVar[Mapping[str, Scope]] = {}
    object_id: UUID  # in an idempotent call: the id to give what it makes, the same at every try

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if missing := [name for name in _METHODS if hasattr(cls, name) and name.upper() not in cls.scopes]:
            raise TypeError(f"{cls.__name__} names no scope for {', '.join(missing)}")

    @property
    def api_key(self) -> ApiKey:
        """The key that calls."""
        return key_in(self.request)

    @property
    def organisation(self) -> Organisation:
        """The organisation that calls."""
        return self.api_key.organisation

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        """Return the answer, for its caller alone."""
        response = super().finalize_response(request, response, *args, **kwargs)
        response["Cache-Control"] = "private, no-store"
        return response


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the description speaks of keys."""

    target_class = "users.api.authentication.BearerAuthentication"
    name = "key"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Return the scheme."""
        scopes = ", ".join(f"`{scope.value}`" for scope in Scope)
        return {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "bourse_<environment>_<id>_<secret>_<checksum>",
            "description": f"A key of your organisation, made at `/keys/`, with one or more of the scopes {scopes}.",
        }
