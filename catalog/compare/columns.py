"""The columns of the comparison: what each says of a line, and what it sorts by in the database and beside it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

from django.db.models import ExpressionWrapper, F, Func
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from catalog.compare.filters import billing_step, total_memory
from catalog.compare.lines import Line
from catalog.models import Cloud

Figure = Decimal | int | datetime
Kind = Literal["text", "figure", "seconds", "price", "usd", "answer", "country", "seen", "market", "notice", "minimum"]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PRICE, JOB = "price_usd_per_gpu_hour", "job"


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column. `sort` is the expression it sorts by, None where it is no number; `is_shown` unless chosen otherwise."""

    name: str
    label: str | Promise
    kind: Kind
    value: Callable[[Line], Any]
    unit: str | Promise = ""
    sort: "F | Func | ExpressionWrapper[Any] | None" = None
    is_nullable: bool = True
    largest_first: bool = True
    is_shown: bool = False


def _of_gpu(name: str, label: str | Promise, unit: str | Promise, *, is_shown: bool = False) -> Column:
    return Column(
        name=name,
        label=label,
        unit=unit,
        kind="figure",
        value=lambda line: getattr(line.gpu, name),
        sort=F(f"gpu__{name}"),
        is_shown=is_shown,
    )


def _of_offer(name: str, label: str | Promise, unit: str | Promise, *, is_shown: bool = False) -> Column:
    return Column(
        name=name,
        label=label,
        unit=unit,
        kind="figure",
        value=lambda line: getattr(line, name),
        sort=F(name),
        is_shown=is_shown,
    )


def _of_cloud(
    name: str, label: str | Promise, kind: Kind, *, ours: Any, unit: str | Promise = "", **more: Any
) -> Column:
    """A column of what a cloud says of itself; `ours` is what holds for the exchange."""

    def value(line: Line) -> Any:
        return ours if line.cloud is None else getattr(line.cloud, name)

    field = Cloud._meta.get_field(name).get_internal_type()
    is_number = field in ("PositiveIntegerField", "DecimalField")
    return Column(
        name=name,
        label=label,
        unit=unit,
        kind=kind,
        value=value,
        sort=F(f"cloud__{name}") if is_number else None,
        **more,
    )


def _region(line: Line) -> str | Promise:
    """Return where it stands; the servers behind an ask of ours are listed in its book."""
    return _("see the book") if line.is_ours else line.region


_EVERY_COLUMN = (
    Column(name="market", label=_("Type"), kind="market", value=lambda line: line, is_shown=True),
    _of_offer("gpu_count", _("GPUs"), "", is_shown=True),
    _of_gpu("memory_gb", _("Memory"), _("GB each")),
    Column(
        name="total_memory_gb",
        label=_("Memory"),
        unit=_("GB in all"),
        kind="figure",
        value=lambda line: line.total_memory_gb,
        sort=total_memory(),
        is_shown=True,
    ),
    _of_gpu("memory_bandwidth_gb_s", _("Bandwidth"), _("GB/s"), is_shown=True),
    _of_gpu("fp64_tflops", _("FP64"), _("TFLOPS")),
    _of_gpu("tf32_dense_tflops", _("TF32"), _("TFLOPS")),
    _of_gpu("bf16_dense_tflops", _("BF16"), _("TFLOPS"), is_shown=True),
    _of_gpu("fp8_dense_tflops", _("FP8"), _("TFLOPS")),
    _of_gpu("fp4_dense_tflops", _("FP4"), _("TFLOPS")),
    _of_gpu("nvlink_gb_s", _("Link"), _("GB/s")),
    Column(name="interconnect", label=_("Interconnect"), kind="text", value=lambda line: line.interconnect),
    _of_offer("vcpus", _("vCPUs"), ""),
    _of_offer("ram_gb", _("RAM"), _("GB")),
    _of_offer("disk_gb", _("Disk"), _("GB")),
    Column(name="region", label=_("Region"), kind="text", value=_region, is_shown=True),
    Column(name="country", label=_("Country"), kind="country", value=lambda line: line.country),
    Column(
        name="billing_step_seconds",
        label=_("Billed by"),
        kind="seconds",
        value=lambda line: line.billing_step_seconds,
        sort=billing_step(),
        largest_first=False,
        is_shown=True,
    ),
    _of_cloud("minimum_seconds", _("Minimum"), "minimum", ours=0, largest_first=False),
    _of_cloud("egress_usd_per_gb", _("Traffic out"), "usd", ours=Decimal(0), unit=_("USD/GB"), largest_first=False),
    _of_cloud("persistent_volumes", _("Volumes"), "answer", ours=False),
    _of_cloud("volume_survives_stop", _("Survive a stop"), "answer", ours=False),
    _of_cloud(
        "storage_usd_per_gb_month",
        _("Volume price"),
        "usd",
        ours=None,
        unit=_("USD/GB and month"),
        largest_first=False,
    ),
    _of_cloud("storage_mib_s", _("Volume speed"), "figure", ours=None, unit=_("MiB/s")),
    _of_cloud("spot_notice_seconds", _("Spot notice"), "notice", ours=None),
    _of_cloud("multi_node", _("Cluster"), "answer", ours=None),
    _of_cloud("fabric", _("Fabric"), "text", ours=""),
    Column(
        name="term_months", label=_("Term"), unit=_("months"), kind="figure", value=lambda line: line.term_months,
        sort=F("term_months"), largest_first=False,
    ),
    Column(name="availability", label=_("Free"), kind="text", value=lambda line: line.stock_in_words, is_shown=True),
    Column(
        name="observed_at",
        label=_("Seen"),
        kind="seen",
        value=lambda line: line.observed_at,
        sort=F("observed_at"),
        is_nullable=False,
    ),
    Column(
        name="price_usd_per_hour",
        label=_("Machine"),
        unit=_("per hour"),
        kind="price",
        value=lambda line: line.price_usd_per_hour,
        sort=F("price_usd_per_hour"),
        is_nullable=False,
        largest_first=False,
    ),
    Column(
        name=PRICE,
        label=_("Price"),
        unit=_("per GPU-hour"),
        kind="price",
        value=lambda line: line.price_usd_per_gpu_hour,
        sort=F(PRICE),
        is_nullable=False,
        largest_first=False,
        is_shown=True,
    ),
)  # fmt: skip
COLUMNS: Mapping[str, Column] = {column.name: column for column in _EVERY_COLUMN}
JOB_COLUMN = Column(
    name=JOB,
    label=_("My job"),
    kind="price",
    value=lambda line: None if line.cost is None else line.cost.total_usd,
    largest_first=False,
)
SORTABLE = tuple(name for name, column in COLUMNS.items() if column.sort is not None)


@dataclass(frozen=True, kw_only=True)
class Sorting:
    """By which column, which way. Lines without the figure come last both ways, equal ones by their id."""

    column: Column
    is_descending: bool = False

    @classmethod
    def named(cls, text: str) -> "Sorting":
        """Return the sorting written as `sort=`: a column, a minus before it for largest first."""
        name = text.removeprefix("-")
        column = JOB_COLUMN if name == JOB else COLUMNS[name]
        return cls(column=column, is_descending=text.startswith("-"))

    @property
    def name(self) -> str:
        """As it is written in `sort=`."""
        return f"-{self.column.name}" if self.is_descending else self.column.name

    def key(self, line: Line) -> tuple[bool, Decimal, int]:
        """Return what puts lines in the order that the database has."""
        value = self.column.value(line)
        sign = -1 if self.is_descending else 1
        return value is None, sign * _number(value), sign * line.id.int


def _number(value: Figure | None) -> Decimal:
    if isinstance(value, datetime):
        return Decimal((value - _EPOCH) // timedelta(microseconds=1))
    return Decimal(0 if value is None else value)
