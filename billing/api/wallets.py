"""`wallets/`: what an organisation has, what of it is held, and how long the rest lasts."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from billing.filters import NoParameters
from billing.queries.wallets import wallets_of
from billing.serializers import WalletListSerializer
from users.api.view import OrganisationView
from users.models import Scope


class WalletList(OrganisationView):
    """Wallets."""

    scopes = {"GET": Scope.READ}

    @extend_schema(operation_id="list_wallets", responses=WalletListSerializer, tags=["wallets"])
    def get(self, request: Request) -> Response:
        """List the wallets of the organisation, one per currency, those that no top-up opened yet with zeros."""
        NoParameters.read(request.query_params)
        return Response(WalletListSerializer({"results": wallets_of(self.organisation.pk)}).data)
