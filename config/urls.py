"""The root of all addresses. Pages carry their language as a prefix, English carries none."""

from django.conf.urls.i18n import i18n_patterns
from django.contrib import admin
from django.urls import include, path

from config.health import healthz, readyz

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("admin/", admin.site.urls),
    path("api/", include("config.api_urls")),
    *i18n_patterns(
        path("", include("catalog.urls")),
        path("use-cases/", include("sizing.urls")),
        prefix_default_language=False,
    ),
]
