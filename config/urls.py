"""The root of all addresses. Pages carry their language as a prefix, English carries none."""

from allauth.account.decorators import secure_admin_login
from django.conf import settings
from django.conf.urls.i18n import i18n_patterns
from django.contrib import admin
from django.contrib.sitemaps.views import sitemap
from django.urls import include, path
from django.views.decorators.cache import cache_control

from billing.views.stripe_webhook import stripe_webhook
from config.demo_mail import list_mails, show_mail
from config.health import healthz, readyz
from config.llms import llms_txt
from config.robots import robots_txt
from config.sitemaps import SITEMAPS
from config.status import show_status

admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]  # one way to sign in, for all
handler429 = "config.too_many.too_many_requests"

demo_patterns = [
    path("demo/mail/", list_mails, name="demo-mails"),
    path("demo/mail/<str:name>/", show_mail, name="demo-mail"),
]
urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("robots.txt", robots_txt, name="robots"),
    path("llms.txt", llms_txt, name="llms"),
    path("sitemap.xml", cache_control(public=True, max_age=3600)(sitemap), {"sitemaps": SITEMAPS}, name="sitemap"),
    path("admin/", admin.site.urls),
    path("api/", include("config.api_urls")),
    path("webhooks/stripe/", stripe_webhook, name="stripe-webhook"),
    *i18n_patterns(
        path("gpus/", include("sizing.comparison_urls")),
        path("guides/", include("sizing.guides_urls")),
        path("", include("catalog.urls")),
        path("use-cases/", include("sizing.urls")),
        path("sizing/", include("sizing.calculator_urls")),
        path("account/", include("users.account_urls")),
        path("status/", show_status, name="status"),
        path("", include("users.urls")),
        path("", include("billing.urls")),
        path("", include("marketplace.urls")),
        *(demo_patterns if settings.IS_DEMO else []),
        prefix_default_language=False,
    ),
]
