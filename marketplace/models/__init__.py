"""The exchange's rows."""

from marketplace.models.alerts import RunwayAlert, Strike
from marketplace.models.listings import Listing, ListingTerms
from marketplace.models.orders import Fill, Order, Quote
from marketplace.models.providers import EnrolToken, ProviderApplication, ProviderReview
from marketplace.models.rentals import HeldHours, Lease, Rental, RentalEvent
from marketplace.models.servers import BeatSpan, Device, Provider, Server, UpSpan
from marketplace.models.settlements import Settlement

__all__ = [
    "BeatSpan",
    "Device",
    "EnrolToken",
    "Fill",
    "HeldHours",
    "Lease",
    "Listing",
    "ListingTerms",
    "Order",
    "Provider",
    "ProviderApplication",
    "ProviderReview",
    "Quote",
    "Rental",
    "RentalEvent",
    "RunwayAlert",
    "Server",
    "Settlement",
    "Strike",
    "UpSpan",
]
