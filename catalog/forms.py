"""The filter of `/gpus/`: what may be asked for in the address, under the names the API uses."""

from collections.abc import Iterable, Mapping
from decimal import Decimal

from django import forms
from django.utils.translation import gettext_lazy as _

from catalog.models import Gpu

SORTABLE = (
    "memory_gb",
    "memory_bandwidth_gb_s",
    "bf16_dense_tflops",
    "fp8_dense_tflops",
    "fp64_tflops",
    "nvlink_gb_s",
    "tdp_w",
    "trains_on_8",
    "clouds",
    "price",
)


class GpuFilterForm(forms.Form):
    """Filter and order of the GPU list. Choices are what the catalogue holds; a minus before `sort` = largest first."""

    search = forms.CharField(label=_("Name"), required=False, max_length=60)
    vendor = forms.ChoiceField(label=_("Maker"), required=False)
    architecture = forms.ChoiceField(label=_("Architecture"), required=False)
    memory_gb_min = forms.DecimalField(
        label=_("Memory, GB from"), required=False, min_value=Decimal(0), max_value=Decimal(10_000), decimal_places=2
    )
    software_stack = forms.ChoiceField(label=_("Software"), required=False)
    has_price = forms.BooleanField(label=_("Only with a price"), required=False)
    sort = forms.ChoiceField(
        label=_("Sort by"),
        required=False,
        choices=[("", ""), *((sign + name, name) for name in SORTABLE for sign in ("", "-"))],
        widget=forms.HiddenInput,
    )

    def __init__(self, data: Mapping[str, str], *, gpus: Iterable[Gpu]) -> None:
        super().__init__(data)
        rows = list(gpus)
        for name in ("vendor", "architecture", "software_stack"):
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            values = sorted({getattr(gpu, name) for gpu in rows} - {""})
            field.choices = [("", _("any")), *((value, value) for value in values)]
            field.error_messages["invalid_choice"] = _("“%(value)s” is not in the catalogue. Choose one of the list.")
