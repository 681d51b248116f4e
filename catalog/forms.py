"""The filter of `/gpus/`, under the names the API uses, and the reader's job of `/compare/`."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from django import forms
from django.utils.translation import gettext_lazy as _

from catalog.compare.job import Job
from catalog.models import Gpu

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

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


def _amount(label: "str | _StrPromise", *, most: int, usual: str = "0") -> forms.DecimalField:
    return forms.DecimalField(
        label=label,
        required=False,
        min_value=Decimal(0),
        max_value=Decimal(most),
        decimal_places=2,
        widget=forms.TextInput(attrs={"inputmode": "decimal", "size": 6, "placeholder": usual}),
    )


def _count(label: "str | _StrPromise") -> forms.IntegerField:
    return forms.IntegerField(
        label=label,
        required=False,
        min_value=1,
        max_value=10_000,
        widget=forms.TextInput(attrs={"inputmode": "numeric", "size": 6, "placeholder": "1"}),
    )


class JobForm(forms.Form):
    """What the reader wants to run. Without hours there is no job; what else is blank or wrong takes the usual value."""

    job_hours = _amount(_("Hours of work"), most=100_000, usual="")
    job_gpus = _count(_("GPUs"))
    job_starts = _count(_("Starts"))
    job_stopped_hours = _amount(_("Hours stopped between"), most=100_000)
    job_storage_gb = _amount(_("Volume, GB"), most=10_000_000)
    job_egress_gb = _amount(_("Traffic out, GB"), most=10_000_000)
    job_checkpoint_minutes = _amount(_("A checkpoint takes, min"), most=1_440, usual="2")
    job_interruptions_per_day = _amount(_("Interruptions a day"), most=1_000, usual="1")

    def job(self) -> Job | None:
        """Return the job, None without hours."""
        given = {name.removeprefix("job_"): value for name, value in self.cleaned_data.items() if value is not None}
        return Job(**given) if given.get("hours") else None
