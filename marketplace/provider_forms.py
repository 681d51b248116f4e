"""The forms of a provider's pages: the application, a server, the terms it is rented at, and which earnings to show."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from django import forms
from django.utils.functional import Promise
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from billing.forms import DayField
from catalog.models import Gpu
from marketplace.earnings_estimate import MOST_GPUS, UTILISATIONS, Lent
from marketplace.forms import PriceField
from marketplace.limits import MOST_LISTED_HOURS, USUAL_LISTED_HOURS
from marketplace.listings import Offered
from marketplace.models import Listing
from marketplace.providers.fields import MOST_CHARACTERS
from marketplace.providers.fleet import MOST_DEVICES
from marketplace.providers.missing import APPLICATION, SELF_BILLING, TERMS
from marketplace.servers import Machine
from users.countries import countries

_MOST = 10_000_000
FIELD_WORDS: Mapping[str, Any] = {
    "company_name": _("Company name"),
    "register_number": _("Register number"),
    "vat_id": _("VAT number"),
    "address": _("Street and number"),
    "postcode": _("Postcode"),
    "city": _("Town"),
    "contact_name": _("Contact person"),
    "contact_email": _("E-mail address"),
    "contact_phone": _("Phone"),
    "account_holder": _("Account holder"),
    "iban": _("IBAN"),
    TERMS: _("Provider terms"),
    SELF_BILLING: _("Self-billing agreement"),
}
# What is wrong with a field, by its code; a field of its own comes first.
REFUSALS: dict[str, Promise] = {
    "iban:invalid": _("This is no IBAN: its length or its check digits are wrong."),
    "vat_id:invalid": _("This is no VAT number of your country: its length or its check digits are wrong."),
    "vat_id:other_country": _("This VAT number belongs to another country than your organisation's."),
    "vat_id:no_register": _("VAT numbers of your country cannot be checked here: leave it blank."),
    "contact_email:invalid": _("This is no e-mail address."),
    "contact_phone:invalid": _("Write it with digits, such as +31 20 123 4567."),
    "device_uuids:invalid": _("A line is no device id: 6 to 60 letters, digits and hyphens."),
    "device_uuids:repeated": _("A device id stands there twice."),
    "device_uuids:out_of_range": _("Between 1 and 64 devices."),
    "min_gpus:out_of_range": _("Between 1 and the number of the server's devices."),
    "available_until:in_the_past": _("Choose a day to come, or leave it blank."),
    "price:too_fine": _("At most four decimals."),
    "too_long": _("This is too long."),
    "invalid": _("Letters, digits and signs only."),
}
_HINTS: Mapping[str, Any] = {
    "register_number": _("Of the company register; where there is none, a local tax number."),
    "vat_id": _("With its letters, such as NL004495445B01."),
    "account_holder": _("The company itself: we pay nobody else."),
    "contact_phone": _("With its country code."),
}
_FILLS = {
    "company_name": "organization",
    "address": "street-address",
    "postcode": "postal-code",
    "city": "address-level2",
    "contact_name": "name",
    "contact_email": "email",
    "contact_phone": "tel",
}


class ApplicationForm(forms.Form):
    """What a company says of itself. Nothing is required here: a draft may be saved with gaps, which the page names."""

    def __init__(self, data: Any = None, *, initial: Mapping[str, Any], agreed: Iterable[str], iban_hint: str) -> None:
        super().__init__(data, initial=dict(initial))
        for name in APPLICATION:
            attrs = {"autocomplete": _FILLS.get(name, "off")}
            self.fields[name] = forms.CharField(
                label=FIELD_WORDS[name],
                max_length=MOST_CHARACTERS[name],
                required=False,
                help_text=_HINTS.get(name, ""),
                widget=forms.TextInput(attrs=attrs),
            )
        if iban_hint:
            hint = _("Stored encrypted: %s. Leave it blank to keep it.") % iban_hint
        else:
            hint = str(_("For payouts. Stored encrypted; pages show its last four digits only."))
        self.fields["iban"].help_text = hint
        for name in {TERMS, SELF_BILLING} - set(agreed):
            self.fields[name] = forms.BooleanField(label=FIELD_WORDS[name], required=False)

    def changes(self) -> dict[str, str]:
        """Return the fields as typed; a blank bank account is left as it is."""
        told = {name: self.cleaned_data[name] for name in APPLICATION}
        return told if told["iban"] else {name: text for name, text in told.items() if name != "iban"}

    def agrees_to(self) -> list[str]:
        """Return which of the agreements was ticked."""
        return [name for name in (TERMS, SELF_BILLING) if self.cleaned_data.get(name)]


class GpuField(forms.ModelChoiceField):  # type: ignore[type-arg]  # takes none at run time
    """A GPU of the catalogue, by its label."""

    def label_from_instance(self, obj: Gpu) -> str:
        """Return what the list calls it."""
        return obj.label


class BankAccountForm(forms.Form):
    """Another bank account for payouts."""

    account_holder = forms.CharField(
        label=FIELD_WORDS["account_holder"],
        max_length=MOST_CHARACTERS["account_holder"],
        help_text=_HINTS["account_holder"],
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    iban = forms.CharField(
        label=FIELD_WORDS["iban"],
        max_length=MOST_CHARACTERS["iban"],
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )


class ServerForm(forms.Form):
    """A server to add."""

    name = forms.CharField(label=_("Name"), max_length=60, help_text=_("For you: renters do not see it."))
    gpu = GpuField(Gpu.objects.order_by("position"), label=_("GPU"), to_field_name="slug")
    device_uuids = forms.CharField(
        label=_("Device ids"),
        help_text=_("One a line, in the order of their index: nvidia-smi -L prints them."),
        max_length=MOST_DEVICES * 64,
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false", "autocapitalize": "off"}),
    )
    country = forms.ChoiceField(label=_("Country where it stands"))
    vcpus = forms.IntegerField(label=_("vCPUs"), min_value=1, max_value=_MOST)
    ram_gb = forms.IntegerField(label=_("RAM, GB"), min_value=1, max_value=_MOST)
    disk_gb = forms.IntegerField(label=_("Disk, GB"), min_value=1, max_value=_MOST)
    network_mbit_s = forms.IntegerField(label=_("Network, Mbit/s"), min_value=1, max_value=_MOST)
    interconnect = forms.ChoiceField(
        label=_("Link between GPUs"),
        choices=[
            ("nvlink", "NVLink"),
            ("infinity_fabric", "Infinity Fabric"),
            ("pcie", "PCIe"),
            ("none", _("none")),
        ],
    )

    def __init__(self, data: Any = None, *, country: str) -> None:
        super().__init__(data, initial={"country": country})
        field = self.fields["country"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = countries(get_language() or "en")

    def machine(self) -> Machine:
        """Return the server of a valid form."""
        told = dict(self.cleaned_data)
        device_uuids = re.split(r"[\s,;]+", told.pop("device_uuids").strip())
        return Machine(gpu_id=told.pop("gpu").pk, device_uuids=device_uuids, **told)


class OfferForm(forms.Form):
    """The terms a server is rented at."""

    price = PriceField(label=_("Price, USD per GPU-hour"))
    min_gpus = forms.IntegerField(
        label=_("Smallest slice, GPUs"), min_value=1, help_text=_("All of them: it is rented whole or not at all.")
    )
    max_hours = forms.IntegerField(label=_("Longest rental, hours"), min_value=1, max_value=MOST_LISTED_HOURS)
    available_until = DayField(label=_("Available until"), help_text=_("Its last day, in UTC. Blank: no end."))

    def __init__(self, data: Any = None, *, devices: int, listing: Listing | None = None) -> None:
        until = listing.available_until if listing else None
        super().__init__(
            data,
            initial={
                "price": listing.price_usd_per_gpu_hour if listing else None,
                "min_gpus": listing.min_gpus if listing else 1,
                "max_hours": listing.max_hours if listing else USUAL_LISTED_HOURS,
                "available_until": _last_day(until) if until else None,
            },
        )
        field = self.fields["min_gpus"]
        assert isinstance(field, forms.IntegerField)
        field.max_value = devices
        field.widget.attrs["max"] = devices
        self._listing = listing

    def offered(self) -> Offered:
        """Return the terms of a valid form; a day that was not touched keeps its hour."""
        told = self.cleaned_data
        until = told["available_until"]
        kept = self._listing.available_until if self._listing else None
        return Offered(
            price=told["price"],
            min_gpus=told["min_gpus"],
            max_hours=told["max_hours"],
            available_until=kept if kept and until == _last_day(kept) else _end_of(until),
        )


class CalculatorForm(forms.Form):
    """What the earnings calculator asks: which GPU, how many, and which share of the time they are rented."""

    gpu = GpuField(Gpu.objects.order_by("position"), label=_("GPU"), to_field_name="slug", empty_label=None)
    gpus = forms.IntegerField(label=_("GPUs"), min_value=1, max_value=MOST_GPUS)
    utilisation = forms.TypedChoiceField(
        label=_("Rented, of the time"),
        coerce=int,
        choices=[(str(percent), f"{percent} %") for percent in UTILISATIONS],
    )

    def lent(self, fee_percent: Decimal) -> Lent:
        """Return the GPUs of a valid form, under a fee in per cent."""
        return Lent(
            gpu_count=self.cleaned_data["gpus"],
            utilisation_percent=self.cleaned_data["utilisation"],
            fee_percent=fee_percent,
        )


class EarningsForm(forms.Form):
    """Which hours to show: `from`, `to`, days of UTC, both counted."""

    def __init__(self, data: Any) -> None:
        super().__init__(data)
        self.fields["from"] = DayField(label=_("From"))
        self.fields["to"] = DayField(label=_("To"))

    def clean(self) -> dict[str, Any]:
        """Refuse a span that ends before it begins."""
        values = super().clean() or self.cleaned_data
        if values.get("from") and values.get("to") and values["to"] < values["from"]:
            self.add_error("to", str(_("This is before the first day.")))
        return values

    @property
    def span(self) -> tuple[datetime | None, datetime | None]:
        """The hours asked for; all of them where the form does not say it right."""
        if not self.is_valid():
            return None, None
        since, until = self.cleaned_data.get("from"), self.cleaned_data.get("to")
        return (datetime.combine(since, time(), tzinfo=UTC) if since else None), _end_of(until)


class ReasonForm(forms.Form):
    """An operator's decision with its reason."""

    decision = forms.CharField(max_length=20, widget=forms.HiddenInput)
    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        required=False,
        help_text=_("The owners read it, and it is kept with the decision."),
    )


def refuse(form: forms.Form, field: str, code: str) -> None:
    """Put a flow's refusal at the form's field, in words."""
    name = {"price_usd_per_gpu_hour": "price"}.get(field, field)
    words = REFUSALS.get(f"{name}:{code}") or REFUSALS.get(code) or _("This is out of range.")
    form.add_error(name if name in form.fields else None, str(words))


def _end_of(day: Any) -> datetime | None:
    return None if day is None else datetime.combine(day, time(), tzinfo=UTC) + timedelta(days=1)


def _last_day(until: datetime) -> Any:
    return (until.astimezone(UTC) - timedelta(microseconds=1)).date()
