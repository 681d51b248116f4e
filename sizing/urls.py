"""The use-case pages."""

from django.urls import path

from sizing.use_cases import USE_CASES
from sizing.views.use_cases import show_use_case

app_name = "sizing"
urlpatterns = [path(f"{slug}/", show_use_case, {"slug": slug}, name=slug) for slug in USE_CASES]
