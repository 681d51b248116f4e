"""The controls of the comparison's filters and the words for what is applied. What a value means is the API's matter."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from catalog.compare.filters import PRECISIONS, Removed
from catalog.compare.lines import Known
from catalog.models import Offer
from catalog.views.compare_address import Asked
from common import formats

Words = str | Promise
Option = tuple[str, Words]
_EU = "AT,BE,BG,CY,CZ,DE,DK,EE,ES,FI,FR,GR,HR,HU,IE,IT,LT,LU,LV,MT,NL,PL,PT,RO,SE,SI,SK"
_COUNTRIES = [
    "AE",
    "AT",
    "AU",
    "BE",
    "BR",
    "CA",
    "CH",
    "CZ",
    "DE",
    "DK",
    "ES",
    "FI",
    "FR",
    "GB",
    "HK",
    "IE",
    "IL",
    "IN",
    "IS",
    "IT",
    "JP",
    "KR",
    "MX",
    "NL",
    "NO",
    "NZ",
    "PL",
    "PT",
    "SE",
    "SG",
    "TW",
    "US",
    "ZA",
]
_YES_OR_NO: tuple[Option, ...] = (("true", _("yes")), ("false", _("no")))
_STEPS: tuple[Option, ...] = (
    ("1", _("by the second")),
    ("60", _("by the minute or finer")),
    ("600", _("by ten minutes or finer")),
    ("3600", _("by the hour or finer")),
)
_MINIMUMS: tuple[Option, ...] = (("0", _("none")), ("60", _("up to a minute")), ("3600", _("up to an hour")))
_NOTICES: tuple[Option, ...] = (("1", _("any")), ("30", _("30 s and more")), ("120", _("2 min and more")))
_TERMS: tuple[Option, ...] = (("1", _("1 month")), ("12", _("12 months")), ("36", _("36 months")))
_AGES: tuple[Option, ...] = (
    ("fresh", _("read in the last 2 hours")),
    ("fresh,warned", _("live: read in the last 12 hours")),
    ("list", _("dated list prices")),
    ("fresh,warned,old,stale,list", _("stale ones too")),
)
_LINKS: tuple[Option, ...] = (
    ("NVLink,Infinity Fabric", _("NVLink or Infinity Fabric")),
    ("NVLink", "NVLink"),
    ("Infinity Fabric", "Infinity Fabric"),
    ("PCIe", "PCIe"),
)
_FABRICS: tuple[Option, ...] = (
    ("InfiniBand", "InfiniBand"),
    ("EFA", "EFA"),
    ("RoCE", "RoCE"),
    ("TCPX", "GPUDirect-TCPX"),
)


@dataclass(frozen=True, kw_only=True)
class Control:
    """A filter's field: a list to choose from, or a text (a number where `is_number`)."""

    name: str
    label: Words
    value: str
    errors: Sequence[str]
    options: Sequence[Option] = ()
    is_number: bool = False


@dataclass(frozen=True, kw_only=True)
class Applied:
    """A filter that is on: in words, how many offers it alone keeps out, the reason if the use sets it, and the way out."""

    label: Words
    value: str
    removes: int
    reason: Words
    href: str


@dataclass(frozen=True, kw_only=True)
class _Field:
    name: str
    label: Words
    options: Sequence[Option] | None = None
    is_number: bool = False


def _number(name: str, label: Words) -> _Field:
    return _Field(name=name, label=label, is_number=True)


def _choice(name: str, label: Words, options: Sequence[Option]) -> _Field:
    return _Field(name=name, label=label, options=options)


_FIRST_FIELDS = (
    _choice("gpu", _("GPU"), ()),
    _number("min_memory_gb", _("Memory each, GB from")),
    _number("min_gpus", _("GPUs per machine from")),
    _choice("market", _("Type of price"), ()),
    _choice("interconnect", _("Link"), _LINKS),
    _choice("country", _("Country"), ()),
    _choice("freshness", _("Age"), _AGES),
    _number("max_price_usd_per_gpu_hour", _("USD per GPU-hour, up to")),
)
_MORE_FIELDS = (
    _choice("vendor", _("Maker"), ()),
    _number("min_total_memory_gb", _("Memory in all, GB from")),
    _number("min_memory_bandwidth_gb_s", _("Bandwidth, GB/s from")),
    _choice("precision", _("Precision"), [(name, name) for name in PRECISIONS]),
    _number("min_fp64_tflops", _("FP64, TFLOPS from")),
    _choice("rt_cores", _("Ray-tracing cores"), _YES_OR_NO),
    _number("max_gpus", _("GPUs per machine up to")),
    _choice("multi_node", _("Several machines as one cluster"), _YES_OR_NO),
    _choice("fabric", _("Network between machines"), _FABRICS),
    _choice("cloud", _("Cloud"), ()),
    _choice("source", _("Source"), ()),
    _Field(name="region", label=_("Region, as the cloud spells it")),
    _choice("term_months", _("Term"), _TERMS),
    _choice("billing_step_max_seconds", _("Billed"), _STEPS),
    _choice("minimum_time_max_seconds", _("Minimum time"), _MINIMUMS),
    _choice("persistent_volumes", _("Persistent volumes"), _YES_OR_NO),
    _choice("volume_survives_stop", _("A volume survives a stop"), _YES_OR_NO),
    _choice("min_spot_notice_seconds", _("Spot notice"), _NOTICES),
    _number("min_storage_mib_s", _("Volume speed, MiB/s from")),
    _choice("max_egress_usd_per_gb", _("Traffic out"), [("0", _("free")), ("0.02", "0.02"), ("0.1", "0.10")]),
    _choice("availability", _("Free"), [("yes", _("available")), ("yes,low", _("available or scarce"))]),
)
_LABELS = {field.name: field.label for field in (*_FIRST_FIELDS, *_MORE_FIELDS)}


def first_controls(asked: Asked, *, known: Known) -> list[Control]:
    """Return the filters that stand open."""
    return _controls(_FIRST_FIELDS, asked, known=known)


def more_controls(asked: Asked, *, known: Known) -> list[Control]:
    """Return the others."""
    return _controls(_MORE_FIELDS, asked, known=known)


def applied_filters(asked: Asked, *, removed: Removed, known: Known) -> list[Applied]:
    """Return what is filtered by, the reader's own and the use's, in the fields' order."""
    reasons = asked.preset.filters if asked.preset else {}
    return [
        Applied(
            label=label,
            value=_in_words(asked.text(name), _options(name, known=known)),
            removes=removed.by_filter.get(name, 0),
            reason=reasons[name].reason if name in reasons and reasons[name].value == asked.wanted[name] else "",
            href=asked.without(name),
        )
        for name, label in _LABELS.items()
        if name in asked.wanted
    ]


def has_more(asked: Asked) -> bool:
    """Tell whether one of the further filters is set, or could not be read."""
    return any(field.name in asked.wanted or field.name in asked.errors for field in _MORE_FIELDS)


def errors_in_words(asked: Asked) -> list[tuple[Words, str]]:
    """Return what could not be read, as label and message."""
    return [(_LABELS[name], message) for name, messages in asked.errors.items() for message in messages]


def _controls(fields: Iterable[_Field], asked: Asked, *, known: Known) -> list[Control]:
    return [
        Control(
            name=field.name,
            label=field.label,
            value=asked.text(field.name),
            errors=asked.errors.get(field.name, ()),
            options=_with_value(_options(field.name, known=known), asked.text(field.name)),
            is_number=field.is_number,
        )
        for field in fields
    ]


def _options(name: str, *, known: Known) -> Sequence[Option]:
    """Return the choices of a filter; those of the catalogue in its order."""
    of_catalogue: Mapping[str, Any] = {
        "gpu": lambda: [(gpu.slug, gpu.label) for gpu in known.gpus.values()],
        "vendor": lambda: [(vendor, vendor) for vendor in sorted({gpu.vendor for gpu in known.gpus.values()})],
        "cloud": lambda: [(cloud.slug, cloud.name) for cloud in known.clouds.values()],
        "source": lambda: [(source.name, source.title_in_words) for source in known.sources.values()],
        "market": lambda: [
            *Offer.MarketKind.choices,
            ("on_demand,reserved", _("on-demand or reserved")),
        ],
        "country": _countries,
    }
    if name in of_catalogue:
        options: Sequence[Option] = of_catalogue[name]()
        return options
    return next((field.options or () for field in (*_FIRST_FIELDS, *_MORE_FIELDS) if field.name == name), ())


def _countries() -> list[Option]:
    language = get_language() or "en"
    named = sorted((formats.country(code, language=language), code) for code in _COUNTRIES)
    return [(_EU, _("European Union")), *((code, name) for name, code in named)]


def _with_value(options: Sequence[Option], value: str) -> Sequence[Option]:
    """Return the choices, with a value of the address that is none of them as one more."""
    if not options or not value or value in dict(options):
        return options
    return [*options, (value, _in_words(value, options))]


def _in_words(value: str, options: Sequence[Option]) -> str:
    """Return a value, or several, by the words of its choices."""
    words = dict(options)
    if value in words:
        return str(words[value])
    return ", ".join(str(words.get(part, part)) for part in value.split(","))
