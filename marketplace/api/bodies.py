"""The bodies of orders and quotes, and how they become an instruction."""

from typing import Any

from django.core.validators import RegexValidator
from django.utils.translation import gettext_lazy as _
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError

from catalog.models import Gpu
from marketplace.limits import MOST_HOURS, MOST_SERVERS
from marketplace.matching import Filters
from marketplace.orders.instruction import Instruction
from marketplace.serializers import CURRENCIES
from marketplace.ssh_keys import KeyRefused, checked_key
from users.api.body import Amount, Flag, OneOf, StrictSerializer, Text, Whole

INTERCONNECTS = ("nvlink", "infinity_fabric", "pcie", "none")
_MOST = 10_000_000
_COUNTRY = RegexValidator(r"^[A-Za-z]{2}\Z", message=_("Two letters, such as NL."), code="invalid")


class FiltersBody(StrictSerializer):
    """What is asked of a server. Left out: no wish."""

    countries = serializers.ListField(
        child=Text(form=_COUNTRY), required=False, max_length=60, help_text="ISO 3166 codes."
    )
    interconnect = OneOf(choices=INTERCONNECTS, required=False, allow_null=True, allow_blank=True)
    min_ram_gb = Whole(required=False, min_value=0, max_value=_MOST)
    min_vcpus = Whole(required=False, min_value=0, max_value=_MOST)
    min_disk_gb = Whole(required=False, min_value=0, max_value=_MOST)
    verified = Flag(required=False, help_text="Only verified servers are for rent, whatever is said.")


class QuoteBody(StrictSerializer):
    """What a quote prices: an order without its limit."""

    gpu = Text(max_length=60, help_text="The slug of a GPU.")
    gpu_count = Whole(min_value=1, max_value=64, help_text="Devices of one server.")
    server_count = Whole(required=False, default=1, min_value=1, max_value=MOST_SERVERS, help_text="Distinct servers.")
    hours = Whole(min_value=1, max_value=MOST_HOURS, allow_null=True, help_text="null: open-ended.")
    wallet = OneOf(choices=CURRENCIES)
    filters = FiltersBody(required=False)


class OrderBody(QuoteBody):
    """An order."""

    limit_price_usd_per_gpu_hour = Amount(help_text='The most you pay, USD per GPU-hour net, for example "2.88".')
    time_in_force = OneOf(choices=["gtc", "ioc", "fok"], required=False, default="gtc")
    expires_at = serializers.DateTimeField(
        required=False, allow_null=True, help_text="At most 7 days ahead, the default."
    )
    image = Text(required=False, max_length=200, allow_blank=True)
    ssh_public_key = Text(
        required=False,
        max_length=800,
        allow_blank=True,
        help_text='Default: the organisation\'s, the key of its latest order that brought one. "" for none.',
    )
    confirm_price = Flag(required=False, default=False)
    quote = serializers.UUIDField(required=False, allow_null=True)


def gpu_of(slug: str) -> Gpu:
    """Return the GPU. Raises ValidationError on `gpu`."""
    gpu = Gpu.objects.filter(slug=slug).first()
    if gpu is None:
        raise ValidationError({"gpu": [ErrorDetail(str(_("There is no GPU with this slug.")), code="unknown_gpu")]})
    return gpu


def instruction_of(wanted: dict[str, Any], *, gpu: Gpu, limit: Any, usual_key: str = "") -> Instruction:
    """Return what a checked body asks for; `usual_key` is put on the machine where the body names none.

    Raises ValidationError on `ssh_public_key`.
    """
    return Instruction(
        gpu_id=gpu.pk,
        gpu_count=wanted["gpu_count"],
        server_count=wanted["server_count"],
        hours=wanted["hours"],
        limit=limit,
        currency=wanted["wallet"],
        time_in_force=wanted.get("time_in_force", "ioc"),
        expires_at=wanted.get("expires_at"),
        filters=_filters(wanted.get("filters", {})),
        image=wanted.get("image", ""),
        ssh_public_key=_key(wanted["ssh_public_key"]) if "ssh_public_key" in wanted else usual_key,
        confirm_price=wanted.get("confirm_price", False),
        quote_id=wanted.get("quote"),
    )


def _filters(wanted: dict[str, Any]) -> Filters:
    return Filters(
        countries=frozenset(country.upper() for country in wanted.get("countries", [])),
        interconnect=wanted.get("interconnect") or "",
        min_ram_gb=wanted.get("min_ram_gb", 0),
        min_vcpus=wanted.get("min_vcpus", 0),
        min_disk_gb=wanted.get("min_disk_gb", 0),
    )


def _key(text: str) -> str:
    try:
        return checked_key(text) if text else ""
    except KeyRefused as refused:
        raise ValidationError({"ssh_public_key": [ErrorDetail(str(refused), code=refused.code)]}) from refused
