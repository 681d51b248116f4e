"""A list whose address is its state: header links that sort it, and links that take one filter away."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlencode

from django import forms
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from common.shown_currency import current as current_currency


@dataclass(frozen=True, kw_only=True)
class Column:
    """The link in a column's header: where a click leads, and how the list is ordered by it now."""

    href: str
    aria_sort: str


@dataclass(frozen=True, kw_only=True)
class AppliedFilter:
    """A filter in words, and the address without it."""

    label: str | Promise
    value: str | Promise
    href: str


def columns(wanted: Mapping[str, Any], *, sortable: Sequence[str], largest_first: Collection[str]) -> dict[str, Column]:
    """Return the header links by column: the first click puts the useful end on top, the second turns it round."""
    sort = wanted.get("sort", "")
    links = {}
    for name in sortable:
        first, other = (f"-{name}", name) if name in largest_first else (name, f"-{name}")
        aria = {name: "ascending", f"-{name}": "descending"}.get(sort, "")
        links[name] = Column(href=_address(wanted, sort=other if sort == first else first), aria_sort=aria)
    return links


def applied_filters(form: forms.Form) -> list[AppliedFilter]:
    """Return what is filtered by, each with the address that leaves it out."""
    wanted = form.cleaned_data
    return [
        AppliedFilter(
            label=form.fields[name].label or "",
            value=_("yes") if value is True else _choice_in_words(form.fields[name], value),
            href=_address(wanted, **{name: ""}),
        )
        for name, value in wanted.items()
        if value and name != "sort"
    ]


def _choice_in_words(field: forms.Field, value: object) -> str:
    if not isinstance(field, forms.ChoiceField):
        return str(value)
    choices = cast("Iterable[tuple[object, object]]", field.choices)
    return next((str(words) for choice, words in choices if str(choice) == str(value)), str(value))


def _address(wanted: Mapping[str, Any], **changes: str) -> str:
    """Return the list's query with `changes`; fields in the form's order, blank ones left out, the currency kept."""
    shown = current_currency()
    currency = {"currency": shown.code} if shown.is_converted else {}
    values = {**wanted, **changes, **currency}
    return "?" + urlencode([(name, "1" if value is True else value) for name, value in values.items() if value])
