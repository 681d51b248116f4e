"""Who sells, and whom we ask about VAT numbers, as the settings say."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from billing.tax.decide import Seller
from billing.tax.territories import MEMBER_STATES
from billing.tax.vat_ids import VatId, VatIdRefused, parse
from billing.tax.vies import SampleRegister, VatRegister, Vies


class SellerUnknown(ImproperlyConfigured):
    """SELLER_COUNTRY names no member state: nobody's tax can be decided, so nothing can be sold."""


def seller() -> Seller:
    """Return who sells. Raises SellerUnknown."""
    if settings.SELLER_COUNTRY not in MEMBER_STATES:
        raise SellerUnknown(f"SELLER_COUNTRY is {settings.SELLER_COUNTRY!r}, which is not a member state.")
    if settings.TAX_POINT != "consumption":
        raise ImproperlyConfigured(f"TAX_POINT is {settings.TAX_POINT!r}; tax at consumption is all that is built.")
    return Seller(
        country=settings.SELLER_COUNTRY,
        sells_to_consumers=settings.B2C_ENABLED,
        consumer_countries=frozenset(settings.B2C_COUNTRIES),
    )


@contextmanager
def vat_register() -> Iterator[VatRegister]:
    """Open the register that VAT_REGISTER names: "vies", or "sample" where there is no network."""
    if settings.VAT_REGISTER == "sample":
        yield SampleRegister()
    elif settings.VAT_REGISTER == "vies":
        with httpx.Client(timeout=settings.VIES_TIMEOUT_SECONDS, follow_redirects=False) as client:
            yield Vies(client, requester=_own_vat_id())
    else:
        raise ImproperlyConfigured(f"VAT_REGISTER is {settings.VAT_REGISTER!r}; known are vies and sample.")


def _own_vat_id() -> VatId | None:
    try:
        return parse(settings.SELLER_VAT_ID, country=settings.SELLER_COUNTRY)
    except (VatIdRefused, LookupError):
        return None
