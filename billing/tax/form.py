"""The form of the tax page: where the organisation is, and what proves that it is a business."""

from typing import Any

from django import forms
from django.utils.functional import Promise
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from billing.models import TaxDetails
from billing.tax.details import Told
from billing.tax.special_areas import COUNTRIES_WITH_AREAS
from billing.tax.vat_ids import MOST_CHARACTERS, NoRegister, OtherCountry, VatIdRefused, WrongForm, parse
from users.countries import countries

REFUSALS: dict[type[VatIdRefused], Promise] = {
    WrongForm: _("This is no VAT number of the chosen country: its length or its check digits are wrong."),
    OtherCountry: _("This VAT number belongs to another country than the chosen one."),
    NoRegister: _("VAT numbers of this country cannot be checked here: write it as the business number instead."),
}


class TaxForm(forms.Form):
    """Country, postcode, VAT number and business number, all of them as they are to be."""

    country = forms.ChoiceField(label=_("Country"))
    postcode = forms.CharField(
        label=_("Postcode"), required=False, max_length=20, widget=forms.TextInput({"autocomplete": "postal-code"})
    )
    vat_id = forms.CharField(
        label=_("VAT number"),
        required=False,
        max_length=MOST_CHARACTERS,
        help_text=_(
            "With the letters of the country or without. For businesses in the European Union and Great Britain."
        ),
        widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false"}),
    )
    register_number = forms.CharField(
        label=_("Business number"),
        required=False,
        max_length=40,
        help_text=_("Company register or local tax number. It proves a business outside the European Union."),
        widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false"}),
    )

    def __init__(self, data: Any, *, details: TaxDetails) -> None:
        organisation = details.organisation
        super().__init__(
            data,
            initial={
                "country": organisation.country,
                "postcode": organisation.postcode,
                "vat_id": details.vat_id,
                "register_number": organisation.register_number,
            },
        )
        country = self.fields["country"]
        assert isinstance(country, forms.ChoiceField)
        country.choices = countries(get_language() or "en")

    def clean(self) -> dict[str, Any]:
        """Check the number against the country, and ask for a postcode where the tax hangs on it."""
        told = super().clean() or {}
        country = told.get("country")
        if country and told.get("vat_id"):
            try:
                told["vat_id"] = parse(told["vat_id"], country=country).text
            except VatIdRefused as why:
                self.add_error("vat_id", str(REFUSALS[type(why)]))
        if country in COUNTRIES_WITH_AREAS and not told.get("postcode"):
            self.add_error("postcode", str(_("Parts of this country have VAT rules of their own, found by postcode.")))
        return told

    def told(self) -> Told:
        """Return what a valid form says."""
        return Told(**self.cleaned_data)
