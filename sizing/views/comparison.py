"""`/gpus/<a>-vs-<b>/`: two GPUs people choose between; `/gpus/compare/`: up to four of anybody's choice."""

from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from catalog.compared import Side, compare, compare_known
from catalog.models import Gpu
from catalog.pairs import PAIRS, KnownPair, known_pair, pairs_of
from catalog.queries import price_table
from catalog.views.history import headline_trends
from catalog.views.kept import kept_page
from catalog.views.machine_use import describe_list
from catalog.what_fits import FIT_RULES, decode_ceilings, what_fits
from fx.chosen import in_chosen_currency
from sizing.comparison.choice import read_choice
from sizing.comparison.figures import figure_lines
from sizing.comparison.verdict import break_even, cheapest_work
from sizing.comparison.workloads import SERVED_B_PARAMS, workloads
from sizing.engine.measured_bf16 import MEASURED_SOURCE

MARKETS = ("on_demand", "spot", "reserved", "list")


@kept_page
@in_chosen_currency
def show_pair(request: HttpRequest, a: str, b: str) -> HttpResponse:
    """Show a known pair; its reverse leads to it, other pairs to the comparison. A GPU nobody knows is a 404."""
    known = known_pair(a, b)
    gpus = Gpu.objects.in_bulk({a, b} if known is None else _slugs_around(known), field_name="slug")
    if a not in gpus or b not in gpus:
        raise Http404
    if known is None:
        return redirect(f"{reverse('comparison:compare')}?{urlencode({'gpus': f'{a},{b}'}, safe=',')}")
    if known.slugs != (a, b):
        return redirect("comparison:pair", *known.slugs, permanent=True)
    return render(request, "sizing/pair.html", _pair_context(request, known, gpus=gpus, now=datetime.now(UTC)))


def _slugs_around(known: KnownPair) -> set[str]:
    """Return the pair's GPUs and those that its page names beside them."""
    return {slug for pair in _beside(known) for slug in pair.slugs} | set(known.slugs)


def _beside(known: KnownPair) -> list[KnownPair]:
    found = dict.fromkeys([*pairs_of(known.first), *pairs_of(known.second)])
    return [pair for pair in found if pair != known]


def _pair_context(
    request: HttpRequest, known: KnownPair, *, gpus: Mapping[str, Gpu], now: datetime
) -> dict[str, object]:
    """Return what the page prints. Prices four queries, trends two at most."""
    prices = price_table(now=now, gpu_slugs=list(gpus))
    first, second = (Side(gpu=gpus[slug], prices=prices[slug]) for slug in known.slugs)
    pair = compare(first, second, reason=known.reason)
    trends = headline_trends(now=now, prices={slug: prices[slug] for slug in known.slugs})
    title = _("%(first)s or %(second)s") % {"first": first.gpu.label, "second": second.gpu.label}
    return {
        "now": now,
        "pair": pair,
        "sides": [(side, trends.get(side.gpu.slug)) for side in (first, second)],
        "break_even": break_even(pair),
        "marked": cheapest_work(first, second),
        "markets": [(market, first.prices.elsewhere[market], second.prices.elsewhere[market]) for market in MARKETS],
        "lines": figure_lines([first.gpu, second.gpu]),
        "workloads": workloads(pair),
        "served_b_params": SERVED_B_PARAMS,
        "others": compare_known(_beside(known), gpus=gpus, prices=prices),
        "json_ld": describe_list(request, [first.gpu, second.gpu], name=title),
        **_sizes([first, second]),
    }


def _sizes(sides: list[Side]) -> dict[str, object]:
    """Return what fits on each, task by task, and the speed limit of each model."""
    ceilings = [
        decode_ceilings(memory_gb=side.gpu.memory_gb, bandwidth_gb_s=side.gpu.memory_bandwidth_gb_s) for side in sides
    ]
    return {
        "fits": list(zip(*(what_fits(side.gpu.memory_gb) for side in sides), strict=True)),
        "ceilings": list(zip(*ceilings, strict=True)),
        "fit_rules": FIT_RULES,
        "measured_source": MEASURED_SOURCE,
    }


@kept_page
@in_chosen_currency
def show_comparison(request: HttpRequest) -> HttpResponse:
    """Show up to four GPUs of `?gpus=` side by side; what is no GPU is named at its field."""
    now = datetime.now(UTC)
    everything = {gpu.slug: gpu for gpu in Gpu.objects.order_by("position")}
    choice = read_choice(request.GET.getlist("gpus"), known=everything)
    begin_with = [] if choice.slugs else PAIRS[:5]
    prices = price_table(now=now, gpu_slugs=[*choice.slugs, *(slug for pair in begin_with for slug in pair.slugs)])
    sides = [Side(gpu=everything[slug], prices=prices[slug]) for slug in choice.slugs]
    context = {
        "now": now,
        "choice": choice,
        "everything": everything.values(),
        "sides": sides,
        "begin_with": compare_known(begin_with, gpus=everything, prices=prices),
        "known": known_pair(*choice.slugs) if len(sides) == 2 else None,
        "marked": cheapest_work(*sides),
        "lines": figure_lines([side.gpu for side in sides]) if sides else [],
        **(_sizes(sides) if sides else {}),
    }
    return render(request, "sizing/comparison.html", context)
