"""All addresses below `/api/`; what is not one of them is answered with a problem document too."""

from django.urls import include, path, re_path

from common.problems import UnknownPath
from config.api_docs import Schema, show_docs

urlpatterns = [
    path("v1/schema/", Schema.as_view(), name="api-schema"),
    path("v1/", include("catalog.api_urls")),
    path("v1/", include("sizing.api_urls")),
    path("v1/", include("billing.api_urls")),
    path("v1/", include("marketplace.api_urls")),
    path("v1/", include("users.api_urls")),
    path("docs/", show_docs, name="api-docs"),
    re_path(r"", UnknownPath.as_view()),  # matches whatever is left, line breaks too
]
