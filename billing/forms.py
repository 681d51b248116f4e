"""The forms of the wallet's pages: which lines of a statement, how much is paid in, how much goes back."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.signing import BadSignature, Signer
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _
from uuid6 import uuid7

from billing.accounts import WALLET_CURRENCIES
from billing.queries.statement import View
from billing.statement_words import GROUPS
from common import formats
from common.money import from_micros, to_micros

_AMOUNT = re.compile(r"[0-9]{1,9}([.,][0-9]{1,2})?", re.ASCII)
_SPACES = re.compile(r"\s")
_CURRENCIES = [(currency, currency) for currency in WALLET_CURRENCIES]


class AmountField(forms.Field):
    """Money as people write it: digits, then two decimals at most behind a point or a comma.

    Thousands are not grouped, or by spaces: what "1.000" and "1,000" mean depends on who writes it.
    """

    def __init__(self, **kwargs: Any) -> None:
        attrs = {"inputmode": "decimal", "autocomplete": "off", "maxlength": "20"}
        super().__init__(**{"widget": forms.TextInput(attrs), **kwargs})

    def to_python(self, value: object) -> Decimal | None:
        """Return the amount."""
        text = _SPACES.sub("", str(value or ""))
        if not text:
            return None
        if not _AMOUNT.fullmatch(text):
            raise ValidationError(_("Write the amount with digits and at most two decimals, such as 100 or 99.50."))
        return Decimal(text.replace(",", "."))


class DayField(forms.DateField):
    """A day, picked or written as 2026-11-30."""

    def __init__(self, **kwargs: Any) -> None:
        widget = forms.DateInput(attrs={"type": "date", "min": "2000-01-01", "max": "2999-12-31"}, format="%Y-%m-%d")
        errors = {"invalid": _("Choose a day, or write it as 2026-11-30.")}
        super().__init__(required=False, input_formats=["%Y-%m-%d"], widget=widget, error_messages=errors, **kwargs)

    def clean(self, value: object) -> Any:
        """Return the day, or None."""
        on = super().clean(value)
        if on is not None and not 2000 <= on.year <= 2999:
            raise ValidationError(_("Choose a day from the year 2000 on."))
        return on


class StatementForm(forms.Form):
    """Which lines to show: `currency`, `from`, `to` (days of UTC, both counted) and `kind`. Nothing is required."""

    def __init__(self, data: Any, *, default_currency: str) -> None:
        super().__init__({**_given(data), "currency": data.get("currency") or default_currency})
        kinds = [("", _("everything")), *((name, title) for name, (title, _kinds) in GROUPS.items())]
        self.fields["currency"] = forms.ChoiceField(label=_("Currency"), choices=_CURRENCIES)
        self.fields["from"] = DayField(label=_("From"))  # no name that a class could give to a field
        self.fields["to"] = DayField(label=_("To"))
        self.fields["kind"] = forms.ChoiceField(label=_("Kind"), choices=kinds, required=False)

    def clean(self) -> dict[str, Any]:
        """Refuse a span that ends before it begins."""
        values = super().clean() or self.cleaned_data
        if values.get("from") and values.get("to") and values["to"] < values["from"]:
            self.add_error("to", _("This is before the first day."))
        return values

    @property
    def view(self) -> View:
        """The lines asked for; all of them where the form does not say it right."""
        if not self.is_valid():
            return View()
        since, until, kind = (self.cleaned_data.get(name) for name in ("from", "to", "kind"))
        return View(
            since=datetime.combine(since, time(), tzinfo=UTC) if since else None,
            until=datetime.combine(until, time(), tzinfo=UTC) + timedelta(days=1) if until else None,
            kinds=GROUPS[kind][1] if kind else (),
        )


class TicketForm(forms.Form):
    """A form that may be sent twice, by two clicks or a reload, and means one thing: its ticket is that thing's id.

    The ticket is made with the form, for one organisation and one use, and signed.
    """

    use = ""
    ticket = forms.CharField(widget=forms.HiddenInput, required=False)

    def __init__(self, data: Any = None, *, organisation_id: int, initial: dict[str, Any] | None = None) -> None:
        self._organisation_id = organisation_id
        super().__init__(data, initial={**(initial or {}), "ticket": self.new_ticket(organisation_id)})

    @classmethod
    def new_ticket(cls, organisation_id: int) -> str:
        """Return a ticket for a form that was not sent yet."""
        return cls._signer(organisation_id).sign(str(uuid7()))

    def clean(self) -> dict[str, Any]:
        """Read the ticket: `cleaned_data["ticket"]` is the id."""
        values = super().clean() or self.cleaned_data
        try:
            values["ticket"] = UUID(self._signer(self._organisation_id).unsign(values["ticket"]))
        except (BadSignature, ValueError):
            self.renew()
            self.add_error(None, _("This form came from somewhere else, or was opened before. Send it once more."))
        return values

    def renew(self) -> None:
        """Put a fresh ticket into the form that is shown again: the old one stands for something else."""
        self.data = {**_given(self.data), "ticket": self.new_ticket(self._organisation_id)}

    @classmethod
    def _signer(cls, organisation_id: int) -> Signer:
        return Signer(salt=f"billing.forms:{cls.use}:{organisation_id}")


class TopUpForm(TicketForm):
    """How much is paid in."""

    use = "top-up"
    currency = forms.ChoiceField(label=_("Currency"), choices=_CURRENCIES)
    amount = AmountField(label=_("Amount"))


class RefundForm(TicketForm):
    """How much goes back, of the currencies that have something: `most_micros` by currency."""

    use = "refund"
    currency = forms.ChoiceField(label=_("Currency"))
    amount = AmountField(label=_("Amount"))

    def __init__(self, data: Any = None, *, most_micros: Mapping[str, int], **kwargs: Any) -> None:
        super().__init__(data, **kwargs)
        self._most_micros = most_micros
        currency = self.fields["currency"]
        assert isinstance(currency, forms.ChoiceField)
        currency.choices = [(code, code) for code in most_micros]

    def clean(self) -> dict[str, Any]:
        """Refuse what cannot go back."""
        values = super().clean()
        most_micros = self._most_micros.get(values.get("currency", ""), 0)
        if most_micros and values.get("amount") is not None and not 0 < self.amount_micros <= most_micros:
            self.refuse_amount(most_micros)
        return values

    @property
    def amount_micros(self) -> int:
        """The amount of a form that is right."""
        return to_micros(self.cleaned_data["amount"], currency=self.cleaned_data["currency"])

    def refuse_amount(self, most_micros: int) -> None:
        """Say how much can go back."""
        most = formats.total(
            from_micros(most_micros), self.cleaned_data["currency"], language=get_language() or settings.LANGUAGE_CODE
        )
        self.add_error("amount", _("Between 0.01 and %s can go back now.") % most)


def _given(data: Any) -> dict[str, Any]:
    """Return what was sent, one value a name."""
    return {name: data[name] for name in data}
