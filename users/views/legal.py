"""The pages of law: terms of use, privacy, refunds, and who runs the site. Their figures come from the rules themselves."""

from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import get_language

from common import formats
from users import terms
from users.invitations import VALID_FOR


@dataclass(frozen=True, kw_only=True)
class Operator:
    """Who runs the site, as the settings say; blank is unknown."""

    name: str
    address: str
    email: str
    country: str
    vat_id: str

    @property
    def is_whole(self) -> bool:
        """Whether everything is known that an imprint must say. A seller without a VAT ID has none to name."""
        return all((self.name, self.address, self.email, self.country))


def show_terms(request: HttpRequest) -> HttpResponse:
    """Show the rules between the site and whoever uses it."""
    return render(request, "legal/terms.html", legal_context())


def show_privacy(request: HttpRequest) -> HttpResponse:
    """Show which personal data is kept, why, and for how long."""
    return render(request, "legal/privacy.html", legal_context())


def show_refunds(request: HttpRequest) -> HttpResponse:
    """Show how unspent money goes back."""
    return render(request, "legal/refunds.html", legal_context())


def show_imprint(request: HttpRequest) -> HttpResponse:
    """Show who runs the site; what the settings do not say is named as missing."""
    return render(request, "legal/imprint.html", legal_context())


def legal_context() -> dict[str, object]:
    """Return what all four pages may name."""
    language = get_language() or settings.LANGUAGE_CODE
    operator = Operator(
        name=settings.OPERATOR_NAME,
        address=settings.OPERATOR_ADDRESS,
        email=settings.OPERATOR_EMAIL,
        country=settings.SELLER_COUNTRY,
        vat_id=settings.SELLER_VAT_ID,
    )
    return {
        "operator": operator,
        "terms": terms,
        "sells_to_consumers": settings.B2C_ENABLED,
        "cookies": {"session": settings.SESSION_COOKIE_NAME, "csrf": settings.CSRF_COOKIE_NAME},
        "alerts": [formats.duration(seconds, language=language) for seconds in terms.LOW_BALANCE_ALERT_SECONDS],
        "session_days": timedelta(seconds=settings.SESSION_COOKIE_AGE).days,
        "csrf_days": timedelta(seconds=settings.CSRF_COOKIE_AGE).days,
        "invitation_days": VALID_FOR.days,
    }
