"""What the address of `/compare/` asks for, and the addresses that lead on from it.

The filters have the API's names and are read by the API's own fields, one by one: one that cannot be read is named and
left out, the others hold. A name that is given but blank takes away what the use would set.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict
from rest_framework.exceptions import ValidationError

from catalog.compare.columns import COLUMNS, JOB, PRICE, SORTABLE, Column, Sorting
from catalog.compare.filters import FILTERS
from catalog.compare.job import Job
from catalog.compare.lines import Known
from catalog.compare.presets import PRESETS, Preset, with_preset
from catalog.compare.rows import Question
from catalog.filters import OfferParameters
from catalog.forms import JobForm
from common.shown_currency import current as current_currency

_FILTER_NAMES = tuple(each.name for each in FILTERS)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The address, read. `texts` are the filters given, blank ones among them; `wanted` has those of the use too."""

    preset: Preset | None
    texts: Mapping[str, str]
    wanted: Mapping[str, Any]
    errors: Mapping[str, Sequence[str]]
    job_form: JobForm
    job: Job | None
    sorting: Sorting
    is_sort_unknown: bool
    columns: Sequence[Column]
    chosen_columns: Sequence[str]
    page: int

    def question(self, *, now: datetime) -> Question:
        """Return what is to be compared."""
        return Question(wanted=self.wanted, sorting=self.sorting, job=self.job, now=now)

    def text(self, name: str) -> str:
        """Return a filter's value as its field shows it: as given, else what the use sets."""
        if name in self.texts:
            return self.texts[name]
        return as_text(self.wanted[name]) if name in self.wanted else ""

    def address(self, **changes: str | None) -> str:
        """Return the query of this comparison with `changes`; None takes a name out, blank leaves it blank."""
        shown = current_currency()
        pairs: dict[str, str | None] = {
            "use_case": self.preset.slug if self.preset else None,
            **self.texts,
            **{name: text for name, text in self.job_form.data.items() if name in self.job_form.fields and text},
            "sort": self.sorting.name if self.sorting.name != self._usual_sort else None,
            "currency": shown.code if shown.is_converted else None,
            **changes,
        }
        query = [(name, text) for name, text in pairs.items() if text is not None]
        return "?" + urlencode([*query, *(("columns", name) for name in self.chosen_columns)])

    def without(self, name: str) -> str:
        """Return the query without a filter: left out, or blank where the use would set it again."""
        is_set_by_use = self.preset is not None and name in self.preset.filters
        return self.address(**{name: "" if is_set_by_use else None})

    def as_parameters(self) -> str:
        """Return the filters as a query of the API."""
        return "?" + urlencode([(name, as_text(value)) for name, value in self.wanted.items() if name in _FILTER_NAMES])

    @property
    def _usual_sort(self) -> str:
        return JOB if self.job else PRICE


def read_address(query: QueryDict, *, known: Known) -> Asked:
    """Read an address; nothing in it is an error of its own."""
    texts = {name: ",".join(part for part in query.getlist(name) if part) for name in _FILTER_NAMES if name in query}
    values, errors = _read_filters(texts, known=known)
    preset = PRESETS.get(query.get("use_case", ""))
    given = {**values, "use_case": preset.slug if preset else ""}
    wanted = with_preset(given, blank=frozenset(name for name, text in texts.items() if not text))
    job_form = JobForm(query)
    job_form.is_valid()
    job = job_form.job()
    sorting, is_sort_unknown = _read_sort(query.get("sort", ""), job=job)
    usual = [name for name, column in COLUMNS.items() if column.is_shown]
    chosen = [name for name in COLUMNS if name in {*query.getlist("columns"), PRICE}]
    return Asked(
        preset=preset,
        texts={name: text for name, text in texts.items() if text or (preset and name in preset.filters)},
        wanted={name: value for name, value in wanted.items() if name != "use_case"},
        errors=errors,
        job_form=job_form,
        job=job,
        sorting=sorting,
        is_sort_unknown=is_sort_unknown,
        columns=[COLUMNS[name] for name in (usual if chosen == [PRICE] else chosen)],
        chosen_columns=[] if chosen in ([PRICE], usual) else [name for name in chosen if name != PRICE],
        page=_read_page(query.get("page", "")),
    )


def _read_filters(texts: Mapping[str, str], *, known: Known) -> tuple[dict[str, Any], dict[str, list[str]]]:
    fields = OfferParameters(data={}, context={"known": _known_values(known)}).fields
    values: dict[str, Any] = {}
    errors: dict[str, list[str]] = {}
    for name, text in texts.items():
        if not text:
            continue
        try:
            value = fields[name].run_validation(text)
        except ValidationError as error:
            errors[name] = [str(message) for message in error.detail]
        else:
            values[name] = tuple(code.upper() for code in value) if name == "country" else value
    return values, errors


def _known_values(known: Known) -> dict[str, Iterable[str]]:
    return {
        "gpu": [gpu.slug for gpu in known.gpus.values()],
        "vendor": {gpu.vendor for gpu in known.gpus.values()},
        "cloud": [cloud.slug for cloud in known.clouds.values()],
        "source": [source.name for source in known.sources.values()],
    }


def _read_sort(text: str, *, job: Job | None) -> tuple[Sorting, bool]:
    """Return the order asked for, and whether it was not to be had; the usual one is the least for the job, or per hour."""
    usual = Sorting.named(JOB if job else PRICE)
    name = text.removeprefix("-")
    if name in SORTABLE or (name == JOB and job):
        return Sorting.named(text), False
    return usual, bool(text) and name != JOB


def _read_page(text: str) -> int:
    return max(1, int(text)) if text.isascii() and text.isdecimal() and len(text) < 6 else 1


def as_text(value: Any) -> str:
    """Return a filter's value as an address has it.

    >>> as_text((1, 2)), as_text(Decimal("80.000000000")), as_text("true")
    ('1,2', '80', 'true')
    """
    if isinstance(value, tuple):
        return ",".join(str(part) for part in value)
    return f"{value.normalize():f}" if isinstance(value, Decimal) else str(value)
