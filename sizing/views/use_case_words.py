"""The words of the use cases' tables: names, headings of columns, dividers, why a price is marked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.utils.translation import gettext_lazy as _

from sizing.use_cases.table import Column, Text

MEMORY = Column(key="memory", kind="figure", label=_("Memory"), unit="GB")
BANDWIDTH = Column(key="bandwidth", kind="whole", label=_("Bandwidth"), unit="GB/s")
BF16 = Column(key="bf16", kind="whole", label=_("BF16, dense"), unit="TFLOPS", chip="BF16")
FP8 = Column(key="fp8", kind="whole", label=_("FP8, dense"), unit="TFLOPS", chip="FP8")
ECC = Column(key="ecc", kind="yes_no", label="ECC")
LINK = Column(key="link", kind="link", label=_("Link"), unit=_("GB/s one way"))


def _size(key: str, label: Text, chip: Text = "") -> Column:
    return Column(key=key, kind="size", label=label, unit=_("B param."), chip=chip)


@dataclass(frozen=True, kw_only=True)
class Words:
    """What a page says of its table. `here`: the page in its breadcrumb; `marked`: why a price is marked; `dividers`: title and note of a group of rows."""

    name: Text
    here: Text
    caption: Text
    marked: Text
    columns: Sequence[Column]
    dividers: Mapping[str, tuple[Text, Text]] = field(default_factory=dict)


WORDS: Mapping[str, Words] = {
    "llm-training": Words(
        name=_("GPUs for LLM training"),
        here=_("LLM training"),
        caption=_("the maker's dense figures per GPU, and careful estimates of the model that trains"),
        marked=_("marked: least for the work"),
        columns=(
            MEMORY,
            Column(key="type", kind="text", label=_("Memory type"), chip=_("Type")),
            BANDWIDTH,
            BF16,
            _size("one", _("Trains on 1")),
            _size("eight", _("Trains on 8")),
            Column(key="fp8", kind="whole", label=_("FP8, dense"), unit="TFLOPS", chip="FP8", is_after_price=True),
            Column(
                key="measured",
                kind="whole",
                label=_("BF16 measured"),
                unit="TFLOPS",
                chip=_("Measured"),
                is_after_price=True,
            ),
            Column(key="link", kind="link", label=_("Link"), unit=_("GB/s one way"), is_after_price=True),
        ),
        dividers={"added": (_("Added by us"), _("same rules, not in the usual nine"))},
    ),
    "fine-tuning": Words(
        name=_("GPUs for fine-tuning"),
        here=_("Fine-tuning"),
        caption=_("the maker's dense figures per GPU, and careful estimates of the model that one GPU tunes"),
        marked=_("marked: least for the work"),
        columns=(
            MEMORY,
            BANDWIDTH,
            BF16,
            _size("lora", _("LoRA, 16-bit"), "LoRA"),
            _size("qlora", _("QLoRA, 4-bit"), "QLoRA"),
            _size("full", _("All weights")),
            Column(key="software", kind="text", label=_("Software")),
        ),
    ),
    "llm-inference": Words(
        name=_("GPUs for LLM inference"),
        here=_("LLM inference"),
        caption=_("the maker's figures per GPU, and careful estimates of the model that one GPU serves"),
        marked=_("marked: least per token at the ceiling"),
        columns=(
            MEMORY,
            BANDWIDTH,
            Column(key="formats", kind="formats", label=_("Computes in"), unit=_("beside 16-bit")),
            _size("fp16", _("Serves in FP16"), "FP16"),
            _size("fp8", _("Serves in FP8"), "FP8"),
            _size("int4", _("Serves in INT4"), "INT4"),
            Column(key="ceiling", kind="count", label=_("Ceiling, 1 stream"), unit=_("tokens/s"), chip=_("Ceiling")),
            Column(
                key="per_million",
                kind="usd",
                label=_("1 M tokens at the ceiling"),
                chip=_("1 M tokens"),
                is_after_price=True,
            ),
        ),
    ),
    "image-video": Words(
        name=_("GPUs for images and video"),
        here=_("Images and video"),
        caption=_("the maker's dense figures per GPU, and how each model loads on one GPU"),
        marked=_("marked: least for the work"),
        columns=(
            MEMORY,
            BF16,
            FP8,
            Column(key="sdxl", kind="loading", label="SDXL"),
            Column(key="flux1", kind="loading", label="FLUX.1-dev"),
            Column(key="flux2", kind="loading", label="FLUX.2-dev"),
            Column(key="video", kind="loading", label=_("Video, 720p")),
        ),
    ),
    "rendering": Words(
        name=_("GPUs for 3D rendering and VFX"),
        here=_("Rendering and VFX"),
        caption=_("the maker's figures per GPU, and benchmark scores once they have been read"),
        marked=_("marked: the cheapest hour with ray-tracing cores"),
        columns=(
            MEMORY,
            ECC,
            Column(key="rt", kind="count", label=_("RT cores")),
            Column(key="fp32", kind="figure", label="FP32", unit="TFLOPS"),
            Column(key="score", kind="score", label=_("Blender median"), unit=_("samples/min"), chip="Blender"),
            Column(key="score_per_usd", kind="score", label=_("Score per USD"), chip=_("Per USD")),
        ),
        dividers={"without": (_("Works, poor value"), _("no ray-tracing cores"))},
    ),
    "science": Words(
        name=_("GPUs for science and simulation"),
        here=_("Science"),
        caption=_("the maker's figures per GPU, double precision first"),
        marked=_("marked: least for double precision"),
        columns=(
            Column(key="vector", kind="figure", label=_("FP64, vector"), unit="TFLOPS", chip="FP64"),
            Column(key="matrix", kind="figure", label=_("FP64, matrix"), unit="TFLOPS", chip=_("Matrix")),
            BANDWIDTH,
            MEMORY,
            ECC,
            LINK,
            Column(key="mig", kind="yes_no", label="MIG"),
            Column(
                key="per_fp64",
                kind="usd_fine",
                label=_("FP64 TFLOPS for 1 h"),
                chip=_("Per TFLOPS"),
                is_after_price=True,
            ),
        ),
        dividers={"warned": (_("Check twice"), _("little or no double precision"))},
    ),
}
