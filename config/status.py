"""`/status/`: whether the site does its work, in words, and how each price source did over thirty days."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from catalog.models import Source
from catalog.source_days import DayState, last_days
from config.health import problems
from marketplace.models import UpSpan
from marketplace.sweep import UP_WITHIN

# What each check of `/readyz` keeps running, in the reader's words.
PARTS: dict[str, tuple[Promise, Promise]] = {
    "database": (_("Pages, prices and orders"), _("answered from the database")),
    "broker": (_("Messages between processes"), _("refreshes, mails and webhooks are passed on by it")),
    "beat": (_("Scheduled work"), _("sources, settlement and alerts are started by it")),
    "books": (_("Payments and orders"), _("stopped as soon as the books do not add up")),
}


@dataclass(frozen=True, kw_only=True)
class Part:
    """One part of the site. `problem` is as `/readyz` words it, "" when all is well."""

    name: str | Promise
    note: str | Promise
    problem: str


@dataclass(frozen=True, kw_only=True)
class SourceLine:
    """A price source with its last thirty days, oldest first."""

    source: Source
    days: Sequence[DayState]

    @property
    def read_days(self) -> int:
        """On how many of them it was read whole."""
        return sum(day.state == "whole" for day in self.days)


@require_safe
@cache_control(no_cache=True)
def show_status(request: HttpRequest) -> HttpResponse:
    """Show the state. It answers 200 also when something is down: it is for people; `/readyz` is for programs."""
    now = datetime.now(UTC)
    parts = [*site_parts(now=now), sweep_part(now=now)]
    days = last_days(now=now)
    lines = [SourceLine(source=source, days=days.get(source.pk, ())) for source in Source.objects.order_by("title")]
    context = {
        "now": now,
        "parts": parts,
        "troubled": sum(bool(part.problem) for part in parts),
        "lines": lines,
        "failing": sum(line.source.state == Source.State.FAILING for line in lines),
    }
    return render(request, "config/status.html", context)


def site_parts(*, now: datetime) -> list[Part]:
    """Return what `/readyz` checks."""
    return [
        Part(name=PARTS[name][0], note=PARTS[name][1], problem=problem) for name, problem in problems(now=now).items()
    ]


def sweep_part(*, now: datetime) -> Part:
    """Return how the exchange's own round does: it notices silent servers and orders whose time is over. One query."""
    latest = UpSpan.objects.order_by("-started_at").first()
    if latest is None:
        problem = "not seen yet"
    elif now - latest.last_seen_at > UP_WITHIN:
        problem = f"last seen {latest.last_seen_at:%Y-%m-%d %H:%M} UTC"
    else:
        problem = ""
    return Part(
        name=_("The exchange"), note=_("silent servers and orders whose time is over are noticed"), problem=problem
    )
