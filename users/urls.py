"""Pages about people, their organisation and its keys."""

from django.urls import URLPattern

app_name = "users"

urlpatterns: list[URLPattern] = []
