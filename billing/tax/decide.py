"""Which VAT a GPU-hour carries: who buys, from where, and what is proven.

A GPU-hour is an electronically supplied service, sold in our own name. The table is read by where the buyer is, seen
from the seller, and as what the buyer stands there; everything around it only finds those two words.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from billing.tax.rates import RateTable
from billing.tax.special_areas import special_area
from billing.tax.territories import MEMBER_STATES, UnknownCountry, is_in_union, vat_country

NOTHING = Decimal(0)


class Treatment(StrEnum):
    """What happens to the tax."""

    DOMESTIC = "domestic"
    REVERSE_CHARGE = "reverse_charge"
    CONSUMER_STATE = "consumer_state"
    OUTSIDE_SCOPE = "outside_scope"
    REVIEW = "review"  # a person decides first; nothing is sold until then
    BLOCKED = "blocked"  # we may not sell there


class Reason(StrEnum):
    """Why; a decision has one or more."""

    SAME_COUNTRY = "same_country"
    VAT_ID_VALID = "vat_id_valid"
    VAT_ID_MISSING = "vat_id_missing"
    VAT_ID_INVALID = "vat_id_invalid"
    VAT_ID_UNKNOWN = "vat_id_unknown"
    VAT_ID_OTHER_NAME = "vat_id_other_name"
    VAT_ID_OTHER_COUNTRY = "vat_id_other_country"
    CONSUMER = "consumer"
    BUSINESS_PROVEN = "business_proven"
    BUSINESS_NOT_PROVEN = "business_not_proven"
    SPECIAL_AREA = "special_area"
    AREA_IS_MAINLAND = "area_is_mainland"
    AREA_IS_OUTSIDE = "area_is_outside"
    CONSUMERS_OFF = "consumers_off"
    COUNTRY_NOT_SERVED = "country_not_served"


class BuyerType(StrEnum):
    """What the buyer says to be."""

    BUSINESS = "business"
    CONSUMER = "consumer"


class VatState(StrEnum):
    """What is known about the buyer's VAT number. `UNKNOWN` is not `INVALID`: the register did not answer."""

    MISSING = "missing"
    VALID = "valid"
    INVALID = "invalid"
    UNKNOWN = "unknown"
    OTHER_NAME = "other_name"
    OTHER_COUNTRY = "other_country"


class AreaRuling(StrEnum):
    """What a person decided about a business in a special area."""

    NONE = ""
    MAINLAND = "mainland"
    OUTSIDE = "outside"


class Place(StrEnum):
    """Where the buyer is, seen from the seller."""

    HOME = "home"
    UNION = "union"
    OUTSIDE = "outside"


class Standing(StrEnum):
    """As what the buyer is treated there."""

    BUSINESS = "business"
    CONSUMER = "consumer"


@dataclass(frozen=True, kw_only=True)
class Seller:
    """Who sells. `consumer_countries` are those where we are registered to charge consumers their state's tax."""

    country: str
    sells_to_consumers: bool
    consumer_countries: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Buyer:
    """Who buys. A business proof is a register number or a local tax number."""

    type: BuyerType
    country: str
    postcode: str = ""
    vat_state: VatState = VatState.MISSING
    has_business_proof: bool = False
    area_ruling: AreaRuling = AreaRuling.NONE


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The answer. `rate_percent` is None where nothing may be sold; `country_of_tax` is "" where no VAT law of ours applies."""

    treatment: Treatment
    rate_percent: Decimal | None
    country_of_tax: str
    en16931_code: str
    legal_text_key: str
    reasons: tuple[Reason, ...]


TABLE = {
    (Place.HOME, Standing.BUSINESS): Treatment.DOMESTIC,
    (Place.HOME, Standing.CONSUMER): Treatment.DOMESTIC,
    (Place.UNION, Standing.BUSINESS): Treatment.REVERSE_CHARGE,
    (Place.UNION, Standing.CONSUMER): Treatment.CONSUMER_STATE,
    (Place.OUTSIDE, Standing.BUSINESS): Treatment.OUTSIDE_SCOPE,
    (Place.OUTSIDE, Standing.CONSUMER): Treatment.CONSUMER_STATE,
}
CODES = {
    Treatment.DOMESTIC: "S",
    Treatment.REVERSE_CHARGE: "AE",
    Treatment.CONSUMER_STATE: "S",
    Treatment.OUTSIDE_SCOPE: "O",
    Treatment.REVIEW: "",
    Treatment.BLOCKED: "",
}
_OF_VAT_STATE = {
    VatState.VALID: Reason.VAT_ID_VALID,
    VatState.MISSING: Reason.VAT_ID_MISSING,
    VatState.INVALID: Reason.VAT_ID_INVALID,
    VatState.UNKNOWN: Reason.VAT_ID_UNKNOWN,
    VatState.OTHER_NAME: Reason.VAT_ID_OTHER_NAME,
    VatState.OTHER_COUNTRY: Reason.VAT_ID_OTHER_COUNTRY,
}


def decide(*, seller: Seller, buyer: Buyer, rates: RateTable, at: datetime) -> Decision:
    """Return the tax of an hour that begins at `at`.

    Raises UnknownCountry for a country that does not exist or a seller outside the Union, and NoRate where tax is due
    and no rate is known: never 0 in their place.
    """
    if seller.country not in MEMBER_STATES:
        raise UnknownCountry(seller.country)
    country = vat_country(buyer.country)
    area = special_area(country, buyer.postcode)
    if area and (buyer.type == BuyerType.CONSUMER or buyer.area_ruling == AreaRuling.NONE):
        return _area_refusal(buyer)
    place, area_reasons = _place(seller, buyer, area)
    standing, reason = _standing(buyer, place)
    reasons = (*area_reasons, reason)
    refusal = _refusal(seller, buyer, standing)
    if refusal is not None:
        return _nothing_sold(Treatment.BLOCKED, *reasons, refusal)
    treatment = TABLE[place, standing]
    if CODES[treatment] != "S":
        tax_country = country if treatment == Treatment.REVERSE_CHARGE else ""
        return _decision(treatment, NOTHING, tax_country, treatment.value, reasons)
    key = "foreign_state" if place == Place.OUTSIDE else treatment.value
    return _decision(treatment, rates.rate_at(country, at), country, key, reasons)


def _area_refusal(buyer: Buyer) -> Decision:
    """Consumers in special areas are refused; a business waits for a person."""
    is_business = buyer.type == BuyerType.BUSINESS
    return _nothing_sold(Treatment.REVIEW if is_business else Treatment.BLOCKED, Reason.SPECIAL_AREA)


def _place(seller: Seller, buyer: Buyer, area: str) -> tuple[Place, tuple[Reason, ...]]:
    country = vat_country(buyer.country)
    if area and buyer.area_ruling == AreaRuling.OUTSIDE:
        return Place.OUTSIDE, (Reason.AREA_IS_OUTSIDE,)
    reasons = (Reason.AREA_IS_MAINLAND,) if area else ()
    if country == seller.country:
        return Place.HOME, reasons
    return (Place.UNION if is_in_union(country) else Place.OUTSIDE), reasons


def _standing(buyer: Buyer, place: Place) -> tuple[Standing, Reason]:
    """Who says to be a business and has no proof that counts there is treated as a consumer."""
    if buyer.type == BuyerType.CONSUMER:
        return Standing.CONSUMER, Reason.CONSUMER
    if place == Place.HOME:
        return Standing.BUSINESS, Reason.SAME_COUNTRY
    if place == Place.UNION:
        is_proven = buyer.vat_state == VatState.VALID
        return (Standing.BUSINESS if is_proven else Standing.CONSUMER), _OF_VAT_STATE[buyer.vat_state]
    if buyer.has_business_proof:
        return Standing.BUSINESS, Reason.BUSINESS_PROVEN
    return Standing.CONSUMER, Reason.BUSINESS_NOT_PROVEN


def _refusal(seller: Seller, buyer: Buyer, standing: Standing) -> Reason | None:
    """Return why nothing is sold. A business without proof pays a consumer's tax; consumer law is for consumers."""
    if standing == Standing.BUSINESS:
        return None
    if buyer.type == BuyerType.CONSUMER and not seller.sells_to_consumers:
        return Reason.CONSUMERS_OFF
    is_served = vat_country(buyer.country) in seller.consumer_countries and buyer.area_ruling != AreaRuling.OUTSIDE
    return None if is_served else Reason.COUNTRY_NOT_SERVED


def _nothing_sold(treatment: Treatment, *reasons: Reason) -> Decision:
    return _decision(treatment, None, "", "", reasons)


def _decision(
    treatment: Treatment, rate: Decimal | None, country: str, key: str, reasons: tuple[Reason, ...]
) -> Decision:
    return Decision(
        treatment=treatment,
        rate_percent=rate,
        country_of_tax=country,
        en16931_code=CODES[treatment],
        legal_text_key=key,
        reasons=reasons,
    )
