"""`/llms.txt`: the site in one page of Markdown, in English, for programs that read words (llmstxt.org)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import override
from django.views.decorators.cache import cache_control

from catalog.models import Cloud, Gpu
from catalog.queries import Headline, price_table
from common import formats
from config.site import RULES

LANGUAGE = "en"


@dataclass(frozen=True, kw_only=True)
class Link:
    """A line of a list: a page with what stands there."""

    name: str
    url: str
    note: str


@cache_control(public=True, max_age=300)
def llms_txt(request: HttpRequest) -> HttpResponse:
    """Return what the site is, with a link to every GPU and its price now. Six queries."""
    with override(LANGUAGE):
        context = {
            "root": request.build_absolute_uri("/").removesuffix("/"),
            "hours": RULES["live_hours"],
            "gpus": gpu_links(request, now=datetime.now(UTC)),
            "clouds": cloud_links(request),
            "editions": edition_links(request),
        }
        return render(request, "llms.txt", context, content_type="text/plain; charset=utf-8")


def gpu_links(request: HttpRequest, *, now: datetime) -> list[Link]:
    """Return every GPU with its memory and the price of its page."""
    prices = price_table(now=now)
    return [
        Link(
            name=gpu.label,
            url=request.build_absolute_uri(reverse("catalog:gpu", args=[gpu.slug])),
            note=f"{formats.figure(gpu.memory_gb, language=LANGUAGE)} GB, {price_in_words(prices[gpu.slug].headline)}",
        )
        for gpu in Gpu.objects.order_by("position")
    ]


def price_in_words(headline: Headline | None) -> str:
    """Return what the price column says."""
    if headline is None:
        return "no price yet"
    price = f"{formats.price(headline.price_usd_per_gpu_hour, language=LANGUAGE)} USD per GPU-hour"
    if headline.kind == "exchange":
        return f"{price} on our exchange"
    if headline.kind == "on_demand":
        return f"{price} on demand at {headline.cloud_name}, read {headline.observed_at:%Y-%m-%d %H:%M} UTC"
    of_day = f" of {headline.priced_on}" if headline.priced_on else ""
    return f"{price}, list price of {headline.cloud_name}{of_day}"


def cloud_links(request: HttpRequest) -> list[Link]:
    """Return every cloud."""
    return [
        Link(name=name, url=request.build_absolute_uri(reverse("catalog:cloud", args=[slug])), note="")
        for slug, name in Cloud.objects.order_by("name").values_list("slug", "name")
    ]


def edition_links(request: HttpRequest) -> Iterable[Link]:
    """Return the front page in each other language."""
    for code, name in settings.LANGUAGES:
        if code != LANGUAGE:
            with override(code):
                yield Link(name=name, url=request.build_absolute_uri(reverse("catalog:board")), note="")
