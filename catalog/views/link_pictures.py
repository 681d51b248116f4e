"""`/og/`: what a link to a GPU or its price history looks like elsewhere, drawn from the prices of the moment."""

from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils.cache import get_conditional_response, patch_cache_control
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from catalog.history_queries import Trend
from catalog.link_picture import Picture, draw
from catalog.models import Gpu
from catalog.queries import Headline, price_table
from catalog.views.history import headline_trends
from common import formats

MAX_AGE_SECONDS = 300
_painted = lru_cache(maxsize=256)(draw)


@require_safe
def draw_gpu(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Draw a GPU with its price. Five queries."""
    gpu = get_object_or_404(Gpu, slug=slug)
    headline = price_table(now=datetime.now(UTC), gpu_slugs=[slug])[slug].headline
    return _answer(request, picture_of(gpu, headline, note=_facts(gpu)))


@require_safe
def draw_history(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Draw a GPU's price with its last 30 days. Six queries or seven."""
    now = datetime.now(UTC)
    gpu = get_object_or_404(Gpu, slug=slug)
    prices = price_table(now=now, gpu_slugs=[slug])
    trend = headline_trends(now=now, prices=prices).get(slug)
    return _answer(request, picture_of(gpu, prices[slug].headline, note=_moved(trend), trend=trend))


def picture_of(gpu: Gpu, headline: Headline | None, *, note: str, trend: Trend | None = None) -> Picture:
    """Return what the picture says, in the language at hand."""
    language = get_language() or "en"
    spark = trend.spark if trend else None
    return Picture(
        title=gpu.label,
        price=_("no price yet")
        if headline is None
        else formats.money(headline.price_usd_per_gpu_hour, "USD", language=language),
        unit="" if headline is None else _("per GPU-hour"),
        kind=_kind(headline, language=language),
        note=note,
        is_marked=headline is not None and headline.is_live,
        spark_path=spark.path if spark else "",
    )


def _kind(headline: Headline | None, *, language: str) -> str:
    if headline is None:
        return _("None of our sources lists it today.")
    read = {
        "cloud": headline.cloud_name,
        "day": formats.day(headline.observed_at, language=language),
        "clock": formats.clock(headline.observed_at, language=language),
    }
    if headline.kind == "exchange":
        return _("best offer here on %(day)s, %(clock)s") % read
    if headline.kind == "on_demand":
        return _("on demand at %(cloud)s, read %(day)s, %(clock)s") % read
    if headline.priced_on:
        return _("list price of %(cloud)s, %(on)s") % {**read, "on": formats.day(headline.priced_on, language=language)}
    return _("list price of %(cloud)s") % read


def _facts(gpu: Gpu) -> str:
    gb = formats.figure(gpu.memory_gb, language=get_language() or "en")
    return _("%(gb)s GB of %(type)s. Every price with its cloud, its kind and its age.") % {
        "gb": gb,
        "type": gpu.memory_type,
    }


def _moved(trend: Trend | None) -> str:
    if trend is None or trend.week is None:
        return _("Price history, hour by hour as recorded.")
    size = formats.tenths(trend.week.size, language=get_language() or "en")
    if trend.week.direction == "flat":
        return _("The same as a week ago. The line shows 30 days.")
    if trend.week.direction == "down":
        return _("%(size)s%% less than a week ago. The line shows 30 days.") % {"size": size}
    return _("%(size)s%% more than a week ago. The line shows 30 days.") % {"size": size}


def _answer(request: HttpRequest, picture: Picture) -> HttpResponseBase:
    """Return the picture, or 304 to who holds the same: it is named by what it says, and painted once for that."""
    etag = f'"{sha256(repr(picture).encode()).hexdigest()[:32]}"'
    response = get_conditional_response(request, etag=etag)
    if response is None:
        response = HttpResponse(_painted(picture), content_type="image/png")
    response["ETag"] = etag
    patch_cache_control(response, public=True, max_age=MAX_AGE_SECONDS)
    return response
