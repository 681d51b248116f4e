"""`rentals/`: what is rented, the proof of every hour, and stopping."""

from datetime import UTC, datetime
from uuid import UUID

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from catalog.serializers import page_of
from common.pagination import Order as Sorting
from common.pagination import body_of, paginate
from common.parameters import OneOrMore, PageParameters, QueryParameters
from marketplace.models import Rental
from marketplace.queries.rentals import proof_of, rental_in_full, rentals_to_list
from marketplace.rental_serializers import RentalProofSerializer, RentalSerializer, proof_row, rental_row
from marketplace.rentals.states import RentalUnknown
from marketplace.rentals.stop import request_stop
from users.api.view import OrganisationView
from users.models import Organisation, Scope

_ID = OpenApiParameter("rental_id", UUID, OpenApiParameter.PATH)
_NEWEST_FIRST = Sorting(column="filled_at", is_descending=True)


class RentalParameters(PageParameters):
    """Which rentals."""

    state = OneOrMore(choices=Rental.State.values, required=False)


class RentalList(OrganisationView):
    """Rentals."""

    scopes = {"GET": Scope.READ}

    @extend_schema(
        operation_id="list_rentals",
        parameters=[RentalParameters],
        responses=page_of(RentalSerializer, name="RentalPage"),
        tags=["rentals"],
    )
    def get(self, request: Request) -> Response:
        """List the organisation's rentals, newest first. All hours of one, with their proof: `rentals/<id>/`."""
        wanted = RentalParameters.read(request.query_params)
        rentals = rentals_to_list(self.organisation)
        page = paginate(
            rentals.filter(state__in=wanted["state"]) if "state" in wanted else rentals,
            request=request,
            order=_NEWEST_FIRST,
            limit=wanted["limit"],
            cursor=wanted.get("cursor"),
        )
        return Response(body_of(page, [rental_row(rental) for rental in page.rows]))


class RentalDetail(OrganisationView):
    """One rental."""

    scopes = {"GET": Scope.READ}

    @extend_schema(operation_id="get_rental", parameters=[_ID], responses=RentalProofSerializer, tags=["rentals"])
    def get(self, request: Request, rental_id: UUID) -> Response:
        """Return a rental with the proof of every hour: what was heard, counted and charged, and at which rates."""
        QueryParameters.read(request.query_params)
        return told(self.organisation, rental_id, now=datetime.now(UTC))


class RentalStop(OrganisationView):
    """Stopping a rental."""

    scopes = {"POST": Scope.TRADE}

    @extend_schema(
        operation_id="stop_rental",
        parameters=[_ID],
        request=None,
        responses=RentalProofSerializer,
        tags=["rentals"],
    )
    def post(self, request: Request, rental_id: UUID) -> Response:
        """Stop a rental: billing ends with this request, whatever the machine does then. Again: the same answer."""
        QueryParameters.read(request.query_params)
        now = datetime.now(UTC)
        try:
            request_stop(organisation_id=self.organisation.pk, rental_id=rental_id, now=now)
        except RentalUnknown:
            raise NotFound from None
        return told(self.organisation, rental_id, now=now)


def told(organisation: Organisation, rental_id: UUID, *, now: datetime) -> Response:
    """Return one rental of the organisation as it is now."""
    rental = get_object_or_404(rental_in_full(organisation), pk=rental_id)
    return Response(proof_row(proof_of(rental, now=now), now=now))
