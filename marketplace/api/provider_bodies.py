"""The bodies of a provider's calls, and how they become what the flows take."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError

from billing.filters import Moment
from common.parameters import PageParameters
from marketplace.api.bodies import gpu_of
from marketplace.limits import MOST_LISTED_HOURS, USUAL_LISTED_HOURS
from marketplace.listings import Offered
from marketplace.models import Listing
from marketplace.provider_serializers import INTERCONNECTS
from marketplace.provider_terms import SELF_BILLING_VERSION, TERMS_VERSION
from marketplace.providers.fields import MOST_CHARACTERS
from marketplace.providers.fleet import DEVICE_ID, MOST_DEVICES
from marketplace.providers.missing import SELF_BILLING, TERMS
from marketplace.servers import Machine
from users.api.body import Amount, Flag, OneOf, StrictSerializer, Text, Whole

_MOST = 10_000_000
_VERSIONS = {TERMS: TERMS_VERSION, SELF_BILLING: SELF_BILLING_VERSION}


def _words(name: str, help_text: str = "") -> Text:
    return Text(required=False, allow_blank=True, max_length=MOST_CHARACTERS[name], help_text=help_text)


class ApplicationBody(StrictSerializer):
    """What the company says of itself. Fields that are left out stay as they are."""

    company_name = _words("company_name")
    register_number = _words("register_number")
    vat_id = _words("vat_id", "With its letters, for example NL004495445B01.")
    address = _words("address", "Street and number.")
    postcode = _words("postcode")
    city = _words("city")
    contact_name = _words("contact_name")
    contact_email = _words("contact_email")
    contact_phone = _words("contact_phone")
    account_holder = _words("account_holder", "Whose account it is: the company's own.")
    iban = _words("iban", "For payouts. Stored encrypted, never shown again whole.")
    accept_terms = Text(required=False, max_length=20, help_text="The version of the provider terms in force.")
    accept_self_billing = Text(required=False, max_length=20, help_text="The version of the agreement in force.")
    submit = Flag(required=False, default=False, help_text="Send it for review as well.")


@extend_schema_field({"type": "string", "pattern": f"^{DEVICE_ID}$"})
class DeviceId(Text):
    """The id that the driver gives a device."""


class ServerBody(StrictSerializer):
    """A server to add."""

    name = Text(min_length=1, max_length=60)
    gpu = Text(max_length=60, help_text="The slug of a GPU.")
    device_uuids = serializers.ListField(
        child=DeviceId(max_length=60),
        min_length=1,
        max_length=MOST_DEVICES,
        help_text="As the driver names them, in the order of their index.",
    )
    country = Text(min_length=2, max_length=2, help_text="ISO 3166 code.")
    vcpus = Whole(min_value=1, max_value=_MOST)
    ram_gb = Whole(min_value=1, max_value=_MOST)
    disk_gb = Whole(min_value=1, max_value=_MOST)
    network_mbit_s = Whole(min_value=1, max_value=_MOST)
    interconnect = OneOf(choices=INTERCONNECTS)


class TermsBody(StrictSerializer):
    """Changed terms. Fields that are left out stay as they are; what is sold never changes."""

    price_usd_per_gpu_hour = Amount(required=False, help_text='USD per GPU-hour, for example "2.88".')
    min_gpus = Whole(required=False, min_value=1, max_value=MOST_DEVICES, help_text="The smallest slice sold.")
    max_hours = Whole(required=False, min_value=1, max_value=MOST_LISTED_HOURS, help_text="The longest rental.")
    available_until = serializers.DateTimeField(required=False, allow_null=True, help_text="null: without an end.")


class ListingBody(TermsBody):
    """A server to put up for rent."""

    server = serializers.UUIDField()
    price_usd_per_gpu_hour = Amount(help_text='USD per GPU-hour, for example "2.88".')


class EarningsParameters(PageParameters):
    """When."""

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Return the fields; `from` is no name that a class may give to one of them."""
        since = Moment(required=False, help_text="Hours that start at or after this.")
        until = Moment(is_end=True, required=False, help_text="Hours that start before this; a day counts to its end.")
        return {"from": since, "to": until, **super().get_fields()}


def agreements_in(wanted: dict[str, Any]) -> list[str]:
    """Return the names of what a checked body agrees to. Raises ValidationError on a version that is not in force."""
    old = [name for name, version in _VERSIONS.items() if name in wanted and wanted[name] != version]
    if old:
        error = ErrorDetail(_("This version is not in force: `GET provider/` names it."), code="not_in_force")
        raise ValidationError({name: [error] for name in old})
    return [name for name in _VERSIONS if name in wanted]


def machine_of(wanted: dict[str, Any]) -> Machine:
    """Return the server of a checked body. Raises ValidationError on `gpu`."""
    return Machine(
        name=" ".join(wanted["name"].split()),
        gpu_id=gpu_of(wanted["gpu"]).pk,
        device_uuids=wanted["device_uuids"],
        country=wanted["country"].upper(),
        **{name: wanted[name] for name in ("vcpus", "ram_gb", "disk_gb", "network_mbit_s", "interconnect")},
    )


def offered_in(wanted: dict[str, Any], listing: Listing | None = None) -> Offered:
    """Return the terms of a checked body; what it leaves out is the listing's, or the usual."""
    return Offered(
        price=wanted.get("price_usd_per_gpu_hour", listing.price_usd_per_gpu_hour if listing else Decimal(0)),
        min_gpus=wanted.get("min_gpus", listing.min_gpus if listing else 1),
        max_hours=wanted.get("max_hours", listing.max_hours if listing else USUAL_LISTED_HOURS),
        available_until=_in_utc(wanted.get("available_until", listing.available_until if listing else None)),
    )


def _in_utc(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.astimezone(UTC)
