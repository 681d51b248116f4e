"""`/sources/`: where each price comes from and how that source is doing. `/method/`: the rules in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from catalog.queries import SourceState, source_states
from catalog.source_days import DayState, last_days
from catalog.what_fits import FIT_RULES


@dataclass(frozen=True, kw_only=True)
class SourceLine:
    """A source with its last thirty days."""

    state: SourceState
    days: Sequence[DayState]

    @property
    def read_days(self) -> int:
        """On how many of them it was read whole."""
        return sum(day.state == "whole" for day in self.days)


def list_sources(request: HttpRequest) -> HttpResponse:
    """Show every source with its state, its last error, and what it held back."""
    now = datetime.now(UTC)
    days = last_days(now=now)
    states = [SourceLine(state=state, days=days.get(state.source.pk, ())) for state in source_states()]
    return render(request, "catalog/sources.html", {"now": now, "lines": states})


def show_method(request: HttpRequest) -> HttpResponse:
    """Show how prices, tiers, statistics and the rules of sizes work."""
    return render(request, "catalog/method.html", {"fit_rules": FIT_RULES})
