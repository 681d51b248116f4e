"""The catalogue's rows: GPUs, clouds, price sources, offers, and the best ask the exchange publishes."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import ClassVar, Self

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _
from uuid6 import uuid7


class Gpu(models.Model):
    """One rentable variant (SXM, PCIe and NVL are different products). Null = the maker does not publish it."""

    slug = models.SlugField(max_length=60, unique=True)
    vendor = models.CharField(max_length=40)
    name = models.CharField(max_length=100, unique=True)
    label = models.CharField(max_length=60, unique=True, help_text=_("Short name for tables, e.g. H100 SXM"))
    position = models.PositiveIntegerField(unique=True, help_text=_("Row in the data file: newest and largest first"))
    architecture = models.CharField(max_length=40)
    released = models.CharField(max_length=7, blank=True, help_text=_("Month announced, YYYY-MM"))
    form_factor = models.CharField(max_length=40)
    memory_gb = models.DecimalField(max_digits=7, decimal_places=2)
    memory_type = models.CharField(max_length=20, blank=True)
    memory_bandwidth_gb_s = models.DecimalField(max_digits=12, decimal_places=3, null=True, blank=True)
    bf16_dense_tflops = models.DecimalField(max_digits=12, decimal_places=3, null=True, blank=True)
    fp16_dense_tflops = models.DecimalField(max_digits=12, decimal_places=3, null=True, blank=True)
    tf32_dense_tflops = models.DecimalField(max_digits=12, decimal_places=3, null=True, blank=True)
    fp32_tflops = models.DecimalField(max_digits=12, decimal_places=3, null=True, blank=True)
    fp64_tflops = models.DecimalField(max_digits=12, decimal_places=3, null=True, blank=True)
    fp8_dense_tflops = models.DecimalField(max_digits=12, decimal_places=3, null=True, blank=True)
    int8_dense_tops = models.DecimalField(max_digits=12, decimal_places=3, null=True, blank=True)
    fp4_dense_tflops = models.DecimalField(max_digits=12, decimal_places=3, null=True, blank=True)
    nvlink_gb_s = models.DecimalField(max_digits=12, decimal_places=3, null=True, blank=True)
    interconnect = models.CharField(max_length=120, blank=True)
    max_gpus_per_board = models.PositiveSmallIntegerField(null=True, blank=True)
    tdp_w = models.PositiveIntegerField(null=True, blank=True)
    compute_capability = models.CharField(max_length=20, blank=True)
    mig = models.BooleanField(null=True, blank=True)
    rt_cores = models.BooleanField(null=True, blank=True)
    nvenc = models.PositiveSmallIntegerField(null=True, blank=True)
    ecc = models.BooleanField(null=True, blank=True)
    software_stack = models.CharField(max_length=40, blank=True)
    source_url = models.URLField(max_length=300, help_text=_("The maker's page that carries the figures"))
    second_source_url = models.URLField(max_length=300, blank=True)
    notes = models.TextField(blank=True)

    class Meta:
        constraints: ClassVar = [models.CheckConstraint(condition=Q(memory_gb__gt=0), name="gpu_memory_positive")]

    def __str__(self) -> str:
        return self.label


class Cloud(models.Model):
    """An outside company whose prices are compared."""

    slug = models.SlugField(max_length=40, unique=True)
    name = models.CharField(max_length=80, unique=True)
    website = models.URLField(max_length=200)

    def __str__(self) -> str:
        return self.name


# Titles of sources that are words; the others are names and the same in every language.
TITLES_IN_WORDS = {
    "Azure retail prices": _("Azure retail prices"),
    "Oracle Cloud price list": _("Oracle Cloud price list"),
    "Reference snapshot": _("Reference snapshot"),
    "SkyPilot catalogue": _("SkyPilot catalogue"),
}


class Source(models.Model):
    """The state of one price adapter, shown on `/sources/`."""

    class State(models.TextChoices):
        NEVER = "never", _("not read yet")
        FRESH = "ok", _("working")
        PARTLY = "partly", _("partly working")
        FAILING = "failing", _("failing")
        NEEDS_KEY = "needs_key", _("needs a key")

    name = models.SlugField(max_length=40, unique=True)
    title = models.CharField(max_length=80)
    homepage = models.URLField(max_length=200, blank=True)
    is_collector = models.BooleanField(default=False)
    adapter_version = models.CharField(max_length=20, blank=True)
    state = models.CharField(max_length=12, choices=State.choices, default=State.NEVER)
    interval_minutes = models.PositiveIntegerField(default=30)
    due_at = models.DateTimeField(null=True, blank=True)
    last_attempt_at = models.DateTimeField(null=True, blank=True)
    last_success_at = models.DateTimeField(null=True, blank=True)
    last_error = models.TextField(blank=True)
    replayed = models.BooleanField(default=False)

    def __str__(self) -> str:
        return self.title

    @property
    def title_in_words(self) -> str:
        """The title in the reader's language."""
        return str(TITLES_IN_WORDS.get(self.title, self.title))


class SourceDocument(models.Model):
    """One body of a source: what was last read, which address answered, and how to ask for changes only."""

    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="documents")
    key = models.CharField(max_length=60)
    url = models.URLField(max_length=400, blank=True)
    etag = models.CharField(max_length=200, blank=True)
    last_modified = models.CharField(max_length=60, blank=True)
    sha256 = models.CharField(max_length=64, blank=True)
    content_first_seen_at = models.DateTimeField(null=True, blank=True)
    read_at = models.DateTimeField(null=True, blank=True)
    last_error = models.TextField(blank=True)
    rows_read = models.PositiveIntegerField(default=0)
    held_back = models.PositiveIntegerField(default=0)
    unmapped = models.PositiveIntegerField(default=0)
    band_skipped = models.PositiveIntegerField(default=0, help_text=_("Prices without any median to compare with"))

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["source", "key"], name="document_once_per_source")]

    def __str__(self) -> str:
        return f"{self.source_id}/{self.key}"


class RawBody(models.Model):
    """A body exactly as read (zlib), kept when its content changed; the newest few per document stay."""

    document = models.ForeignKey(SourceDocument, on_delete=models.CASCADE, related_name="bodies")
    content_zlib = models.BinaryField()
    sha256 = models.CharField(max_length=64)
    fetched_at = models.DateTimeField()
    adapter_version = models.CharField(max_length=20)
    replayed = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"{self.document_id} {self.fetched_at:%Y-%m-%d %H:%M}"


class OfferQuerySet(models.QuerySet["Offer"]):
    """Filters with a meaning; tiers are functions of `now` (see `catalog.freshness`)."""

    def on_sale(self) -> Self:
        """Offers still in the last body read, not held back."""
        return self.filter(gone_at__isnull=True, held_back="", hidden_by_direct=False)

    def eligible(self) -> Self:
        """Offers that may enter bests and statistics: whole GPUs, not sold out, on hosts not marked unverified."""
        return self.on_sale().filter(is_whole=True, verified=True).exclude(availability="no")

    def dated(self, now: datetime) -> Self:
        """Tier `list`: a list price, or one the source itself dates more than 14 days back."""
        return self.filter(Q(is_list=True) | Q(priced_on__lt=(now - timedelta(days=14)).date()))

    def live(self, now: datetime) -> Self:
        """Fresh or warned: read within 12 hours, and not dated."""
        return self.filter(is_list=False, observed_at__gt=now - timedelta(hours=12)).filter(
            Q(priced_on__isnull=True) | Q(priced_on__gte=(now - timedelta(days=14)).date())
        )


class Offer(models.Model):
    """A price seen at a source, read-only. Whole-instance and per-GPU prices are stored as the source states them."""

    class MarketKind(models.TextChoices):
        ON_DEMAND = "on_demand", _("on-demand")
        SPOT = "spot", _("spot")
        RESERVED = "reserved", _("reserved")

    class Stock(models.TextChoices):
        YES = "yes", _("available")
        LOW = "low", _("scarce")
        NO = "no", _("sold out")
        UNKNOWN = "unknown", _("not told")

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="offers")
    document = models.ForeignKey(SourceDocument, on_delete=models.CASCADE, related_name="offers")
    cloud = models.ForeignKey(Cloud, on_delete=models.PROTECT, related_name="offers")
    gpu = models.ForeignKey(Gpu, on_delete=models.PROTECT, related_name="offers")
    gpu_name = models.CharField(max_length=100, help_text=_("As the source spells it"))
    instance_type = models.CharField(max_length=120)
    gpu_count = models.DecimalField(max_digits=9, decimal_places=4)
    is_whole = models.BooleanField(default=True, help_text=_("False for slices of a card: kept out of per-GPU bests"))
    price_usd_per_hour = models.DecimalField(max_digits=14, decimal_places=6)
    price_usd_per_gpu_hour = models.DecimalField(max_digits=14, decimal_places=6)
    currency = models.CharField(max_length=3, default="USD")
    price_in_currency_per_hour = models.DecimalField(max_digits=14, decimal_places=6)
    market = models.CharField(max_length=10, choices=MarketKind.choices)
    term_months = models.PositiveSmallIntegerField(null=True, blank=True)
    region = models.CharField(max_length=80, blank=True)
    zone = models.CharField(max_length=80, blank=True)
    country = models.CharField(max_length=2, blank=True)
    vcpus = models.DecimalField(max_digits=8, decimal_places=2, null=True, blank=True)
    ram_gb = models.DecimalField(max_digits=10, decimal_places=2, null=True, blank=True)
    disk_gb = models.DecimalField(max_digits=12, decimal_places=2, null=True, blank=True)
    interconnect = models.CharField(max_length=60, blank=True)
    billing_step_seconds = models.PositiveIntegerField(null=True, blank=True)
    availability = models.CharField(max_length=8, choices=Stock.choices, default=Stock.UNKNOWN)
    verified = models.BooleanField(default=True)
    is_list = models.BooleanField(default=False)
    url = models.URLField(max_length=400, blank=True)
    observed_at = models.DateTimeField()
    priced_on = models.DateField(null=True, blank=True)
    first_seen_at = models.DateTimeField()
    gone_at = models.DateTimeField(null=True, blank=True)
    held_back = models.CharField(max_length=200, blank=True, help_text=_("Why sanity keeps it out; blank = shown"))
    hidden_by_direct = models.BooleanField(default=False, help_text=_("A fresh direct source replaces this row"))

    objects: ClassVar[models.Manager["Offer"]] = OfferQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=[
                    "document",
                    "cloud",
                    "instance_type",
                    "gpu",
                    "gpu_count",
                    "region",
                    "zone",
                    "market",
                    "term_months",
                ],
                name="offer_once_per_document",
                nulls_distinct=False,
            ),
            models.CheckConstraint(condition=Q(gpu_count__gt=0), name="offer_gpu_count_positive"),
            models.CheckConstraint(condition=Q(price_usd_per_hour__gte=0), name="offer_price_not_negative"),
            models.CheckConstraint(
                condition=Q(market="reserved") | Q(term_months__isnull=True), name="offer_term_only_when_reserved"
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["gpu", "market", "price_usd_per_gpu_hour"],
                condition=Q(gone_at__isnull=True, held_back=""),
                name="offer_on_sale_by_gpu",
            ),
            models.Index(
                F("price_usd_per_gpu_hour"),
                F("id"),
                condition=Q(gone_at__isnull=True, held_back=""),
                name="offer_on_sale_by_price",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.instance_type} {self.price_usd_per_gpu_hour}"


class UnmappedName(models.Model):
    """The review queue: a GPU name that stays unclear. Nothing is guessed; an alias is added instead."""

    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="unmapped_names")
    cloud_slug = models.CharField(max_length=40)
    gpu_name = models.CharField(max_length=100)
    gpu_memory_gb = models.DecimalField(max_digits=9, decimal_places=2, null=True, blank=True)
    instance_type = models.CharField(max_length=120, blank=True)
    candidates = models.JSONField(default=list)
    rows = models.PositiveIntegerField(default=0)
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["source", "cloud_slug", "gpu_name", "gpu_memory_gb"], name="unmapped_once", nulls_distinct=False
            )
        ]

    def __str__(self) -> str:
        return self.gpu_name


class BestAsk(models.Model):
    """The exchange's best ask per GPU. Only the marketplace writes it; no row = nothing for sale here."""

    gpu = models.OneToOneField(Gpu, on_delete=models.CASCADE, primary_key=True, related_name="best_ask")
    price_usd_per_gpu_hour = models.DecimalField(max_digits=12, decimal_places=4)
    devices_available = models.PositiveIntegerField()
    observed_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(price_usd_per_gpu_hour__gt=Decimal(0)), name="best_ask_price_positive"),
            models.CheckConstraint(condition=Q(devices_available__gt=0), name="best_ask_devices_positive"),
        ]

    def __str__(self) -> str:
        return f"{self.gpu_id} {self.price_usd_per_gpu_hour}"


class CloudFact(models.Model):
    """What a cloud says of itself, with the page and the day it was read. A fact that was not found has no row."""

    class Fact(models.TextChoices):
        BILLING_STEP_SECONDS = "billing_step_seconds", _("Billing step")
        MINIMUM_SECONDS = "minimum_seconds", _("Minimum time")
        STOP_SEMANTICS = "stop_semantics", _("What a stop costs")
        PERSISTENT_VOLUMES = "persistent_volumes", _("Persistent volumes")
        EGRESS_USD_PER_GB = "egress_usd_per_gb", _("Outgoing traffic")
        MULTI_NODE = "multi_node", _("Several machines as one cluster")
        FABRIC = "fabric", _("Network between machines")
        SPOT_NOTICE_SECONDS = "spot_notice_seconds", _("Spot notice")
        HEADQUARTERS_COUNTRY = "headquarters_country", _("Headquarters")
        DOCS_URL = "docs_url", _("Documentation")
        API_URL = "api_url", _("API")

    class Stop(models.TextChoices):
        STORAGE_ONLY = "storage_only", _("storage only")
        FULL = "full", _("as if running")
        NO_STOP = "no_stop", _("no stop, delete only")
        DEPENDS = "depends", _("depends on the kind")

    YES = "yes"
    NO = "no"
    VARIES = "varies"

    cloud = models.ForeignKey(Cloud, on_delete=models.CASCADE, related_name="facts")
    fact = models.CharField(max_length=30, choices=Fact)
    value = models.CharField(
        max_length=200, help_text=_("As in the data file: a number, yes or no, a word, an address")
    )
    number = models.DecimalField(
        max_digits=14, decimal_places=6, null=True, blank=True, help_text=_("The value where it is a number")
    )
    note = models.CharField(max_length=300, blank=True)
    source_url = models.URLField(max_length=300)
    checked_on = models.DateField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["cloud", "fact"], name="cloud_fact_once")]

    def __str__(self) -> str:
        return f"{self.cloud_id} {self.fact}={self.value}"

    @property
    def typed_value(self) -> Decimal | bool | str | None:
        """The value as what it is: a number (None where it varies), an answer, or a text."""
        if self.number is not None or self.value == self.VARIES:
            return self.number
        return {self.YES: True, self.NO: False}.get(self.value, self.value)

    @property
    def stop_in_words(self) -> str:
        """What a stop costs, for the fact that says so."""
        return str(self.Stop(self.value).label)


class PriceSnapshot(models.Model):
    """The live prices of one GPU in one market as they stood in one UTC hour. Written once; the database refuses change.

    After 90 days the last one of each day stays. The exchange counts as one seller: its four prices are the best ask.
    """

    class Market(models.TextChoices):
        EXCHANGE = "exchange", _("exchange")
        ON_DEMAND = "on_demand", _("on-demand")
        SPOT = "spot", _("spot")
        RESERVED = "reserved", _("reserved")

    gpu = models.ForeignKey(Gpu, on_delete=models.PROTECT, related_name="price_snapshots", db_index=False)
    market = models.CharField(max_length=10, choices=Market)
    at = models.DateTimeField(help_text=_("The UTC hour, at its beginning"))
    min = models.DecimalField(max_digits=14, decimal_places=6)
    p25 = models.DecimalField(max_digits=14, decimal_places=6)
    median = models.DecimalField(max_digits=14, decimal_places=6)
    p75 = models.DecimalField(max_digits=14, decimal_places=6)
    offers = models.PositiveIntegerField(help_text=_("Clouds counted, each at its lowest price"))

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["gpu", "market", "at"], name="price_snapshot_once_an_hour"),
            models.CheckConstraint(
                condition=Q(min__gt=0, min__lte=F("p25"), p25__lte=F("median"), median__lte=F("p75")),
                name="price_snapshot_prices_ascend",
            ),
            models.CheckConstraint(condition=Q(offers__gt=0), name="price_snapshot_counts_something"),
        ]

    def __str__(self) -> str:
        return f"{self.gpu_id} {self.market} {self.at:%Y-%m-%d %H:%M}"


class SourceDay(models.Model):
    """How a source did on one UTC day: refreshes that read everything, a part, or nothing."""

    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="days")
    day = models.DateField()
    whole = models.PositiveIntegerField(default=0)
    partly = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["source", "day"], name="source_day_once")]

    def __str__(self) -> str:
        return f"{self.source_id} {self.day}"
