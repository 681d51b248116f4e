"""The ticket: what a renter asks for, field by field; and the form that confirms what the review has shown."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from babel import Locale
from babel.numbers import get_decimal_symbol
from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from billing.accounts import WALLET_CURRENCIES
from billing.forms import TicketForm
from common import formats
from marketplace.limits import LONGEST_ORDER, MOST_HOURS, MOST_SERVERS
from marketplace.matching import Filters
from marketplace.orders.instruction import Instruction
from marketplace.ssh_keys import KeyRefused, checked_key
from users.countries import countries

BEST, LIMIT = "best", "limit"
LOT, OPEN_ENDED = "lot", "open"
IOC, FOK = "ioc", "fok"
MOST_GPUS = 64
_MOST_WISHED = 10_000_000
_HIGHEST_PRICE = Decimal(100_000)
_PRICE = re.compile(r"[0-9]{1,6}([.,][0-9]{1,4})?", re.ASCII)
_SPACES = re.compile(r"\s")
_SECONDS_PER_HOUR = 3600
_RESTS_HOURS = (1, 6, 24, 72, LONGEST_ORDER // timedelta(hours=1))
_INTERCONNECTS = (
    ("", _("any")),
    ("nvlink", "NVLink"),
    ("infinity_fabric", "Infinity Fabric"),
    ("pcie", "PCIe"),
    ("none", _("none")),
)


class PriceField(forms.Field):
    """A price as people write it: digits, then four decimals at most behind a point or a comma."""

    def __init__(self, **kwargs: Any) -> None:
        attrs = {"inputmode": "decimal", "autocomplete": "off", "maxlength": "12"}
        super().__init__(**{"widget": forms.TextInput(attrs), **kwargs})

    def to_python(self, value: object) -> Decimal | None:
        """Return the price in USD."""
        text = _SPACES.sub("", str(value or ""))
        if not text:
            return None
        if not _PRICE.fullmatch(text):
            raise ValidationError(_("Write the price with digits and at most four decimals, such as 2.88."))
        price = Decimal(text.replace(",", "."))
        if not 0 < price <= _HIGHEST_PRICE:
            raise ValidationError(_("Write a price above 0."))
        return price

    def prepare_value(self, value: Any) -> Any:
        """Return the price as it is written in the page's language."""
        if not isinstance(value, Decimal):
            return value
        symbol = get_decimal_symbol(Locale.parse(get_language() or "en", sep="-"))
        return formats.price(value, language="en").replace(",", "").replace(".", symbol)


class OrderForm(forms.Form):
    """What is rented, for how long, at which price, from which wallet. Names are those of the page's address."""

    kind = forms.ChoiceField(
        label=_("Price"),
        choices=[(BEST, _("Best offer")), (LIMIT, _("My price"))],
        widget=forms.RadioSelect,
    )
    gpu_count = forms.IntegerField(label=_("GPUs per server"), min_value=1, max_value=MOST_GPUS)
    server_count = forms.IntegerField(label=_("Servers"), min_value=1, max_value=MOST_SERVERS)
    term = forms.ChoiceField(
        label=_("For how long"),
        choices=[(LOT, _("Hours")), (OPEN_ENDED, _("Until I stop"))],
        widget=forms.RadioSelect,
    )
    hours = forms.IntegerField(label=_("Hours"), min_value=1, max_value=MOST_HOURS, required=False)
    price = PriceField(label=_("At most, USD per GPU-hour"), required=False)
    wallet = forms.ChoiceField(label=_("Pay from"))
    valid = forms.ChoiceField(label=_("Valid"))
    countries = forms.MultipleChoiceField(label=_("Countries"), required=False, widget=forms.CheckboxSelectMultiple)
    interconnect = forms.ChoiceField(label=_("Link between GPUs"), choices=_INTERCONNECTS, required=False)
    min_ram_gb = forms.IntegerField(label=_("RAM, GB"), min_value=0, max_value=_MOST_WISHED, required=False)
    min_vcpus = forms.IntegerField(label=_("vCPUs"), min_value=0, max_value=_MOST_WISHED, required=False)
    min_disk_gb = forms.IntegerField(label=_("Disk, GB"), min_value=0, max_value=_MOST_WISHED, required=False)

    def __init__(
        self,
        data: Any = None,
        *,
        initial: dict[str, Any] | None = None,
        wallets: Iterable[tuple[str, str]] = (),
        offered_in: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(data, initial=initial)
        language = get_language() or "en"
        self._choices("wallet", list(wallets) or [(currency, currency) for currency in WALLET_CURRENCIES])
        self._choices("valid", [*_resting_choices(language), *_AT_ONCE])
        chosen = data.getlist("countries") if isinstance(data, QueryDict) else (initial or {}).get("countries") or []
        self._choices("countries", _country_choices(offered_in or {}, chosen, language))

    def clean(self) -> dict[str, Any]:
        """Ask for hours and price where the order needs them; where it does not, whatever stands there is no fault."""
        values = super().clean() or self.cleaned_data
        self._needs("hours", values.get("term") == LOT, _("Say for how many hours, or choose to stop it yourself."))
        self._needs("price", values.get("kind") == LIMIT, _("Name your price."))
        return values

    def _needs(self, name: str, is_needed: bool, message: str | Promise) -> None:
        if not is_needed:
            self.errors.pop(name, None)
            self.cleaned_data[name] = None
        elif self.cleaned_data.get(name) is None and name not in self.errors:
            self.add_error(name, str(message))

    @property
    def is_best(self) -> bool:
        """Whether the best offer is to be taken (of a form that is right)."""
        return bool(self.cleaned_data["kind"] == BEST)

    @property
    def has_wishes(self) -> bool:
        """Whether anything is asked of the server, or anything there is wrong: the fold stands open then."""
        names = ("countries", "interconnect", "min_ram_gb", "min_vcpus", "min_disk_gb")
        return any(self[name].value() or self[name].errors for name in names)

    def instruction(self, gpu_id: int, *, limit: Decimal, now: datetime) -> Instruction:
        """Return what a form that is right asks for, at this limit."""
        values = self.cleaned_data
        time_in_force, rests_for = _time_in_force(IOC if self.is_best else values["valid"])
        return Instruction(
            gpu_id=gpu_id,
            gpu_count=values["gpu_count"],
            server_count=values["server_count"],
            hours=values["hours"] if values["term"] == LOT else None,
            limit=limit,
            currency=values["wallet"],
            time_in_force=time_in_force,
            expires_at=now + rests_for if rests_for else None,
            filters=Filters(
                countries=frozenset(values["countries"]),
                interconnect=values["interconnect"],
                min_ram_gb=values["min_ram_gb"] or 0,
                min_vcpus=values["min_vcpus"] or 0,
                min_disk_gb=values["min_disk_gb"] or 0,
            ),
        )

    def _choices(self, name: str, choices: Iterable[tuple[str, Any]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = list(choices)
        field.error_messages["invalid_choice"] = _("“%(value)s” is not one of the list.")


class ConfirmForm(TicketForm):
    """What the review has shown and the renter agrees to: the quote, and the most that may be held, in micros."""

    use = "order"
    quote = forms.UUIDField(required=False, widget=forms.HiddenInput)
    shown_price = PriceField(required=False, widget=forms.HiddenInput)
    agreed_micros = forms.IntegerField(min_value=0, max_value=2**62, widget=forms.HiddenInput)
    confirm_price = forms.BooleanField(
        label=_("Yes, this price is what I mean"), required=False, widget=forms.CheckboxInput
    )
    ssh_public_key = forms.CharField(
        label=_("SSH public key"),
        help_text=_("One line, such as ssh-ed25519 AAAA… It opens the machine for you; without one nobody gets in."),
        required=False,
        max_length=800,
        widget=forms.Textarea({"rows": "2", "spellcheck": "false", "autocomplete": "off"}),
    )

    def clean_ssh_public_key(self) -> str:
        """Return the key as it goes to the machine."""
        text: str = self.cleaned_data["ssh_public_key"]
        try:
            return checked_key(text) if text else ""
        except KeyRefused as refused:
            raise ValidationError(str(refused)) from refused

    @property
    def order_id(self) -> UUID:
        """The id that the order gets, whatever is sent twice."""
        order_id: UUID = self.cleaned_data["ticket"]
        return order_id


_AT_ONCE = ((IOC, _("Now: what fits at once, the rest is dropped")), (FOK, _("Now: every server, or nothing")))


def wished(query: QueryDict, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the ticket starts with: the address's wishes as far as they can be read, else the usual."""
    form = OrderForm(as_sent({name: query.getlist(name) or defaults.get(name) for name in OrderForm.base_fields}))
    form.is_valid()
    read = {name: value for name, value in form.cleaned_data.items() if value not in (None, "", [])}
    return {name: read.get(name, defaults.get(name)) for name in OrderForm.base_fields}


def as_sent(values: Mapping[str, Any]) -> QueryDict:
    """Return values as a browser would send them."""
    data = QueryDict(mutable=True)
    for name, value in values.items():
        data.setlist(name, _as_sent(value))
    return data


def _as_sent(value: Any) -> list[str]:
    if isinstance(value, list | tuple):
        return [str(item) for item in value]
    return [] if value is None else [str(value)]


def _time_in_force(valid: str) -> tuple[str, timedelta | None]:
    """Return the order's time in force, and how long it rests."""
    return (valid, None) if valid in (IOC, FOK) else ("gtc", timedelta(hours=int(valid)))


def _resting_choices(language: str) -> list[tuple[str, str]]:
    return [
        (
            str(hours),
            gettext("Up to %s, may fill in parts") % formats.lasting(hours * _SECONDS_PER_HOUR, language=language),
        )
        for hours in _RESTS_HOURS
    ]


def _country_choices(offered_in: Mapping[str, int], chosen: Iterable[Any], language: str) -> list[tuple[str, str]]:
    """Return the countries that have free GPUs, each with how many, and whatever else was chosen."""
    known = dict(countries(language))
    codes = {*offered_in, *(code for code in chosen if code in known)}
    named = sorted((known.get(code, code), code) for code in codes)
    return [(code, f"{name} ({offered_in.get(code, 0)})") for name, code in named]
