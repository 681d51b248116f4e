"""What every page knows about the site."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from babel.core import get_global
from django.conf import settings
from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from billing.gateway.client import is_test
from catalog.freshness import DATED_FOR, FRESH_FOR, LIVE_FOR, SHOWN_FOR
from catalog.statistics import METHOD_VERSION
from common.shown_currency import current
from config.languages import editions
from fx.queries import WALLET_CURRENCIES
from sizing.engine.simple_rule import BYTES_PER_PARAMETER, RULE_VERSION, USABLE_SHARE
from sizing.use_cases import USE_CASES
from users.access import membership_if_any
from users.models import Organisation

HOUR = timedelta(hours=1)
# The limits that sentences on several pages name, taken from the rules themselves.
RULES = {
    "fresh_hours": FRESH_FOR // HOUR,
    "live_hours": LIVE_FOR // HOUR,
    "shown_hours": SHOWN_FOR // HOUR,
    "dated_days": DATED_FOR.days,
    "bytes_per_parameter": BYTES_PER_PARAMETER,
    "usable_percent": round(USABLE_SHARE * 100),
    "price_rules_version": METHOD_VERSION,
    "training_rule_version": RULE_VERSION,
}
NAVIGATION = (
    (_("GPUs"), "catalog:board"),
    (_("GPU models"), "catalog:gpus"),
    (_("Compare"), "catalog:compare"),
    (_("Sizing"), "calculator:calculator"),
    (_("Market"), "marketplace:market"),
    (_("Clouds"), "catalog:clouds"),
    (_("Use cases"), "sizing:llm-training"),
    (_("Sources"), "catalog:sources"),
    (_("API"), "api-docs"),
)
# Pages that a link stands for besides its own, by the name of its address.
BESIDE = {"sizing:llm-training": tuple(f"sizing:{slug}" for slug in USE_CASES)}
PERSON_NAVIGATION = (
    (_("Orders"), "marketplace:orders"),
    (_("Rentals"), "marketplace:rentals"),
    (_("Wallet"), "billing:wallet"),
    (_("Account"), "users:account"),
)
PROVIDER_NAVIGATION = ((_("Provider"), "marketplace:provider"), (_("Account"), "users:account"))
OPERATOR_NAVIGATION = ((_("Operator"), "marketplace:operator"), (_("Account"), "users:account"))


@dataclass(frozen=True, kw_only=True)
class NavLink:
    """A link of the masthead; `current` is what `aria-current` says of it ("" for another part of the site)."""

    label: str | Promise
    href: str
    current: str


@dataclass(frozen=True, kw_only=True)
class LinkPreview:
    """The picture of the site, and the page's language with its country: "pl_PL"."""

    image_url: str
    locale: str


def site(request: HttpRequest) -> dict[str, object]:
    """Return the template variables of every page."""
    return {
        "is_demo": settings.IS_DEMO,
        "are_payments_tests": is_test(),
        "rules": RULES,
        "shown_currency": current(),
        "currency": current().code,
        "currencies": WALLET_CURRENCIES,
        "canonical_url": request.build_absolute_uri(request.path),
        "link_preview": link_preview(request),
        "editions": editions(request),
        "navigation": nav_links(NAVIGATION, path=request.path),
        "person_navigation": person_navigation(request),
    }


def link_preview(request: HttpRequest) -> LinkPreview:
    """Return what a link to a page of the language at hand looks like elsewhere."""
    language, *_, country = get_global("likely_subtags")[get_language() or "en"].split("_")
    return LinkPreview(
        image_url=request.build_absolute_uri(static("img/og.png")),
        locale=f"{language}_{country}",
    )


def person_navigation(request: HttpRequest) -> list[NavLink]:
    """Return where a signed-in person goes from the masthead; nothing for a visitor, whose page everybody shares."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return []
    if user.is_staff:
        return nav_links(OPERATOR_NAVIGATION, path=request.path)
    membership = membership_if_any(request)
    sells = membership is not None and membership.organisation.kind == Organisation.Kind.PROVIDER
    return nav_links(PROVIDER_NAVIGATION if sells else PERSON_NAVIGATION, path=request.path)


def nav_links(navigation: Iterable[tuple[str | Promise, str]], *, path: str) -> list[NavLink]:
    """Return the links of pairs of label and address name."""
    return [nav_link(label, reverse(name), path=path, beside=BESIDE.get(name, ())) for label, name in navigation]


def nav_link(label: str | Promise, href: str, *, path: str, beside: Iterable[str] = ()) -> NavLink:
    """Return a masthead link, current on its own page ("page"), on the pages below it and on those beside it ("true")."""
    current = ""
    if path == href:
        current = "page"
    elif (path.startswith(href) and href != reverse("catalog:board")) or path in map(reverse, beside):
        current = "true"
    return NavLink(label=label, href=href, current=current)
