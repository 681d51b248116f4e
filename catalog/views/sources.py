"""`/sources/`: where each price comes from and how that source is doing. `/method/`: the rules in words."""

from datetime import UTC, datetime

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from catalog.queries import source_states


def list_sources(request: HttpRequest) -> HttpResponse:
    """Show every source with its state, its last error, and what it held back."""
    return render(request, "catalog/sources.html", {"now": datetime.now(UTC), "states": source_states()})


def show_method(request: HttpRequest) -> HttpResponse:
    """Show how prices, tiers, statistics and the training rule work."""
    return render(request, "catalog/method.html")
