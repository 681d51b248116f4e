"""`gpus/resolve/`: which GPU a name means."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from catalog import names
from catalog.api.view import CatalogueView
from catalog.filters import NameParameters
from catalog.serializers import NameProblemSerializer, ResolvedSerializer
from common.problems import Problem


class GpuName(CatalogueView):
    """The GPU a name means."""

    @extend_schema(
        operation_id="resolve_gpu",
        parameters=[NameParameters],
        responses={200: ResolvedSerializer, 404: NameProblemSerializer, 409: NameProblemSerializer},
        tags=["gpus"],
    )
    def get(self, request: Request) -> HttpResponseBase:
        """Say which GPU a spelling means, never by guessing: 409 with the candidates where it may be several."""
        wanted = NameParameters.read(request.query_params)
        return self.answer(request, lambda now: resolved(wanted))


def resolved(wanted: Mapping[str, Any]) -> dict[str, str]:
    """Return the GPU meant. Raises Problem: 409 with candidates, 404 without."""
    hints = names.Hints(
        memory_gb=wanted.get("memory_gb"),
        form_factor=wanted.get("form_factor", ""),
        cloud=names.cloud_slug(wanted.get("cloud", "")),
        instance_type=wanted.get("instance_type", ""),
    )
    found = names.resolve(wanted["name"], hints=hints)
    if found.slug:
        return {"slug": found.slug, "matched_by": found.matched_by}
    if found.candidates:
        raise Problem(
            status=HTTPStatus.CONFLICT,
            code="ambiguous_name",
            detail=_("This name may mean several GPUs; memory_gb, form_factor or cloud can tell them apart."),
            candidates=list(found.candidates),
        )
    raise Problem(
        status=HTTPStatus.NOT_FOUND, code="unknown_name", detail=_("No GPU is known by this name."), candidates=[]
    )
