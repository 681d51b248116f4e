"""GPUs: one row per rentable variant."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


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
