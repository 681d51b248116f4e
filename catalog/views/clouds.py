"""`/clouds/`: every cloud with its facts, filtered and ordered by the address. `/clouds/<slug>/`: one of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.text import capfirst
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from catalog.cloud_queries import CloudRow, cloud_rows, facts_of, offers_of_cloud, sources_of_cloud, with_facts
from catalog.models import Cloud, CloudFact
from catalog.views.kept import kept_page
from catalog.views.list_address import applied_filters, columns
from common import formats

Fact = CloudFact.Fact
STEPS = ((1, _("by the second")), (60, _("by the minute or finer")), (3600, _("by the hour or finer")))
SORTABLE = (
    "billing_step_seconds",
    "minimum_seconds",
    "egress_usd_per_gb",
    "spot_notice_seconds",
    "live_offers",
    "gpus",
    "price",
)
LARGEST_FIRST = ("spot_notice_seconds", "live_offers", "gpus")


class CloudFilterForm(forms.Form):
    """Filter and order of the list of clouds. A cloud whose fact was not found does not pass a filter on it."""

    search = forms.CharField(label=_("Name"), required=False, max_length=60)
    headquarters_country = forms.ChoiceField(label=_("Headquarters"), required=False)
    billing_step_max_seconds = forms.ChoiceField(label=_("Billed"), required=False, choices=[("", _("any")), *STEPS])
    stop_semantics = forms.ChoiceField(
        label=_("A stop costs"), required=False, choices=[("", _("any")), *CloudFact.Stop.choices]
    )
    persistent_volumes = forms.BooleanField(label=_("Persistent volumes"), required=False)
    multi_node = forms.BooleanField(label=_("Several machines as one cluster"), required=False)
    free_egress = forms.BooleanField(label=_("No charge for outgoing traffic"), required=False)
    has_price = forms.BooleanField(label=_("Only with a price"), required=False)
    sort = forms.ChoiceField(
        label=_("Sort by"),
        required=False,
        choices=[("", ""), *((sign + name, name) for name in SORTABLE for sign in ("", "-"))],
        widget=forms.HiddenInput,
    )

    def __init__(self, data: Mapping[str, str], *, rows: Iterable[CloudRow]) -> None:
        super().__init__(data)
        codes = {row.facts[Fact.HEADQUARTERS_COUNTRY].value for row in rows if Fact.HEADQUARTERS_COUNTRY in row.facts}
        language = get_language() or "en"
        named = sorted((formats.country(code, language=language), code) for code in codes)
        countries = self.fields["headquarters_country"]
        assert isinstance(countries, forms.ChoiceField)
        countries.choices = [("", _("any")), *((code, name) for name, code in named)]
        for field in self.fields.values():
            if isinstance(field, forms.ChoiceField):
                field.error_messages["invalid_choice"] = _("“%(value)s” is not one of the list.")


@kept_page
def list_clouds(request: HttpRequest) -> HttpResponse:
    """Show the clouds that match; a field that cannot be read is named and left out, the others hold."""
    now = datetime.now(UTC)
    rows = cloud_rows(now=now)
    form = CloudFilterForm(request.GET, rows=rows)
    form.is_valid()
    wanted = form.cleaned_data
    found = [row for row in rows if matches(row, wanted)]
    context = {
        "now": now,
        "form": form,
        "rows": sorted_rows(found, sort=wanted.get("sort", "")),
        "total": len(rows),
        "with_facts": sum(bool(row.facts) for row in rows),
        "wanted_sort": wanted.get("sort", ""),
        "columns": columns(wanted, sortable=SORTABLE, largest_first=LARGEST_FIRST),
        "applied": applied_filters(form),
    }
    return render(request, "catalog/clouds.html", context)


def matches(row: CloudRow, wanted: Mapping[str, Any]) -> bool:
    """Tell whether a cloud passes every filter that is set."""
    step = wanted.get("billing_step_max_seconds")
    words = wanted.get("search", "").lower().split()
    checks = (
        all(word in f"{row.cloud.name} {row.cloud.slug}".lower() for word in words),
        all(
            wanted.get(name, "") in ("", _value(row, name)) for name in (Fact.HEADQUARTERS_COUNTRY, Fact.STOP_SEMANTICS)
        ),
        not step or (_number(row, Fact.BILLING_STEP_SECONDS) or Decimal("inf")) <= int(step),
        all(
            not wanted.get(name) or _value(row, name) == CloudFact.YES
            for name in (Fact.PERSISTENT_VOLUMES, Fact.MULTI_NODE)
        ),
        not wanted.get("free_egress") or _number(row, Fact.EGRESS_USD_PER_GB) == 0,
        not wanted.get("has_price") or bool(row.prices),
    )
    return all(checks)


def _value(row: CloudRow, fact: str) -> str | None:
    return row.facts[fact].value if fact in row.facts else None


def _number(row: CloudRow, fact: str) -> Decimal | None:
    return row.facts[fact].number if fact in row.facts else None


def sorted_rows(rows: Sequence[CloudRow], *, sort: str) -> Sequence[CloudRow]:
    """Order by a column; clouds without that figure come last either way.

    Blank: those with a price first, then those with facts, each in the order of `rows`.
    """
    if not sort:
        return sorted(rows, key=lambda row: (not row.prices, not row.facts))
    name, sign = sort.removeprefix("-"), -1 if sort.startswith("-") else 1

    def key(row: CloudRow) -> tuple[bool, Decimal | int]:
        figure = sorted_by(row, name)
        return figure is None, sign * (figure or 0)

    return sorted(rows, key=key)


def sorted_by(row: CloudRow, name: str) -> Decimal | int | None:
    """Return what the column `name` sorts by; None where it was not found."""
    if name == "live_offers":
        return row.live_offers
    if name == "gpus":
        return len(row.prices)
    if name == "price":
        return row.prices[0].price_usd_per_gpu_hour if row.prices else None
    return _number(row, name)


@dataclass(frozen=True, kw_only=True)
class FactLine:
    """One line of a cloud's facts. `fact` is None where none was found."""

    name: str
    label: str
    fact: CloudFact | None


@kept_page
def show_cloud(request: HttpRequest, slug: str) -> HttpResponse:
    """Show one cloud; an unknown slug is a 404."""
    now = datetime.now(UTC)
    cloud = get_object_or_404(with_facts(Cloud.objects.all()), slug=slug)
    facts = facts_of(cloud)
    context = {
        "now": now,
        "cloud": cloud,
        "facts": facts,
        "lines": [
            FactLine(name=name, label=capfirst(str(label)), fact=facts.get(name)) for name, label in Fact.choices
        ],
        "newest_fact": max((fact.checked_on for fact in facts.values()), default=None),
        "groups": offers_of_cloud(cloud=cloud, now=now),
        "sources": sources_of_cloud(cloud=cloud),
    }
    return render(request, "catalog/cloud.html", context)
