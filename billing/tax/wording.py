"""A tax decision in words: why it came out so, and what an invoice says of it."""

from django.utils.translation import gettext_lazy as _

REASONS = {
    "same_country": _(
        "You are a business in the seller's own country: its VAT is charged, with or without a VAT number."
    ),
    "vat_id_valid": _("Your VAT number is valid, so you account for the VAT yourself."),
    "vat_id_missing": _("No VAT number was given, so you are charged VAT like a private person."),
    "vat_id_invalid": _("The register says that your VAT number is not valid, so VAT is charged."),
    "vat_id_unknown": _(
        "The register has not answered about your VAT number. That is not a no: we ask again, and charge VAT meanwhile."
    ),
    "vat_id_other_name": _(
        "The register knows your VAT number under another name, so VAT is charged. Write the organisation's name as it is registered."
    ),
    "vat_id_other_country": _("Your VAT number belongs to another country than your organisation, so VAT is charged."),
    "consumer": _("You buy as a private person."),
    "business_proven": _("You are a business outside the European Union, and its number is on file."),
    "business_not_proven": _("No register number or local tax number proves a business yet."),
    "special_area": _("Your postcode lies in an area with VAT rules of its own."),
    "area_is_mainland": _("We looked at your area: the rules of the mainland hold."),
    "area_is_outside": _("We looked at your area: it counts as outside the European Union."),
    "consumers_off": _("We sell to businesses only for now."),
    "country_not_served": _("We are not registered to charge private persons the tax of your country."),
}
# What stands on an invoice, by `legal_text_key`.
LEGAL_TEXTS = {
    "domestic": _("VAT of the seller's country."),
    "consumer_state": _("VAT of the customer's country, declared through the Union One Stop Shop."),
    "foreign_state": _("Value added tax of the customer's country."),
    "reverse_charge": _(
        "Reverse charge: the customer accounts for the VAT (articles 44 and 196 of Directive 2006/112/EC)."
    ),
    "outside_scope": _("Outside the scope of EU VAT (article 44 of Directive 2006/112/EC)."),
}
