"""How providers are told where they stand: onboarding, servers with their listings, what was earned. USD throughout."""

from datetime import datetime
from typing import Any

from rest_framework import serializers

from common.money import from_micros
from marketplace.models import Listing, Provider, ProviderReview, Rental
from marketplace.provider_terms import SELF_BILLING_VERSION, TERMS_VERSION
from marketplace.providers.missing import APPLICATION, Next
from marketplace.providers.onboarding import Onboarding
from marketplace.queries.earnings import EarnedHour
from marketplace.queries.servers import present_listing
from marketplace.serializers import PriceField

INTERCONNECTS = ("nvlink", "infinity_fabric", "pcie", "none")
_MONEY = "In USD."


class ApplicationSerializer(serializers.Serializer[Any]):
    """What the company said of itself; of the bank account only country and last four digits."""

    company_name = serializers.CharField(allow_blank=True)
    register_number = serializers.CharField(allow_blank=True)
    vat_id = serializers.CharField(allow_blank=True)
    address = serializers.CharField(allow_blank=True)
    postcode = serializers.CharField(allow_blank=True)
    city = serializers.CharField(allow_blank=True)
    country = serializers.CharField(help_text="The organisation's.")
    contact_name = serializers.CharField(allow_blank=True)
    contact_email = serializers.CharField(allow_blank=True)
    contact_phone = serializers.CharField(allow_blank=True)
    account_holder = serializers.CharField(allow_blank=True)
    iban_hint = serializers.CharField(allow_blank=True)
    terms_version = serializers.CharField(allow_blank=True)
    self_billing_version = serializers.CharField(allow_blank=True)
    agreed_at = serializers.DateTimeField(allow_null=True)


class ReviewSerializer(serializers.Serializer[Any]):
    """One step of the review."""

    step = serializers.ChoiceField(choices=ProviderReview.Step.values)
    reason = serializers.CharField(allow_blank=True)
    at = serializers.DateTimeField()


class ProviderSerializer(serializers.Serializer[Any]):
    """Where a provider stands: `missing` is what the application lacks, `next` what stands before the next sold hour."""

    state = serializers.ChoiceField(choices=Provider.State.values)
    missing = serializers.ListField(child=serializers.CharField(), help_text="Fields of the application.")
    next = serializers.ListField(
        child=serializers.ChoiceField(choices=[step.value for step in Next]), help_text="The first thing to do first."
    )
    application = ApplicationSerializer(allow_null=True)
    terms_version = serializers.CharField(help_text="Of the provider terms in force.")
    self_billing_version = serializers.CharField(help_text="Of the self-billing agreement in force.")
    approved_at = serializers.DateTimeField(allow_null=True)
    reviews = ReviewSerializer(many=True)


class ListingSerializer(serializers.Serializer[Any]):
    """A server put up for rent."""

    id = serializers.UUIDField()
    server = serializers.UUIDField()
    state = serializers.ChoiceField(choices=Listing.State.values)
    price_usd_per_gpu_hour = PriceField(allow_null=False)
    min_gpus = serializers.IntegerField()
    max_hours = serializers.IntegerField()
    available_until = serializers.DateTimeField(allow_null=True)
    listed_at = serializers.DateTimeField()
    priced_at = serializers.DateTimeField()


class ServerSerializer(serializers.Serializer[Any]):
    """A server."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    gpu = serializers.CharField()
    device_count = serializers.IntegerField()
    sold_devices = serializers.IntegerField(help_text="In open rentals now.")
    country = serializers.CharField()
    vcpus = serializers.IntegerField()
    ram_gb = serializers.IntegerField()
    disk_gb = serializers.IntegerField()
    network_mbit_s = serializers.IntegerField()
    interconnect = serializers.ChoiceField(choices=INTERCONNECTS)
    is_live = serializers.BooleanField(help_text="Verified, here, and heard of within a minute.")
    verified_at = serializers.DateTimeField(allow_null=True)
    withdrawn_at = serializers.DateTimeField(allow_null=True)
    last_beat_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()
    listing = ListingSerializer(allow_null=True, help_text="The one that has not ended.")


class EnrolTokenSerializer(serializers.Serializer[Any]):
    """A token for the server's agent: shown this once."""

    token = serializers.CharField()
    expires_at = serializers.DateTimeField()


class EarnedHourSerializer(serializers.Serializer[Any]):
    """One settled UTC hour of a rental. `credited`: what of `payable` was taken back with the renter's hour."""

    rental = serializers.UUIDField()
    starts_at = serializers.DateTimeField()
    server = serializers.CharField()
    gpu = serializers.CharField()
    gpu_count = serializers.IntegerField()
    price_usd_per_gpu_hour = PriceField(allow_null=False)
    billed_seconds = serializers.IntegerField()
    gap_seconds = serializers.IntegerField()
    net = serializers.CharField(help_text=_MONEY)
    fee = serializers.CharField(help_text=_MONEY)
    payable = serializers.CharField(help_text=_MONEY)
    credited = serializers.CharField(help_text=_MONEY)
    paid_out = serializers.CharField(help_text="In USD; nothing is paid out yet.")
    currency = serializers.ChoiceField(choices=["USD"])
    settled_at = serializers.DateTimeField()


class SoldRentalSerializer(serializers.Serializer[Any]):
    """A rental on a server of the provider's, with the sum of its settled hours. Who rents is not told."""

    id = serializers.UUIDField()
    state = serializers.ChoiceField(choices=Rental.State.values)
    server = serializers.UUIDField()
    gpu = serializers.CharField()
    gpu_count = serializers.IntegerField()
    hours_ordered = serializers.IntegerField(allow_null=True, help_text="null: open-ended.")
    price_usd_per_gpu_hour = PriceField(allow_null=False)
    fee_percent = serializers.CharField()
    filled_at = serializers.DateTimeField()
    ready_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    end_reason = serializers.CharField(allow_blank=True)
    settled_hours = serializers.IntegerField()
    net = serializers.CharField(help_text=_MONEY)
    fee = serializers.CharField(help_text=_MONEY)
    payable = serializers.CharField(help_text=_MONEY)
    credited = serializers.CharField(help_text=_MONEY)
    paid_out = serializers.CharField(help_text="In USD; nothing is paid out yet.")


def provider_row(onboarding: Onboarding) -> dict[str, Any]:
    """Return where a provider stands as ProviderSerializer tells it."""
    application = onboarding.application
    told = None
    if application is not None:
        names = (*(name for name in APPLICATION if name != "iban"), "iban_hint", "terms_version")
        told = {name: getattr(application, name) for name in (*names, "self_billing_version", "agreed_at")}
        told["country"] = onboarding.provider.organisation.country
    return {
        "state": onboarding.provider.state,
        "missing": list(onboarding.missing),
        "next": [step.value for step in onboarding.steps],
        "application": told,
        "terms_version": TERMS_VERSION,
        "self_billing_version": SELF_BILLING_VERSION,
        "approved_at": onboarding.provider.approved_at,
        "reviews": [{"step": each.step, "reason": each.reason, "at": each.at} for each in onboarding.reviews],
    }


def server_row(server: Any, *, now: datetime) -> dict[str, Any]:
    """Return a server that `with_market` read, as ServerSerializer tells it."""
    listing = present_listing(server)
    return {
        **{name: getattr(server, name) for name in _AS_IT_IS},
        "id": server.pk,
        "gpu": server.gpu.slug,
        "is_live": server.is_live(now),
        "listing": None if listing is None else listing_row(listing),
    }


def listing_row(listing: Listing) -> dict[str, Any]:
    """Return a listing as ListingSerializer tells it."""
    return {
        "id": listing.pk,
        "server": listing.server_id,
        "state": listing.state,
        "price_usd_per_gpu_hour": f"{listing.price_usd_per_gpu_hour:.4f}",
        "min_gpus": listing.min_gpus,
        "max_hours": listing.max_hours,
        "available_until": listing.available_until,
        "listed_at": listing.listed_at,
        "priced_at": listing.priced_at,
    }


def earned_row(hour: EarnedHour) -> dict[str, Any]:
    """Return an hour as EarnedHourSerializer tells it."""
    return {
        "rental": hour.rental_id,
        "starts_at": hour.hour,
        "server": hour.server,
        "gpu": hour.gpu,
        "gpu_count": hour.gpu_count,
        "price_usd_per_gpu_hour": f"{hour.price:.4f}",
        "billed_seconds": hour.billed_seconds,
        "gap_seconds": hour.gap_seconds,
        "net": _money(hour.net_micros),
        "fee": _money(hour.fee_micros),
        "payable": _money(hour.payable_micros),
        "credited": _money(hour.credited_micros),
        "paid_out": _money(0),
        "currency": "USD",
        "settled_at": hour.settled_at,
    }


def sold_row(rental: Any) -> dict[str, Any]:
    """Return a rental that `sold_rentals` read, as SoldRentalSerializer tells it."""
    return {
        "id": rental.pk,
        "state": rental.state,
        "server": rental.server_id,
        "gpu": rental.gpu.slug,
        "gpu_count": rental.gpu_count,
        "hours_ordered": rental.hours,
        "price_usd_per_gpu_hour": f"{rental.price_usd_per_gpu_hour:.4f}",
        "fee_percent": str(rental.fee_percent),
        "filled_at": rental.filled_at,
        "ready_at": rental.ready_at,
        "ended_at": rental.ended_at,
        "end_reason": rental.end_reason,
        "settled_hours": rental.settled_hours,
        **{name: _money(int(getattr(rental, name))) for name in ("net", "fee", "payable", "credited")},
        "paid_out": _money(0),
    }


_AS_IT_IS = (
    "name",
    "device_count",
    "sold_devices",
    "country",
    "vcpus",
    "ram_gb",
    "disk_gb",
    "network_mbit_s",
    "interconnect",
    "verified_at",
    "withdrawn_at",
    "last_beat_at",
    "created_at",
)


def _money(micros: int) -> str:
    return str(from_micros(micros))
