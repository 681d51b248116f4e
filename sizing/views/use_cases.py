"""`/use-cases/<slug>/`: six pages of one make. What differs is a definition, a table's words and a template."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from catalog.models import Gpu
from catalog.queries import price_table
from catalog.views.history import headline_trends
from catalog.views.kept import kept_page
from catalog.views.machine_use import describe_list
from fx.chosen import in_chosen_currency
from sizing.engine.measured_bf16 import MEASURED_SOURCE
from sizing.use_cases import USE_CASES
from sizing.use_cases.rows import (
    Row,
    UseCase,
    build_rows,
    cheapest_hour,
    cheapest_work,
    pairs_of,
    sample_job,
    sorted_rows,
)
from sizing.use_cases.table import build_table
from sizing.views.use_case_words import WORDS

SORTS = ("price", "memory")


@kept_page
@in_chosen_currency
def show_use_case(request: HttpRequest, slug: str) -> HttpResponse:
    """Show which GPUs suit a use case and what they cost, in its own order or as `?sort=price` or `?sort=memory` asks."""
    now = datetime.now(UTC)
    use_case, words = USE_CASES[slug], WORDS[slug]
    rows = _rows(use_case, now=now)
    sort = request.GET.get("sort", "")
    groups = _groups(use_case, rows, sort=sort)
    listed = [row for group in groups.values() for row in group]
    context = {
        "now": now,
        "slug": slug,
        "sort": sort if sort in SORTS else "",
        "words": words,
        "json_ld": describe_list(request, [row.gpu for row in listed], name=str(words.name)),
        "table": build_table(words.columns, groups=groups, titles=words.dividers),
        "marked": cheapest_work(listed),
        "cheapest": cheapest_hour(listed),
        "rule": use_case.rule,
        "rule_version": use_case.rule_version,
        "measured_source": MEASURED_SOURCE,
        "sources": use_case.sources,
        **_sentences(use_case, rows),
    }
    return render(request, f"sizing/{slug.replace('-', '_')}.html", context)


def _rows(use_case: UseCase, *, now: datetime) -> dict[str, Row]:
    gpus = Gpu.objects.in_bulk(use_case.slugs, field_name="slug")
    prices = price_table(now=now, gpu_slugs=use_case.slugs)
    return build_rows(use_case, gpus=gpus, prices=prices, trends=headline_trends(now=now, prices=prices))


def _groups(use_case: UseCase, rows: Mapping[str, Row], *, sort: str) -> dict[str, Sequence[Row]]:
    """Return the rows of each group that the catalogue holds, ordered within it."""
    return {
        key: sorted_rows([rows[slug] for slug in slugs if slug in rows], sort=sort)
        for key, slugs in use_case.groups.items()
    }


def _sentences(use_case: UseCase, rows: Mapping[str, Row]) -> dict[str, object]:
    """Return the numbers of the page's sentences; none of them while the catalogue lacks a GPU that they name."""
    if len(rows) < len(use_case.slugs):
        return {}
    sample = use_case.sample
    return {
        "facts": use_case.facts(rows),
        "pairs": pairs_of(use_case, rows),
        "sample": rows[sample.slug],
        "job": sample_job(sample, rows[sample.slug]),
    }
