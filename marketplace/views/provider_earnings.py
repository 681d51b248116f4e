"""`/provider/earnings/`: what was earned, hour by hour, as a page and as CSV; and how much of the servers was sold."""

from collections.abc import Iterator
from datetime import UTC, datetime
from urllib.parse import urlencode

from django.core.paginator import InvalidPage, Paginator
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from common.csv_lines import csv_lines
from marketplace.provider_forms import EarningsForm
from marketplace.provider_serializers import EarnedHourSerializer, earned_row
from marketplace.queries.earnings import earned, earned_hour, settled_hours, sold_rentals, use_of_servers
from marketplace.views.provider_access import for_providers
from users.access import EVERYONE
from users.models import Membership

PER_PAGE = 50
RENTALS_SHOWN = 20
_COLUMNS = tuple(EarnedHourSerializer().fields)


@require_safe
@for_providers(*EVERYONE, tells_renters=True)
def show_earnings(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show settled hours with net, fee and payable, their sum, and the use of each server."""
    now, provider_id = datetime.now(UTC), membership.organisation_id
    form = EarningsForm(request.GET)
    since, until = form.span
    try:
        page = Paginator(settled_hours(provider_id, since=since, until=until), PER_PAGE).page(
            request.GET.get("page", 1)
        )
    except InvalidPage:
        raise Http404 from None
    wanted = {name: request.GET[name] for name in ("from", "to") if form.is_valid() and request.GET.get(name)}
    context = {
        "now": now,
        "form": form,
        "page": page,
        "hours": [earned_hour(line) for line in page],
        "earned": earned(provider_id, since=since, until=until),
        "uses": use_of_servers(provider_id, now=now),
        "rentals": sold_rentals(provider_id)[:RENTALS_SHOWN],
        "csv_query": urlencode(wanted),
        "is_narrowed": bool(wanted),
    }
    return render(request, "marketplace/provider/earnings.html", context)


@require_safe
@for_providers(*EVERYONE)
def download_earnings(request: HttpRequest, membership: Membership) -> HttpResponseBase:
    """Return the hours asked for as CSV, exact to the micro, with the API's names."""
    since, until = EarningsForm(request.GET).span
    lines = settled_hours(membership.organisation_id, since=since, until=until)

    def cells() -> Iterator[list[object]]:
        for line in lines.iterator(chunk_size=2000):
            row = EarnedHourSerializer(earned_row(earned_hour(line))).data
            yield [row[name] for name in _COLUMNS]

    headers = {"Content-Disposition": 'attachment; filename="earnings-USD.csv"'}
    return StreamingHttpResponse(csv_lines(_COLUMNS, cells()), content_type="text/csv; charset=utf-8", headers=headers)
