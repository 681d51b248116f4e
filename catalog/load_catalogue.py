"""Load the repository's GPUs, clouds and facts about clouds into the database.

Steps: read and check the files whole → one transaction: insert what is new, update what differs, drop what left its
file and is used by no other row; what is used stays and is reported. A second run changes nothing. An order of rows is
an order on the page: `position` counts the lines of `data/gpus.csv`. A blank cell means "not published", never zero.
"""

import csv
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.db.models import F, Value
from django.db.models.functions import Concat

from catalog.models import Cloud, CloudFact, Gpu
from catalog.models.clouds import terms_of

DATA = Path(__file__).resolve().parent / "data"
GPUS_FILE = "gpus.csv"
CLOUDS_FILE = "clouds.csv"
CLOUD_FACTS_FILE = "cloud_facts.csv"
# Where rows wait while others take their place; PositiveIntegerField ends at 2,147,483,647.
PARKED_FROM = 1_000_000_000

Cell = str | int | bool | Decimal | date | None
Row = TypeVar("Row", Gpu, Cloud)
FactKey = tuple[str, str]


class CatalogueInvalid(ValueError):
    """A data file is not what it must be; the message names file, line, row and column. Nothing was changed."""


@dataclass(frozen=True, kw_only=True)
class TableReport:
    """What happened to one table. `kept` are slugs that left the file, but which other rows still use."""

    created: int
    changed: int
    unchanged: int
    removed: tuple[str, ...]
    kept: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class LoadReport:
    """What one load did."""

    loaded_at: datetime
    gpus: TableReport
    clouds: TableReport
    cloud_facts: TableReport


def load_catalogue(*, now: datetime, data: Path = DATA) -> LoadReport:
    """Make the tables of GPUs, clouds and their facts say what the files in `data` say. Raises CatalogueInvalid."""
    gpus = read_gpus(data / GPUS_FILE)
    clouds = read_clouds(data / CLOUDS_FILE)
    facts = read_cloud_facts(data / CLOUD_FACTS_FILE, clouds={cloud.slug for cloud in clouds})
    for cloud in clouds:
        _set_terms(cloud, facts)
    with transaction.atomic():
        dropped = _dropped_facts(facts)
        return LoadReport(
            loaded_at=now,
            gpus=_stored(Gpu, gpus),
            clouds=_stored(Cloud, clouds),
            cloud_facts=_stored_facts(facts, removed=dropped),
        )


def read_gpus(path: Path) -> list[Gpu]:
    """Return the GPUs of the file, unsaved, with their positions. Raises CatalogueInvalid."""
    read = [
        (where, Gpu(position=position, **values))
        for position, (where, values) in enumerate(_rows(path, GPU_COLUMNS), start=1)
    ]
    return _valid(read, unique=("slug", "name", "label"))


def read_clouds(path: Path) -> list[Cloud]:
    """Return the clouds of the file, unsaved. Raises CatalogueInvalid."""
    read = [(where, Cloud(**values)) for where, values in _rows(path, CLOUD_COLUMNS)]
    return _valid(read, unique=("slug", "name"))


def read_cloud_facts(path: Path, *, clouds: Collection[str]) -> dict[FactKey, CloudFact]:
    """Return the facts of the file by cloud and name, unsaved and without their cloud. Raises CatalogueInvalid."""
    facts: dict[FactKey, CloudFact] = {}
    for where, values in _rows(path, CLOUD_FACT_COLUMNS):
        cloud, fact = values.pop("cloud"), values["fact"]
        if cloud not in clouds:
            raise CatalogueInvalid(f"{where}, column cloud: {cloud!r} is not in {CLOUDS_FILE}")
        if (cloud, fact) in facts:
            raise CatalogueInvalid(f"{where}, column fact: {fact!r} of {cloud!r} stands twice")
        number = _cell(where, "value", values["value"], _Column("number", FACT_VALUES[fact]))
        assert number is None or isinstance(number, Decimal)
        row = CloudFact(number=number, **values)
        _check_fields(where, row, exclude={"cloud"})
        facts[cloud, fact] = row
    return facts


def _set_terms(cloud: Cloud, facts: Mapping[FactKey, CloudFact]) -> None:
    for column, value in terms_of({name: fact for (slug, name), fact in facts.items() if slug == cloud.slug}).items():
        setattr(cloud, column, value)


def _text(cell: str) -> str:
    return cell


def _needed(cell: str) -> str:
    if not cell:
        raise ValueError("must not be blank")
    return cell


def _number(cell: str) -> Decimal | None:
    if not cell:
        return None
    try:
        number = Decimal(cell)
    except InvalidOperation as error:
        raise ValueError(f"{cell!r} is not a number") from error
    if not number.is_finite() or number < 0:
        raise ValueError(f"{cell!r} is not a number of zero or more")
    return number


def _size(cell: str) -> Decimal:
    number = _number(cell)
    if not number:
        raise ValueError(f"{cell!r} is not a number above zero")
    return number


def _whole(cell: str) -> int | None:
    if cell and not (cell.isascii() and cell.isdecimal()):
        raise ValueError(f"{cell!r} is not a whole number")
    return int(cell) if cell else None


def _yes_or_no(cell: str) -> bool | None:
    if cell not in ("yes", "no", ""):
        raise ValueError(f"{cell!r} is neither yes, no nor blank")
    return cell == "yes" if cell else None


def _month(cell: str) -> str:
    try:
        return f"{datetime.strptime(cell, '%Y-%m'):%Y-%m}" if cell else ""  # noqa: DTZ007 (a month has no zone)
    except ValueError as error:
        raise ValueError(f"{cell!r} is not a month as YYYY-MM") from error


def _day(cell: str) -> date:
    try:
        return date.fromisoformat(cell)
    except ValueError as error:
        raise ValueError(f"{cell!r} is not a day as YYYY-MM-DD") from error


def _fact(cell: str) -> str:
    if cell not in CloudFact.Fact.values:
        raise ValueError(f"{cell!r} is not a fact that is kept")
    return cell


def _seconds(cell: str) -> Decimal | None:
    whole = _whole(cell)
    return None if whole is None else Decimal(whole)


def _one_of(*words: str) -> Callable[[str], None]:
    def read(cell: str) -> None:
        if cell not in words:
            raise ValueError(f"{cell!r} is not one of {', '.join(words)}")

    return read


def _price_or_varies(cell: str) -> Decimal | None:
    return None if cell == CloudFact.VARIES else _number(cell)


def _country(cell: str) -> None:
    if not (len(cell) == 2 and cell.isascii() and cell.isalpha() and cell.isupper()):
        raise ValueError(f"{cell!r} is not a country as two capital letters")


def _address(cell: str) -> None:
    if not cell.startswith("https://"):
        raise ValueError(f"{cell!r} is not an https address")


def _words(cell: str) -> None:
    """Take any text."""


@dataclass(frozen=True)
class _Column:
    """Where a column's cells go, and how they are read; `read` raises ValueError with what is wrong."""

    field: str
    read: Callable[[str], Cell]


def _same_named(read: Callable[[str], Cell], *names: str) -> dict[str, _Column]:
    return {name: _Column(name, read) for name in names}


GPU_COLUMNS = {
    **_same_named(_needed, "slug", "vendor", "name", "label", "architecture", "form_factor", "source_url"),
    **_same_named(_text, "memory_type", "interconnect", "compute_capability", "software_stack"),
    **_same_named(_text, "second_source_url", "notes"),
    **_same_named(_size, "memory_gb"),
    **_same_named(_number, "memory_bandwidth_gb_s", "bf16_dense_tflops", "fp16_dense_tflops", "tf32_dense_tflops"),
    **_same_named(_number, "fp32_tflops", "fp64_tflops", "fp8_dense_tflops", "int8_dense_tops", "fp4_dense_tflops"),
    **_same_named(_number, "nvlink_gb_s"),
    **_same_named(_whole, "max_gpus_per_board", "tdp_w", "nvenc"),
    **_same_named(_yes_or_no, "mig", "rt_cores", "ecc"),
    "release_date": _Column("released", _month),
}
CLOUD_COLUMNS = _same_named(_needed, "slug", "name", "website")
CLOUD_FACT_COLUMNS = {
    **_same_named(_needed, "cloud", "value", "source_url"),
    **_same_named(_fact, "fact"),
    **_same_named(_text, "note"),
    **_same_named(_day, "checked_on"),
}
# How the value of each fact is read: the number it is, None where it is none; ValueError where it is out of place.
FACT_VALUES: dict[str, Callable[[str], Decimal | None]] = {
    CloudFact.Fact.BILLING_STEP_SECONDS: _seconds,
    CloudFact.Fact.MINIMUM_SECONDS: _seconds,
    CloudFact.Fact.STOP_SEMANTICS: _one_of(*CloudFact.Stop.values),
    CloudFact.Fact.PERSISTENT_VOLUMES: _one_of(CloudFact.YES, CloudFact.NO),
    CloudFact.Fact.STORAGE_USD_PER_GB_MONTH: _price_or_varies,
    CloudFact.Fact.STORAGE_MIB_S: _number,
    CloudFact.Fact.EGRESS_USD_PER_GB: _price_or_varies,
    CloudFact.Fact.MULTI_NODE: _one_of(CloudFact.YES, CloudFact.NO),
    CloudFact.Fact.FABRIC: _words,
    CloudFact.Fact.SPOT_NOTICE_SECONDS: _seconds,
    CloudFact.Fact.HEADQUARTERS_COUNTRY: _country,
    CloudFact.Fact.DOCS_URL: _address,
    CloudFact.Fact.API_URL: _address,
}


def _rows(path: Path, columns: Mapping[str, _Column]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield where each row stands ("gpus.csv line 7 (h100-sxm)") and its values by model field."""
    with path.open(newline="", encoding="utf-8") as lines:
        reader = csv.DictReader(lines, restkey="", restval=None, strict=True)
        _check_header(path.name, reader.fieldnames or (), columns)
        for row in reader:
            where = f"{path.name} line {reader.line_num} ({next(iter(row.values()))})"
            if "" in row or None in row.values():
                raise CatalogueInvalid(f"{where} has not as many cells as the header")
            yield where, {column.field: _cell(where, name, row[name], column) for name, column in columns.items()}


def _check_header(file_name: str, header: Sequence[str], columns: Mapping[str, _Column]) -> None:
    if unknown := [name for name in header if name not in columns]:
        raise CatalogueInvalid(f"{file_name}: unknown column {unknown[0]!r}")
    if missing := [name for name in columns if name not in header]:
        raise CatalogueInvalid(f"{file_name}: column {missing[0]!r} is missing")
    if twice := [name for name, times in Counter(header).items() if times > 1]:
        raise CatalogueInvalid(f"{file_name}: column {twice[0]!r} stands twice")


def _cell(where: str, name: str, text: str, column: _Column) -> Cell:
    try:
        return column.read(text.strip())
    except ValueError as error:
        raise CatalogueInvalid(f"{where}, column {name}: {error}") from error


def _valid(read: Sequence[tuple[str, Row]], *, unique: Sequence[str]) -> list[Row]:
    """Return the rows if each fits its model's fields and none repeats another in a unique one."""
    seen: dict[tuple[str, Any], str] = {}
    for where, row in read:
        _check_fields(where, row)
        for field in unique:
            value = getattr(row, field)
            if (other := seen.setdefault((field, value), where)) != where:
                raise CatalogueInvalid(f"{where}, column {field}: {value!r} stands in {other} too")
    return [row for _, row in read]


def _check_fields(where: str, row: models.Model, *, exclude: Collection[str] = ()) -> None:
    try:
        row.clean_fields(exclude=exclude)
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise CatalogueInvalid(f"{where}, column {field}: {messages[0]}") from error


def _stored(model: type[Row], rows: Sequence[Row]) -> TableReport:
    """Write the difference between file and table. Locks the table's rows; call inside a transaction."""
    known = {row.slug: row for row in model.objects.select_for_update()}
    absent = known.keys() - {row.slug for row in rows}
    kept = [row for slug, row in known.items() if slug in absent and _is_used(row)]
    removed = sorted(absent - {row.slug for row in kept})
    model.objects.filter(slug__in=removed).delete()
    changed = [(known[row.slug], row) for row in rows if row.slug in known and _differs(known[row.slug], row)]
    _park(model, [old.pk for old, _ in changed] + [row.pk for row in kept])
    for old, new in changed:
        new.pk = old.pk
        new.save(force_update=True)
    created = [row for row in rows if row.slug not in known]
    model.objects.bulk_create(created)
    _save_behind(kept, len(rows))
    return TableReport(
        created=len(created),
        changed=len(changed),
        unchanged=len(rows) - len(created) - len(changed),
        removed=tuple(removed),
        kept=tuple(sorted(row.slug for row in kept)),
    )


def _is_used(row: Gpu | Cloud) -> bool:
    """Tell whether any row of another table points to this one."""
    relations = row._meta.related_objects
    return any(
        relation.related_model._base_manager.filter(**{relation.field.name: row.pk}).exists() for relation in relations
    )


def _differs(old: models.Model, new: models.Model) -> bool:
    fields = [field.attname for field in old._meta.concrete_fields if not field.primary_key]
    return any(getattr(old, field) != getattr(new, field) for field in fields)


def _park(model: type[Gpu] | type[Cloud], keys: Sequence[int]) -> None:
    """Free the unique values of rows about to change, so that two rows may swap a name or a place."""
    parked: dict[str, Any] = {}
    for field in model._meta.concrete_fields:
        if field.unique and not field.primary_key and field.name != "slug":
            is_text = isinstance(field, models.CharField)
            parked[field.name] = Concat(Value("~"), F("slug")) if is_text else F("pk") + PARKED_FROM
    model._default_manager.filter(pk__in=keys).update(**parked)


def _save_behind(kept: Sequence[Gpu | Cloud], last_position: int) -> None:
    """Save rows that left the file again, GPUs in their old order behind the file's last."""
    if gpus := sorted((row for row in kept if isinstance(row, Gpu)), key=lambda gpu: gpu.position):
        for position, gpu in enumerate(gpus, start=last_position + 1):
            gpu.position = position
    for row in kept:
        row.save(force_update=True)


def _dropped_facts(facts: Collection[FactKey]) -> list[FactKey]:
    """Delete facts that left the file, before their clouds: a fact alone keeps no cloud."""
    gone = [row for row in CloudFact.objects.select_related("cloud") if (row.cloud.slug, row.fact) not in facts]
    CloudFact.objects.filter(pk__in=[row.pk for row in gone]).delete()
    return sorted((row.cloud.slug, row.fact) for row in gone)


def _stored_facts(facts: Mapping[FactKey, CloudFact], *, removed: Sequence[FactKey]) -> TableReport:
    """Write the facts that are new or differ."""
    clouds = {cloud.slug: cloud for cloud in Cloud.objects.all()}
    known = {(row.cloud.slug, row.fact): row for row in CloudFact.objects.select_related("cloud")}
    for (slug, _), row in facts.items():
        row.cloud = clouds[slug]
    changed = [(known[key], row) for key, row in facts.items() if key in known and _differs(known[key], row)]
    for old, new in changed:
        new.pk = old.pk
        new.save(force_update=True)
    created = [row for key, row in facts.items() if key not in known]
    CloudFact.objects.bulk_create(created)
    return TableReport(
        created=len(created),
        changed=len(changed),
        unchanged=len(facts) - len(created) - len(changed),
        removed=tuple(f"{slug} {fact}" for slug, fact in removed),
        kept=(),
    )
