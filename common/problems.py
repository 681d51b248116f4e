"""Every error under `/api/` as a problem document (RFC 9457).

`{"type", "title", "status", "detail", "errors": [{"field", "code", "message"}]}`, sent as `application/problem+json`;
`field` is null where no single parameter is at fault. A 500 says that it was logged and nothing else.
"""

from http import HTTPStatus
from typing import Any

from django.core.exceptions import SuspiciousOperation
from django.http import Http404, HttpResponsePermanentRedirect, JsonResponse
from django.urls import Resolver404, resolve
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiExample
from drf_standardized_errors.formatter import ExceptionFormatter
from drf_standardized_errors.handler import ExceptionHandler
from drf_standardized_errors.openapi import AutoSchema
from drf_standardized_errors.types import Error
from rest_framework import serializers
from rest_framework.exceptions import APIException, NotFound, ParseError
from rest_framework.request import Request
from rest_framework.settings import api_settings
from rest_framework.views import APIView

CONTENT_TYPE = "application/problem+json"


class Problem(APIException):
    """An answer other than success that has a code of its own, and may carry further members of the document."""

    def __init__(self, *, status: HTTPStatus, code: str, detail: str, **members: Any) -> None:
        super().__init__(detail=detail, code=code)
        self.status_code = status
        self.members = members


class ProblemHandler(ExceptionHandler):
    """Turns an exception into its answer; exceptions nobody expected are logged and answered with 500."""

    def convert_known_exceptions(self, exc: Exception) -> Exception:
        """Map Django's own refusals to their API meaning."""
        if isinstance(exc, Http404):
            return NotFound()
        if isinstance(exc, SuspiciousOperation):  # for example more parameters than Django reads
            return ParseError(_("The request could not be read."))
        return super().convert_known_exceptions(exc)

    def convert_unhandled_exceptions(self, exc: Exception) -> APIException:
        """Hide what went wrong from the caller; the log has it."""
        if isinstance(exc, APIException):
            return exc
        return APIException(_("Something went wrong on our side. It has been logged."))

    def get_response(self, exc: APIException, data: dict[str, Any]) -> JsonResponse:  # type: ignore[override]
        """Answer in JSON whatever format the caller asked for: a problem has no other form."""
        return JsonResponse(data, status=exc.status_code, headers=self.get_headers(exc), content_type=CONTENT_TYPE)


class ProblemFormatter(ExceptionFormatter):
    """Builds the document."""

    def run(self) -> dict[str, Any]:
        """Return the document of `self.exc`."""
        errors = [_error(error) for error in self.get_errors()]
        status = HTTPStatus(self.exc.status_code)
        return {
            "type": "about:blank",
            "title": status.phrase,
            "status": status.value,
            "detail": _detail(errors),
            "errors": errors,
            **getattr(self.exc, "members", {}),
        }


def _error(error: Error) -> dict[str, str | None]:
    field = None if error.attr == api_settings.NON_FIELD_ERRORS_KEY else error.attr
    return {"field": field, "code": error.code, "message": error.detail}


def _detail(errors: list[dict[str, str | None]]) -> str:
    """Return the one message, led by its field; of several say how many there are."""
    if len(errors) != 1:
        return _("%(count)d things are wrong with this request; see errors.") % {"count": len(errors)}
    message = errors[0]["message"] or ""
    return f"{errors[0]['field']}: {message}" if errors[0]["field"] else message


class UnknownPath(APIView):
    """Answers every address under `/api/` that leads nowhere. A GET that only lacks its last slash is sent on."""

    schema = None

    def get(self, request: Request) -> HttpResponsePermanentRedirect:
        """Send on, or refuse."""
        if _is_known(f"{request.path_info}/"):
            query = request.META.get("QUERY_STRING", "")
            return HttpResponsePermanentRedirect(f"{request.path}/" + (f"?{query}" if query else ""))
        raise self._not_found()

    def http_method_not_allowed(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Refuse: where nothing is, no method is better than another."""
        raise self._not_found()

    def _not_found(self) -> NotFound:
        return NotFound(_("There is nothing at this address; /api/docs/ lists what there is."))


def _is_known(path: str) -> bool:
    try:
        view = resolve(path).func
    except Resolver404:
        return False
    return getattr(view, "view_class", None) is not UnknownPath


class ProblemErrorSerializer(serializers.Serializer[Any]):
    """One thing that is wrong."""

    field = serializers.CharField(allow_null=True, help_text="The parameter or body field at fault, if it is one.")
    code = serializers.CharField(help_text="Stable and short, for programs.")
    message = serializers.CharField(help_text="For people.")


class ProblemSerializer(serializers.Serializer[Any]):
    """A problem document (RFC 9457)."""

    type = serializers.CharField()
    title = serializers.CharField(help_text="The status in words.")
    status = serializers.IntegerField()
    detail = serializers.CharField()
    errors = ProblemErrorSerializer(many=True)  # type: ignore[assignment]  # a field of that name


class ProblemSchema(AutoSchema):
    """Describes each call with its problem documents beside its answers."""

    def _should_add_validation_error_response(self) -> bool:
        return True  # unknown parameters are refused everywhere

    def _get_error_response_examples(self) -> list[OpenApiExample]:
        return []  # the library's examples have its own form

    def _get_response_for_code(
        self, serializer: Any, status_code: str, media_types: list[str] | None = None, direction: str = "response"
    ) -> Any:
        if status_code >= "400":
            media_types = [CONTENT_TYPE]
        return super()._get_response_for_code(  # type: ignore[no-untyped-call]
            serializer, status_code, media_types, direction
        )
