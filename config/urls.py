"""The root of all addresses. Pages carry their language as a prefix, English carries none."""

from django.conf.urls.i18n import i18n_patterns
from django.contrib import admin
from django.contrib.sitemaps.views import sitemap
from django.urls import include, path
from django.views.decorators.cache import cache_control

from config.health import healthz, readyz
from config.llms import llms_txt
from config.robots import robots_txt
from config.sitemaps import SITEMAPS

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("robots.txt", robots_txt, name="robots"),
    path("llms.txt", llms_txt, name="llms"),
    path("sitemap.xml", cache_control(public=True, max_age=3600)(sitemap), {"sitemaps": SITEMAPS}, name="sitemap"),
    path("admin/", admin.site.urls),
    path("api/", include("config.api_urls")),
    *i18n_patterns(
        path("", include("catalog.urls")),
        path("use-cases/", include("sizing.urls")),
        path("", include("users.urls")),
        path("", include("billing.urls")),
        prefix_default_language=False,
    ),
]
