"""The form that asks for a price alert, each fault at its field."""

import re
from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from catalog.models import Gpu, PriceAlert

_PRICE = re.compile(r"[0-9]{1,6}([.,][0-9]{1,4})?", re.ASCII)
_SPACES = re.compile(r"\s")


class AlertForm(forms.Form):
    """Which GPU, how low, and where the price is looked at."""

    gpu = forms.ModelChoiceField(
        label=_("GPU"),
        queryset=Gpu.objects.order_by("position"),
        to_field_name="slug",
        empty_label=_("Choose a GPU"),
        error_messages={"required": _("Choose a GPU."), "invalid_choice": _("This GPU is not in the catalogue.")},
    )
    price = forms.CharField(
        label=_("At most, USD per GPU-hour"),
        max_length=20,
        widget=forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"}),
        help_text=_("For one GPU, without tax."),
        error_messages={"required": _("Name a price.")},
    )
    place = forms.ChoiceField(
        label=_("Whose price"), choices=PriceAlert.Place.choices, widget=forms.RadioSelect, initial="either"
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["gpu"].label_from_instance = lambda gpu: gpu.label  # type: ignore[attr-defined]

    def clean_price(self) -> Decimal:
        """Return the price; point and comma both begin its decimals."""
        text = _SPACES.sub("", self.cleaned_data["price"])
        if not _PRICE.fullmatch(text):
            raise ValidationError(_("Write the price with digits and at most four decimals, such as 2.88."))
        price = Decimal(text.replace(",", "."))
        if price == 0:
            raise ValidationError(_("Write a price above 0."))
        return price
