"""`sizing/estimate/`: what a job needs, and which GPUs it fits."""

from datetime import UTC, datetime

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from common.json_body import BoundedJSONParser
from common.parameters import QueryParameters
from sizing.engine.request import RequestError
from sizing.estimates import answer_estimate
from sizing.serializers import EstimateRequestSerializer, EstimateSerializer
from users.api.throttling import CountedView


class NoParameters(QueryParameters):
    """The call takes no query parameters."""


class EstimateCall(CountedView):
    """Estimates."""

    http_method_names = ["post"]
    parser_classes = [BoundedJSONParser]

    @extend_schema(
        operation_id="estimate", request=EstimateRequestSerializer, responses=EstimateSerializer, tags=["sizing"]
    )
    def post(self, request: Request) -> Response:
        """Estimate memory, speed, hours and cost of a training run or a generation. Nothing is stored."""
        NoParameters.read(request.query_params)
        if not isinstance(request.data, dict):
            raise ValidationError(_("The body must be a JSON object."))
        try:
            answer = answer_estimate(request.data, now=datetime.now(UTC))
        except RequestError as problem:
            raise ValidationError({problem.field: [ErrorDetail(problem.message, code=problem.code)]}) from problem
        return Response(EstimateSerializer(answer).data)
