"""The decision table, requirement by requirement: who is charged what, and never 0 by accident."""

import re
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.models import TaxDecision, TaxDetails, VatCheck
from billing.tax import decide as rules
from billing.tax.company_names import NameMatch
from billing.tax.decide import AreaRuling, Buyer, BuyerType, Reason, Seller, Treatment, VatState, decide
from billing.tax.rates import NoRate, RateTable, known_rates
from billing.tax.special_areas import COUNTRIES_WITH_AREAS, special_area
from billing.tax.territories import COUNTRIES, MEMBER_STATES, UnknownCountry, country_of_prefix, vat_prefix
from billing.tax.vies import Outcome
from billing.tax.wording import LEGAL_TEXTS, REASONS

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
NL = Seller(country="NL", sells_to_consumers=True, consumer_countries=MEMBER_STATES)


def business(country: str, **values) -> Buyer:
    return Buyer(type=BuyerType.BUSINESS, country=country, **values)


def consumer(country: str, **values) -> Buyer:
    return Buyer(type=BuyerType.CONSUMER, country=country, **values)


def answer(buyer: Buyer, *, seller: Seller = NL, at: datetime = NOW):
    return decide(seller=seller, buyer=buyer, rates=known_rates(), at=at)


def seller_in(country: str, **values) -> Seller:
    defaults = {"sells_to_consumers": True, "consumer_countries": MEMBER_STATES, **values}
    return Seller(country=country, **defaults)


# --- TAX-01 to TAX-13 ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", VatState)
def test_tax_01_a_business_of_the_sellers_country_pays_its_rate_whatever_its_number(state):
    found = answer(business("DE", vat_state=state), seller=seller_in("DE"))
    assert (found.treatment, found.rate_percent, found.en16931_code) == (Treatment.DOMESTIC, Decimal(19), "S")
    assert found.country_of_tax == "DE"
    assert answer(business("NL", vat_state=state)).rate_percent == 21


def test_tax_02_a_business_of_another_member_state_with_a_valid_number_accounts_for_the_tax_itself():
    found = answer(business("DE", vat_state=VatState.VALID))
    assert (found.treatment, found.rate_percent, found.en16931_code) == (Treatment.REVERSE_CHARGE, Decimal(0), "AE")
    assert (found.country_of_tax, found.legal_text_key) == ("DE", "reverse_charge")


@pytest.mark.parametrize("state", [VatState.MISSING, VatState.INVALID, VatState.OTHER_NAME, VatState.OTHER_COUNTRY])
def test_tax_03_a_claimed_business_is_charged_as_a_consumer(state):
    found = answer(business("DE", vat_state=state))
    assert (found.treatment, found.rate_percent, found.en16931_code) == (Treatment.CONSUMER_STATE, Decimal(19), "S")


@given(country=st.sampled_from(sorted(COUNTRIES)), state=st.sampled_from([s for s in VatState if s != VatState.VALID]))
def test_tax_03_nothing_but_a_valid_number_ever_gives_reverse_charge(country, state):
    for proof in (True, False):
        assert answer(business(country, vat_state=state, has_business_proof=proof)).en16931_code != "AE"
    assert answer(consumer(country, vat_state=VatState.VALID)).en16931_code != "AE"


def test_tax_04_no_answer_is_not_a_no_and_charges_vat_meanwhile():
    unknown = answer(business("FI", vat_state=VatState.UNKNOWN))
    assert (unknown.en16931_code, unknown.rate_percent) == ("S", Decimal("25.5"))
    assert unknown.reasons == (Reason.VAT_ID_UNKNOWN,)
    assert answer(business("FI", vat_state=VatState.INVALID)).reasons == (Reason.VAT_ID_INVALID,)
    assert answer(business("FI", vat_state=VatState.VALID)).en16931_code == "AE"


def test_tax_05_a_consumer_of_another_member_state_pays_that_states_rate():
    found = answer(consumer("FI"))
    assert (found.treatment, found.rate_percent, found.country_of_tax) == (
        Treatment.CONSUMER_STATE,
        Decimal("25.5"),
        "FI",
    )
    assert found.legal_text_key == "consumer_state"


def test_tax_06_a_consumer_of_the_sellers_state_is_domestic():
    found = answer(consumer("NL"))
    assert (found.treatment, found.rate_percent, found.legal_text_key) == (Treatment.DOMESTIC, Decimal(21), "domestic")


def test_tax_07_no_branch_reads_a_turnover():
    for path in Path(rules.__file__).parent.glob("*.py"):
        assert not re.search(r"turnover|threshold|10[_ ]?000", path.read_text(), re.I), path.name


def test_tax_08_a_business_outside_the_union_is_outside_the_scope_once_it_is_proven():
    found = answer(business("US", has_business_proof=True))
    assert (found.treatment, found.rate_percent, found.en16931_code) == (Treatment.OUTSIDE_SCOPE, Decimal(0), "O")
    assert found.country_of_tax == ""
    unproven = answer(business("US"))
    assert (unproven.treatment, unproven.rate_percent) == (Treatment.BLOCKED, None)
    assert unproven.reasons == (Reason.BUSINESS_NOT_PROVEN, Reason.COUNTRY_NOT_SERVED)


@pytest.mark.parametrize("country", ["GB", "NO", "CH"])
def test_tax_09_consumers_of_these_are_refused_until_we_are_registered_there(country):
    found = answer(consumer(country))
    assert (found.treatment, found.rate_percent, found.en16931_code) == (Treatment.BLOCKED, None, "")
    assert Reason.COUNTRY_NOT_SERVED in found.reasons
    registered = seller_in("NL", consumer_countries=MEMBER_STATES | {country})
    charged = answer(consumer(country), seller=registered)
    assert (charged.en16931_code, charged.country_of_tax, charged.legal_text_key) == ("S", country, "foreign_state")
    assert charged.rate_percent == known_rates().rate_at(country, NOW)


def test_tax_10_a_british_business_is_outside_the_scope():
    assert answer(business("GB", has_business_proof=True)).en16931_code == "O"
    assert answer(business("GB", vat_state=VatState.VALID)).treatment == Treatment.BLOCKED


def test_tax_11_northern_ireland_is_great_britain_for_services():
    assert country_of_prefix("XI") == "GB"
    assert answer(business("GB", has_business_proof=True, vat_state=VatState.VALID)).en16931_code == "O"


@pytest.mark.parametrize(
    ("country", "postcode", "area"),
    [
        ("ES", "35001", "canaries"),
        ("ES", "38 001", "canaries"),
        ("ES", "51001", "ceuta"),
        ("ES", "52001", "melilla"),
        ("FI", "22100", "aland"),
        ("AX", "", "aland"),
        ("IT", "23041", "livigno"),
        ("IT", "22061", "campione"),
        ("DE", "D-78266", "busingen"),
        ("DE", "27498", "heligoland"),
        ("GR", "630 86", "mount_athos"),
        ("FR", "97110", "french_overseas"),
        ("RE", "97400", "french_overseas"),
        ("PT", "9000-050", "madeira"),
        ("PT", "9500-150", "azores"),
    ],
)
def test_tax_12_special_areas_wait_for_a_person_and_refuse_consumers(country, postcode, area):
    assert special_area(country, postcode) == area
    found = answer(business(country, postcode=postcode, vat_state=VatState.VALID))
    assert (found.treatment, found.rate_percent, found.reasons) == (Treatment.REVIEW, None, (Reason.SPECIAL_AREA,))
    for ruling in AreaRuling:
        refused = answer(consumer(country, postcode=postcode, area_ruling=ruling))
        assert (refused.treatment, refused.rate_percent) == (Treatment.BLOCKED, None)


@pytest.mark.parametrize(
    ("country", "postcode"),
    [("ES", "28001"), ("ES", "03501"), ("IT", "23100"), ("DE", "10115"), ("FR", "75001"), ("PT", "1000-001"), ("FI", "00100"), ("MC", "98000")],
)  # fmt: skip
def test_tax_12_the_mainland_is_no_special_area(country, postcode):
    assert special_area(country, postcode) == ""


def test_tax_12_what_a_person_ruled_about_an_area_is_followed():
    canaries = {"country": "ES", "postcode": "35001", "vat_state": VatState.VALID}
    mainland = answer(business(**canaries, area_ruling=AreaRuling.MAINLAND))
    assert (mainland.en16931_code, mainland.reasons[0]) == ("AE", Reason.AREA_IS_MAINLAND)
    outside = answer(business(**canaries, has_business_proof=True, area_ruling=AreaRuling.OUTSIDE))
    assert (outside.en16931_code, outside.reasons[0]) == ("O", Reason.AREA_IS_OUTSIDE)
    assert answer(business(**canaries, area_ruling=AreaRuling.OUTSIDE)).treatment == Treatment.BLOCKED


def test_tax_13_greece_is_gr_as_a_country_and_el_in_numbers():
    assert (vat_prefix("GR"), country_of_prefix("EL")) == ("EL", "GR")
    assert all(country_of_prefix(vat_prefix(country)) == country for country in MEMBER_STATES)
    assert answer(business("GR", vat_state=VatState.VALID)).country_of_tax == "GR"
    with pytest.raises(UnknownCountry):
        answer(business("EL"))


# --- TAX-19 and what must never happen -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("country", "at", "rate"),
    [
        ("FI", NOW, "25.5"),
        ("EE", datetime(2025, 6, 30, 20, 59, tzinfo=UTC), "22"),
        ("EE", datetime(2025, 6, 30, 21, tzinfo=UTC), "24"),
        ("RO", datetime(2025, 7, 31, 20, tzinfo=UTC), "19"),
        ("RO", datetime(2025, 7, 31, 21, tzinfo=UTC), "21"),
    ],
)
def test_tax_19_the_rate_is_that_of_the_date_on_the_wall_in_the_country_of_tax(country, at, rate):
    assert answer(consumer(country), at=at).rate_percent == Decimal(rate)


def test_tax_19_an_unknown_country_is_an_error_and_never_nothing():
    for country in ("ZZ", "", "XX", "EU", "nl", "UK"):
        with pytest.raises(UnknownCountry):
            answer(business(country, has_business_proof=True))
    with pytest.raises(NoRate):
        decide(seller=NL, buyer=consumer("FI"), rates=RateTable(rows=()), at=NOW)


@pytest.mark.parametrize("country", ["", "CH", "US", "ZZ"])
def test_a_seller_outside_the_union_has_no_rules_here(country):
    with pytest.raises(UnknownCountry):
        answer(business("NL"), seller=seller_in(country))


def test_monaco_is_treated_as_france():
    assert answer(business("MC", vat_state=VatState.VALID)).country_of_tax == "FR"
    assert answer(consumer("MC")).rate_percent == 20
    assert answer(business("MC"), seller=seller_in("FR")).treatment == Treatment.DOMESTIC


def test_consumers_wait_while_we_sell_to_businesses_only_but_a_business_without_a_number_does_not():
    off = seller_in("NL", sells_to_consumers=False)
    for country in ("NL", "FI"):
        refused = answer(consumer(country), seller=off)
        assert (refused.treatment, refused.reasons[-1]) == (Treatment.BLOCKED, Reason.CONSUMERS_OFF)
    assert answer(business("FI", vat_state=VatState.UNKNOWN), seller=off).rate_percent == Decimal("25.5")


@given(
    buyer=st.builds(
        Buyer,
        type=st.sampled_from(BuyerType),
        country=st.sampled_from(sorted(COUNTRIES)),
        postcode=st.sampled_from(["", "35001", "97110", "1234 AB"]),
        vat_state=st.sampled_from(VatState),
        has_business_proof=st.booleans(),
        area_ruling=st.sampled_from(AreaRuling),
    ),
    seller=st.sampled_from([NL, seller_in("FR"), seller_in("DE", sells_to_consumers=False)]),
)
def test_every_buyer_gets_a_whole_answer(buyer, seller):
    found = answer(buyer, seller=seller)
    assert found.reasons
    assert {reason.value for reason in found.reasons} <= REASONS.keys()
    if found.en16931_code == "":
        assert (found.rate_percent, found.legal_text_key, found.country_of_tax) == (None, "", "")
        return
    assert found.legal_text_key in LEGAL_TEXTS
    assert (found.rate_percent == 0) == (found.en16931_code in ("AE", "O"))
    if found.en16931_code == "S":
        assert found.rate_percent == known_rates().rate_at(found.country_of_tax, NOW)


def test_the_rows_use_the_words_of_the_rules():
    assert [each.value for each in Treatment] == TaxDecision.Treatment.values
    assert [each.value for each in AreaRuling] == TaxDetails.AreaRuling.values
    assert [each.value for each in Outcome] == VatCheck.Outcome.values
    assert [each.value for each in NameMatch] == VatCheck.NameMatch.values
    assert {each.value for each in Reason} == REASONS.keys()
    assert COUNTRIES_WITH_AREAS <= MEMBER_STATES < COUNTRIES
