"""What every page knows about the site."""

from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

NAVIGATION = (
    (_("GPUs"), "catalog:board"),
    (_("GPU models"), "catalog:gpus"),
    (_("Use cases"), "sizing:llm-training"),
    (_("Sources"), "catalog:sources"),
    (_("API"), "api-docs"),
)


@dataclass(frozen=True, kw_only=True)
class NavLink:
    """A link of the masthead; `current` is what `aria-current` says of it ("" for another part of the site)."""

    label: str | Promise
    href: str
    current: str


def site(request: HttpRequest) -> dict[str, object]:
    """Return the template variables of every page."""
    return {
        "is_demo": settings.IS_DEMO,
        "canonical_url": request.build_absolute_uri(request.path),
        "navigation": [nav_link(label, reverse(name), path=request.path) for label, name in NAVIGATION],
    }


def nav_link(label: str | Promise, href: str, *, path: str) -> NavLink:
    """Return a masthead link, current on its own page ("page") and on the pages below it ("true")."""
    current = ""
    if path == href:
        current = "page"
    elif path.startswith(href) and href != reverse("catalog:board"):
        current = "true"
    return NavLink(label=label, href=href, current=current)
