"""Price sources: their state, the bodies they read, and the names nobody could resolve."""

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

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
