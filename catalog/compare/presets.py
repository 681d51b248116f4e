"""The six uses as filters: which value each sets, and why. A value given beside a preset goes before it."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True, kw_only=True)
class PresetFilter:
    """The value a use sets for a filter, as `OfferParameters` would read it, and the reason."""

    value: Any
    reason: str | Promise


@dataclass(frozen=True, kw_only=True)
class Preset:
    """One use."""

    slug: str
    label: str | Promise
    filters: Mapping[str, PresetFilter]

    @property
    def values(self) -> dict[str, Any]:
        """The values by filter."""
        return {name: each.value for name, each in self.filters.items()}


def _least(value: int, reason: str | Promise) -> PresetFilter:
    return PresetFilter(value=Decimal(value), reason=reason)


_ALL_PRESETS = (
    Preset(
        slug="llm-training",
        label=_("LLM training"),
        filters={
            "min_memory_gb": _least(
                80, _("Weights, gradients and optimiser states lie in memory at once, about 16 bytes per parameter.")
            ),
            "min_gpus": PresetFilter(
                value=8, reason=_("States are shared out over the GPUs of one machine before the network is needed.")
            ),
            "interconnect": PresetFilter(
                value=("NVLink", "Infinity Fabric"),
                reason=_("Gradients are summed over all GPUs at every step; PCIe is several times slower."),
            ),
            "precision": PresetFilter(value=("BF16",), reason=_("Training runs in BF16.")),
        },
    ),
    Preset(
        slug="fine-tuning",
        label=_("Fine-tuning"),
        filters={
            "min_memory_gb": _least(
                24, _("Adapters for a model of 8 billion parameters in 16 bits need about 22 GB, in 4 bits about 6 GB.")
            ),
            "precision": PresetFilter(value=("BF16",), reason=_("The frozen model is kept in BF16.")),
        },
    ),
    Preset(
        slug="llm-inference",
        label=_("LLM inference"),
        filters={
            "min_memory_bandwidth_gb_s": _least(
                800, _("Every token reads all weights once, so bandwidth sets the speed of one stream.")
            ),
            "precision": PresetFilter(
                value=("FP8",), reason=_("FP8 halves weights and cache, with little loss of quality.")
            ),
            "market": PresetFilter(
                value=("on_demand", "reserved"), reason=_("A spot machine can be taken away while it serves.")
            ),
        },
    ),
    Preset(
        slug="image-video",
        label=_("Images and video"),
        filters={
            "min_memory_gb": _least(
                24, _("Image models fit in 24 GB with parts moved out; video at 720p asks for 48 to 80 GB.")
            ),
            "precision": PresetFilter(value=("BF16",), reason=_("The models are published in BF16.")),
        },
    ),
    Preset(
        slug="rendering",
        label=_("Rendering and VFX"),
        filters={
            "rt_cores": PresetFilter(
                value="true", reason=_("Path tracing wants ray-tracing cores, which cards made for AI do not have.")
            ),
            "min_memory_gb": _least(24, _("The whole scene is copied to every card.")),
        },
    ),
    Preset(
        slug="science",
        label=_("Science"),
        filters={
            "min_fp64_tflops": _least(
                5, _("Double precision differs thirtyfold between cards of equal BF16; the newest are not the best.")
            ),
            "min_memory_bandwidth_gb_s": _least(
                900, _("Stencils, fluids and sparse matrices follow the bandwidth of the memory.")
            ),
        },
    ),
)
PRESETS: Mapping[str, Preset] = {preset.slug: preset for preset in _ALL_PRESETS}


def with_preset(wanted: Mapping[str, Any], *, blank: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return `wanted` with what its `use_case` sets; names in `blank` were emptied on purpose and stay so."""
    preset = PRESETS.get(wanted.get("use_case", ""))
    if preset is None:
        return dict(wanted)
    set_by_it = {name: value for name, value in preset.values.items() if name not in blank}
    return {**set_by_it, **wanted}
