"""The use-case pages."""

from datetime import UTC, datetime

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from catalog.models import Gpu
from catalog.queries import price_table
from catalog.views.history import headline_trends
from catalog.views.kept import kept_page
from catalog.views.machine_use import describe_list
from fx.chosen import in_chosen_currency
from sizing.llm_training import (
    ADDED_SLUGS,
    MEASURED_SOURCE,
    REFERENCE_SLUGS,
    TrainingRow,
    cheapest_hour,
    cheapest_work,
    compared,
    largest_figures,
    sample_job,
    training_facts,
    training_rows,
)


@kept_page
@in_chosen_currency
def show_llm_training(request: HttpRequest) -> HttpResponse:
    """Show which GPUs train a language model, what fits on one and eight, and what they cost."""
    now = datetime.now(UTC)
    slugs = [*REFERENCE_SLUGS, *ADDED_SLUGS]
    gpus = Gpu.objects.in_bulk(slugs, field_name="slug")
    prices = price_table(now=now, gpu_slugs=slugs)
    trends = headline_trends(now=now, prices=prices)
    reference = training_rows(REFERENCE_SLUGS, gpus=gpus, prices=prices, trends=trends)
    added = training_rows(ADDED_SLUGS, gpus=gpus, prices=prices, trends=trends)
    listed = [row.gpu for row in [*reference, *added]]
    context = {
        "now": now,
        "json_ld": describe_list(request, listed, name=_("GPUs for LLM training")),
        "reference": reference,
        "added": added,
        "largest": largest_figures([*reference, *added]),
        "marked": cheapest_work([*reference, *added]),
        "cheapest": cheapest_hour([*reference, *added]),
        "measured_source": MEASURED_SOURCE,
        **_sentences(reference),
    }
    return render(request, "sizing/llm_training.html", context)


def _sentences(reference: list[TrainingRow]) -> dict[str, object]:
    """Return the numbers of the page's sentences; none of them while the catalogue lacks a reference row."""
    if len(reference) < len(REFERENCE_SLUGS):
        return {}
    rows = {row.gpu.slug: row for row in reference}
    return {
        "facts": training_facts(rows),
        "job": sample_job(rows["h100-sxm"]),
        "h100_a100": compared(rows, "h100-sxm", "a100-sxm-80gb"),
        "h200_h100": compared(rows, "h200-sxm", "h100-sxm"),
        "b200_h200": compared(rows, "b200", "h200-sxm"),
        "b300_b200": compared(rows, "b300", "b200"),
        "mi300x_h200": compared(rows, "mi300x", "h200-sxm"),
    }
