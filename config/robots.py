"""`/robots.txt`: the pages, and the few views of a list that are worth reading on their own."""

from collections.abc import Iterable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import override
from django.views.decorators.cache import cache_control

# Filters, orders, windows and currencies multiply one page into thousands of addresses that say the same. These stay
# readable: each answers a question people ask. Their canonical address is the plain page all the same.
READABLE_VIEWS = (
    ("catalog:gpus", "vendor=NVIDIA"),
    ("catalog:gpus", "vendor=AMD"),
    ("catalog:gpus", "has_price=1"),
    ("catalog:clouds", "free_egress=1"),
)


@cache_control(public=True, max_age=3600)
def robots_txt(request: HttpRequest) -> HttpResponse:
    """Return the rules for crawlers; `$` ends an address, `*` stands for anything, the longest rule that fits counts."""
    lines = [
        "User-agent: *",
        "Disallow: /admin/",
        "Disallow: /*?",
        *(f"Allow: {address}$" for address in readable_addresses()),
        "# Programs are welcome to the data itself, with every parameter.",
        f"Allow: {reverse('api-prices').removesuffix('prices/')}",
        "",
        f"Sitemap: {request.build_absolute_uri(reverse('sitemap'))}",
        "",
    ]
    return HttpResponse("\n".join(lines), content_type="text/plain; charset=utf-8")


def readable_addresses() -> Iterable[str]:
    """Return the views of lists that may be read, in every language."""
    for language, _ in settings.LANGUAGES:
        with override(language):
            for name, query in READABLE_VIEWS:
                yield f"{reverse(name)}?{query}"
