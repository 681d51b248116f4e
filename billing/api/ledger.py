"""`ledger/`: the lines of one wallet, newest first, as JSON by the page or as CSV in one stream."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from billing.filters import LedgerParameters
from billing.queries.statement import (
    Mark,
    StatementLine,
    StatementPage,
    UnknownMark,
    View,
    mark_as_text,
    mark_from_text,
    statement_lines,
    statement_page,
)
from billing.queries.wallets import wallet_account_id
from billing.serializers import StatementLineSerializer, StatementPageSerializer
from billing.statement_csv import statement_csv
from common.csv_lines import CsvRenderer
from users.api.view import OrganisationView
from users.models import Scope


class Ledger(OrganisationView):
    """Lines of a wallet."""

    scopes = {"GET": Scope.READ}
    renderer_classes = [JSONRenderer, CsvRenderer]

    @extend_schema(
        operation_id="list_ledger_lines",
        parameters=[LedgerParameters],
        responses={(200, "application/json"): StatementPageSerializer, (200, "text/csv"): OpenApiTypes.STR},
        tags=["wallets"],
    )
    def get(self, request: Request) -> HttpResponseBase:
        """List what came into a wallet and went out of it, newest first, with the balance after each line.

        Lines keep the order they were booked in. A wallet that no top-up opened yet has none.
        """
        wanted = LedgerParameters.read(request.query_params)
        account_id = wallet_account_id(self.organisation.pk, wanted["wallet"])
        if wanted.get("format", request.accepted_renderer.format) == "csv":
            is_page = bool(request.query_params.keys() & {"limit", "cursor"})
            lines = _page(wanted, account_id).lines if is_page else _all(wanted, account_id)
            return statement_csv(lines, currency=wanted["wallet"])
        page = _page(wanted, account_id)
        body = {"next": page.older, "previous": page.newer}
        urls = {name: mark and _url(request, mark, account_id) for name, mark in body.items()}
        return Response({**urls, "results": StatementLineSerializer(page.lines, many=True).data})


def _page(wanted: Mapping[str, Any], account_id: int | None) -> StatementPage:
    if account_id is None:
        return StatementPage(lines=[], older=None, newer=None)
    mark = _mark(wanted, account_id)
    return statement_page(account_id=account_id, view=_view(wanted), limit=wanted["limit"], mark=mark)


def _all(wanted: Mapping[str, Any], account_id: int | None) -> Iterable[StatementLine]:
    return [] if account_id is None else statement_lines(account_id=account_id, view=_view(wanted))


def _view(wanted: Mapping[str, Any]) -> View:
    return View(since=wanted.get("from"), until=wanted.get("to"))


def _mark(wanted: Mapping[str, Any], account_id: int) -> Mark | None:
    try:
        return mark_from_text(wanted["cursor"], account_id=account_id) if "cursor" in wanted else None
    except UnknownMark:
        message = _("This is not a cursor of this wallet: take it from next or previous.")
        raise ValidationError({"cursor": [ErrorDetail(message, code="invalid")]}) from None


def _url(request: Request, mark: Mark, account_id: int | None) -> str:
    assert account_id is not None
    return str(replace_query_param(request.build_absolute_uri(), "cursor", mark_as_text(mark, account_id=account_id)))
