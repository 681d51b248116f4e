"""`provider/`: a company that sells: its application, servers, listings, and what they earn."""

from datetime import UTC, datetime
from http import HTTPStatus
from uuid import UUID

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from catalog.serializers import page_of
from common.pagination import Order as Sorting
from common.pagination import body_of, paginate
from common.parameters import PageParameters, QueryParameters
from marketplace.api.provider_bodies import (
    ApplicationBody,
    EarningsParameters,
    ListingBody,
    ServerBody,
    TermsBody,
    agreements_in,
    machine_of,
    offered_in,
)
from marketplace.api.provider_problems import provider_problems
from marketplace.models import Listing, Server
from marketplace.provider_serializers import (
    EarnedHourSerializer,
    EnrolTokenSerializer,
    ListingSerializer,
    ProviderSerializer,
    ServerSerializer,
    SoldRentalSerializer,
    earned_row,
    listing_row,
    provider_row,
    server_row,
    sold_row,
)
from marketplace.providers.application import apply
from marketplace.providers.enrol_tokens import issue_enrol_token
from marketplace.providers.fleet import add_server, change_offer, pause_offer, put_up, resume_offer
from marketplace.providers.missing import APPLICATION
from marketplace.providers.onboarding import onboarding_of
from marketplace.queries.earnings import earned_hour, settled_hours, sold_rentals
from marketplace.queries.servers import with_market
from users.api.idempotent import idempotent
from users.api.view import OrganisationView
from users.models import Scope

_SERVER = OpenApiParameter("server_id", UUID, OpenApiParameter.PATH)
_LISTING = OpenApiParameter("listing_id", UUID, OpenApiParameter.PATH)
_TAGS = ["provider"]


class ProviderDetail(OrganisationView):
    """The provider itself."""

    scopes = {"GET": Scope.PROVIDER}

    @extend_schema(operation_id="get_provider", responses=ProviderSerializer, tags=_TAGS)
    def get(self, request: Request) -> Response:
        """Return where the provider stands, and what is missing before it sells."""
        QueryParameters.read(request.query_params)
        return Response(provider_row(onboarding_of(self.organisation, now=datetime.now(UTC))))


class Application(OrganisationView):
    """The application."""

    scopes = {"POST": Scope.PROVIDER}

    @extend_schema(
        operation_id="save_provider_application", request=ApplicationBody, responses=ProviderSerializer, tags=_TAGS
    )
    def post(self, request: Request) -> Response:
        """Save what is given of the application, and with `submit` send it for review: all of it or nothing."""
        QueryParameters.read(request.query_params)
        wanted, now = ApplicationBody.read(request.data), datetime.now(UTC)
        with provider_problems():
            apply(
                organisation_id=self.organisation.pk,
                changes={name: wanted[name] for name in APPLICATION if name in wanted},
                agrees_to=agreements_in(wanted),
                is_submitted=wanted["submit"],
                by=self.api_key.created_by,
                now=now,
            )
        return Response(provider_row(onboarding_of(self.organisation, now=now)))


class ServerList(OrganisationView):
    """Servers."""

    scopes = {"GET": Scope.PROVIDER, "POST": Scope.PROVIDER}

    @extend_schema(
        operation_id="list_servers",
        parameters=[PageParameters],
        responses=page_of(ServerSerializer, name="ServerPage"),
        tags=_TAGS,
    )
    def get(self, request: Request) -> Response:
        """List the provider's servers, newest first, withdrawn ones too, each with its listing."""
        wanted, now = PageParameters.read(request.query_params), datetime.now(UTC)
        page = paginate(
            with_market(Server.objects.filter(provider_id=self.organisation.pk)),
            request=request,
            order=Sorting(column="created_at", is_descending=True),
            limit=wanted["limit"],
            cursor=wanted.get("cursor"),
        )
        return Response(body_of(page, [server_row(server, now=now) for server in page.rows]))

    @extend_schema(operation_id="add_server", request=ServerBody, responses={201: ServerSerializer}, tags=_TAGS)
    def post(self, request: Request) -> Response:
        """Add a server of an approved provider. It sells once it is verified, listed and heard of."""
        QueryParameters.read(request.query_params)
        machine, now = machine_of(ServerBody.read(request.data)), datetime.now(UTC)
        with provider_problems():
            server = add_server(
                organisation_id=self.organisation.pk, machine=machine, by=self.api_key.created_by, now=now
            )
        added = with_market(Server.objects.filter(pk=server.pk)).get()
        return Response(server_row(added, now=now), status=HTTPStatus.CREATED)


class ServerEnrolToken(OrganisationView):
    """A server's enrol token."""

    scopes = {"POST": Scope.PROVIDER}

    @extend_schema(
        operation_id="issue_enrol_token",
        parameters=[_SERVER],
        request=None,
        responses={201: EnrolTokenSerializer},
        tags=_TAGS,
    )
    def post(self, request: Request, server_id: UUID) -> Response:
        """Issue a token for the server's agent: good once, for an hour. The one before is good no longer."""
        QueryParameters.read(request.query_params)
        with provider_problems():
            issued = issue_enrol_token(
                organisation_id=self.organisation.pk,
                server_id=server_id,
                by=self.api_key.created_by,
                now=datetime.now(UTC),
            )
        return Response({"token": issued.token, "expires_at": issued.expires_at}, status=HTTPStatus.CREATED)


class ListingList(OrganisationView):
    """Listings."""

    scopes = {"POST": Scope.PROVIDER}

    @extend_schema(operation_id="list_server", request=ListingBody, responses={201: ListingSerializer}, tags=_TAGS)
    @idempotent
    def post(self, request: Request) -> Response:
        """Put a server up for rent. It sells at once where it is verified and heard of."""
        QueryParameters.read(request.query_params)
        wanted = ListingBody.read(request.data)
        if not Listing.objects.filter(pk=self.object_id).exists():  # else a try that was cut off had listed it
            with provider_problems(server_field="server"):
                put_up(
                    organisation_id=self.organisation.pk,
                    server_id=wanted["server"],
                    offered=offered_in(wanted),
                    now=datetime.now(UTC),
                    listing_id=self.object_id,
                )
        return _told(self.organisation.pk, self.object_id, status=HTTPStatus.CREATED)


class ListingDetail(OrganisationView):
    """One listing."""

    scopes = {"PATCH": Scope.PROVIDER}

    @extend_schema(
        operation_id="change_listing",
        parameters=[_LISTING],
        request=TermsBody,
        responses=ListingSerializer,
        tags=_TAGS,
    )
    def patch(self, request: Request, listing_id: UUID) -> Response:
        """Change price and terms for what is not sold yet. A new price goes to the end of the line at that price."""
        QueryParameters.read(request.query_params)
        wanted = TermsBody.read(request.data)
        listing = get_object_or_404(Listing, pk=listing_id, server__provider_id=self.organisation.pk)
        with provider_problems():
            change_offer(
                organisation_id=self.organisation.pk,
                listing_id=listing_id,
                offered=offered_in(wanted, listing),
                now=datetime.now(UTC),
            )
        return _told(self.organisation.pk, listing_id)


class ListingPause(OrganisationView):
    """Pausing a listing."""

    scopes = {"POST": Scope.PROVIDER}

    @extend_schema(
        operation_id="pause_listing", parameters=[_LISTING], request=None, responses=ListingSerializer, tags=_TAGS
    )
    def post(self, request: Request, listing_id: UUID) -> Response:
        """Sell nothing more for now; what is sold goes on. Again: the same answer."""
        QueryParameters.read(request.query_params)
        with provider_problems():
            pause_offer(organisation_id=self.organisation.pk, listing_id=listing_id, now=datetime.now(UTC))
        return _told(self.organisation.pk, listing_id)


class ListingResume(OrganisationView):
    """Resuming a listing."""

    scopes = {"POST": Scope.PROVIDER}

    @extend_schema(
        operation_id="resume_listing", parameters=[_LISTING], request=None, responses=ListingSerializer, tags=_TAGS
    )
    def post(self, request: Request, listing_id: UUID) -> Response:
        """Sell again, at the old place in line. Again: the same answer."""
        QueryParameters.read(request.query_params)
        with provider_problems():
            resume_offer(organisation_id=self.organisation.pk, listing_id=listing_id, now=datetime.now(UTC))
        return _told(self.organisation.pk, listing_id)


class EarningList(OrganisationView):
    """Earnings."""

    scopes = {"GET": Scope.PROVIDER}

    @extend_schema(
        operation_id="list_earnings",
        parameters=[EarningsParameters],
        responses=page_of(EarnedHourSerializer, name="EarnedHourPage"),
        tags=_TAGS,
    )
    def get(self, request: Request) -> Response:
        """List settled hours, newest first: what the renter paid without tax, our fee, and what is owed to you."""
        wanted = EarningsParameters.read(request.query_params)
        page = paginate(
            settled_hours(self.organisation.pk, since=wanted.get("from"), until=wanted.get("to")),
            request=request,
            order=Sorting(column="hour", is_descending=True),
            limit=wanted["limit"],
            cursor=wanted.get("cursor"),
        )
        return Response(body_of(page, [earned_row(earned_hour(line)) for line in page.rows]))


class SoldRentalList(OrganisationView):
    """Rentals on the provider's servers."""

    scopes = {"GET": Scope.PROVIDER}

    @extend_schema(
        operation_id="list_sold_rentals",
        parameters=[PageParameters],
        responses=page_of(SoldRentalSerializer, name="SoldRentalPage"),
        tags=_TAGS,
    )
    def get(self, request: Request) -> Response:
        """List what was rented of the provider's servers, newest first, with the sum of the settled hours."""
        wanted = PageParameters.read(request.query_params)
        page = paginate(
            sold_rentals(self.organisation.pk),
            request=request,
            order=Sorting(column="filled_at", is_descending=True),
            limit=wanted["limit"],
            cursor=wanted.get("cursor"),
        )
        return Response(body_of(page, [sold_row(rental) for rental in page.rows]))


def _told(provider_id: int, listing_id: UUID, *, status: HTTPStatus = HTTPStatus.OK) -> Response:
    listing = get_object_or_404(Listing, pk=listing_id, server__provider_id=provider_id)
    return Response(listing_row(listing), status=status)
