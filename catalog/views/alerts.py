"""`/alerts/`: the prices somebody waits for; and the page behind a mail's link, which ends one without a sign-in."""

from datetime import UTC, datetime
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST

from catalog.alert_form import AlertForm
from catalog.alerts.ask import AlertRefused, AlreadyAsked, TooManyAlerts, ask_alert
from catalog.alerts.end import UnknownLink, alert_of_link, end_alert
from catalog.models import Gpu, PriceAlert
from catalog.queries import GpuPrices, price_table
from users.access import EVERYONE, OWNERS, for_members, may
from users.models import EventType, Membership
from users.private import private

ENDED_SHOWN = 10
REFUSALS: dict[type[AlertRefused], tuple[str | None, Promise]] = {
    AlreadyAsked: ("price", _("You wait for this very price already.")),
    TooManyAlerts: (None, _("Your organisation has as many open alerts as it may have. End one that is done.")),
}


@require_http_methods(["GET", "HEAD", "POST"])
@for_members(*EVERYONE)
def show_alerts(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show the organisation's alerts with the form for another; `?gpu=` chooses its GPU beforehand."""
    is_sent = request.method == "POST"
    form = AlertForm(request.POST if is_sent else None, initial={"gpu": request.GET.get("gpu"), "place": "either"})
    if form.is_valid() and _asked(request, membership, form):
        messages.success(request, _("The alert is on. You get a mail each time the price falls that low."))
        return redirect(f"{reverse('catalog:alerts')}#main")  # not where the form was: the message is on top
    page = {
        "now": datetime.now(UTC),
        "organisation": membership.organisation,
        "alerts": _alerts(membership, is_open=True),
        "ended": _alerts(membership, is_open=False)[:ENDED_SHOWN],
        "form": form,
        "chosen": _chosen(request.GET.get("gpu", "")),
        "me": membership.user_id,
        "may_end_all": may(membership, *OWNERS),
        "event": EventType.PRICE_BELOW.value,
        "most_alerts": settings.PRICE_ALERTS_PER_ORGANISATION,
    }
    return render(request, "catalog/alerts.html", page)


def _chosen(slug: str) -> tuple[Gpu, GpuPrices] | None:
    """Return the GPU that the address names, with its prices now; None where it names none."""
    gpu = Gpu.objects.filter(slug=slug).first() if slug.isprintable() and slug else None
    return (gpu, price_table(now=datetime.now(UTC), gpu_slugs=[slug])[slug]) if gpu else None


def _asked(request: HttpRequest, membership: Membership, form: AlertForm) -> bool:
    try:
        ask_alert(
            organisation=membership.organisation,
            asked_by=membership.user,
            gpu=form.cleaned_data["gpu"],
            at_most_usd_per_gpu_hour=form.cleaned_data["price"],
            place=form.cleaned_data["place"],
            language=get_language() or settings.LANGUAGE_CODE,
            site=request.build_absolute_uri("/").removesuffix("/"),
            now=datetime.now(UTC),
        )
    except AlertRefused as refusal:
        field, message = REFUSALS[type(refusal)]
        form.add_error(field, str(message))
        return False
    return True


def _alerts(membership: Membership, *, is_open: bool) -> QuerySet[PriceAlert]:
    own = PriceAlert.objects.filter(organisation=membership.organisation, ended_at__isnull=is_open)
    order = ("gpu__position", "at_most_usd_per_gpu_hour", "pk") if is_open else ("-ended_at", "pk")
    return own.select_related("gpu", "asked_by").order_by(*order)


@require_POST
@for_members(*EVERYONE)
def end_own_alert(request: HttpRequest, membership: Membership, alert_id: UUID) -> HttpResponse:
    """End an alert that one asked for; an owner ends everybody's."""
    alert = get_object_or_404(PriceAlert, organisation=membership.organisation, pk=alert_id)
    if alert.asked_by_id != membership.user_id and not may(membership, *OWNERS):
        raise PermissionDenied
    end_alert(alert_id=alert.pk, now=datetime.now(UTC))
    messages.success(request, _("The alert is ended. Nothing more is sent about it."))
    return redirect("catalog:alerts")


@private
@csrf_exempt  # the link itself is the proof; a mail program presses the button without a page of ours (RFC 8058)
@require_http_methods(["GET", "HEAD", "POST"])
def end_alert_by_link(request: HttpRequest, token: str) -> HttpResponse:
    """Ask with one button whether to end the alert of a mail; POST ends it. Looking changes nothing."""
    try:
        alert = alert_of_link(token)
    except UnknownLink:
        raise Http404 from None
    if request.method == "POST":
        end_alert(alert_id=alert.pk, now=datetime.now(UTC))
        alert.refresh_from_db(fields=["ended_at"])
    return render(request, "catalog/end_alert.html", {"alert": alert})
