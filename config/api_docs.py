"""`/api/v1/schema/`: the API described for programs. `/api/docs/`: the same for people."""

import hashlib
import json
from datetime import UTC, datetime
from functools import cache
from typing import Any

from csp.decorators import csp_update
from django.http.response import HttpResponseBase
from django.urls import reverse
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from common.conditional import Version, answer, json_response
from common.parameters import QueryParameters


class NoParameters(QueryParameters):
    """The description takes none."""


class Schema(APIView):
    """The description of this API."""

    http_method_names = ["get", "head"]

    @extend_schema(operation_id="get_schema", responses=OpenApiTypes.OBJECT, tags=["schema"])
    def get(self, request: Request) -> HttpResponseBase:
        """Return this description, as OpenAPI 3."""
        NoParameters.read(request.query_params)
        body, version = described_api()
        return answer(request, version=version, build=lambda: json_response(body))


@cache
def described_api() -> tuple[bytes, Version]:
    """Return the OpenAPI document and its version; made once per process, since only code changes it."""
    document = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    body = json.dumps(document, default=str, ensure_ascii=False).encode()
    return body, Version(key=hashlib.sha256(body).hexdigest(), changed_at=datetime.now(UTC))


class Docs(SpectacularSwaggerSplitView):
    """The API to read, and to try out with files of our own."""

    url_name = "api-schema"
    template_name = "api_docs.html"

    @extend_schema(exclude=True)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Show the page, or the script that fills it."""
        response: Response = super().get(request, *args, **kwargs)  # type: ignore[no-untyped-call]
        response.data |= {"calls": calls(), "schema_url": reverse(self.url_name)}
        return response


def calls() -> list[dict[str, str]]:
    """Return each call's method, path and what it answers."""
    paths = json.loads(described_api()[0])["paths"]
    return [
        {"method": method.upper(), "path": path, "description": call["description"]}
        for path, methods in paths.items()
        for method, call in methods.items()
    ]


# The viewer sets styles on its elements, which the site's own policy forbids.
show_docs = csp_update({"style-src": ["'self'", "'unsafe-inline'"]})(Docs.as_view())
