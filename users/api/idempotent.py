"""`Idempotency-Key`: a call that may be sent again without being run again."""

import hashlib
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import APIException, ErrorDetail, ValidationError
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from common.problems import Problem
from users.idempotency import Claim, KeptAnswer, OtherRequest, StillRunning, forget, keep, once

HEADER = "Idempotency-Key"
HEADER_FORM = "^[!-~]{1,200}$"  # printable ASCII without spaces


def idempotent(call: Callable[..., Response]) -> Callable[..., HttpResponseBase]:
    """Run a method of an OrganisationView once per `Idempotency-Key` and body; others get the same answer.

    Inside, `self.object_id` is the id for what the call makes: a try that was cut off left it under this id.
    An answer below 400 is kept for 24 hours. A refusal (4xx) frees the key. After a 5xx nobody knows how far it came:
    the key stays with its body, and the next try runs again under the same `object_id`.
    """

    @wraps(call)
    def answer(view: Any, request: Request, *args: Any, **kwargs: Any) -> HttpResponseBase:
        key, request_sha256 = _key_of(request), _sha256_of(request)
        now = datetime.now(UTC)
        try:
            with once(organisation=view.organisation, key=key, request_sha256=request_sha256, now=now) as claim:
                if claim.answer is not None:
                    return _again(claim.answer)
                view.object_id = claim.object_id
                return _run(claim, lambda: call(view, request, *args, **kwargs))
        except OtherRequest:
            raise _ReusedKey from None
        except StillRunning:
            raise _StillRunning from None

    answer.is_idempotent = True  # type: ignore[attr-defined]
    return answer


def is_idempotent(method: Callable[..., Any]) -> bool:
    """Whether this method of a view is wrapped in `idempotent`."""
    return getattr(method, "is_idempotent", False)


def idempotency_header(*, is_required: bool) -> OpenApiParameter:
    """Return the header as the description shows it."""
    return OpenApiParameter(
        HEADER,
        str,
        OpenApiParameter.HEADER,
        required=is_required,
        pattern=HEADER_FORM,
        description=(
            "Made up by you, one per order of yours, such as a UUID. Sent again within 24 hours with the same body, "
            "the call is not run again and the answer is the same; with another body it is refused with 422. Answers "
            "from 400 on are not kept: the same key may be tried again."
        ),
    )


class _ReusedKey(Problem):
    def __init__(self) -> None:
        super().__init__(
            status=HTTPStatus.UNPROCESSABLE_ENTITY,
            code="idempotency_key_reused",
            detail=_("This Idempotency-Key was used for another request. Make a new one, or send the same body."),
        )


class _StillRunning(Problem):
    wait = 5

    def __init__(self) -> None:
        super().__init__(
            status=HTTPStatus.CONFLICT,
            code="still_running",
            detail=_("The first request with this Idempotency-Key is still running. Send it again in a moment."),
        )


def _key_of(request: Request) -> str:
    key = request.headers.get(HEADER)
    if key is None:
        message = _("Send a key of your own making, such as a UUID: with it the request can safely be sent again.")
        raise ValidationError({HEADER: [ErrorDetail(message, code="required")]})
    if not re.fullmatch(HEADER_FORM.replace("$", r"\Z"), key):
        message = _("1 to 200 printable ASCII characters without spaces.")
        raise ValidationError({HEADER: [ErrorDetail(message, code="invalid")]})
    return key


def _sha256_of(request: Request) -> str:
    """Return the hash of what the request asks for: bodies that differ in spaces or the order of names are one."""
    body = json.dumps(request.data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(f"{request.method} {request.path}\n{body}".encode()).hexdigest()


def _run(claim: Claim, call: Callable[[], Response]) -> HttpResponseBase:
    try:
        response = call()
    except (APIException, Http404, PermissionDenied) as problem:
        if getattr(problem, "status_code", HTTPStatus.NOT_FOUND) < HTTPStatus.INTERNAL_SERVER_ERROR:
            forget(claim)
        raise
    answer = KeptAnswer(status=response.status_code, body=JSONRenderer().render(response.data).decode())
    if answer.status < HTTPStatus.BAD_REQUEST:
        keep(claim, answer)
    return _response(answer)


def _again(answer: KeptAnswer) -> HttpResponse:
    response = _response(answer)
    response["Idempotency-Replayed"] = "true"
    return response


def _response(answer: KeptAnswer) -> HttpResponse:
    return HttpResponse(answer.body, status=answer.status, content_type="application/json")
