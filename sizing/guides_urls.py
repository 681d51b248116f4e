"""The guides."""

from django.urls import path

from sizing.views.guides import show_guide

app_name = "guides"
urlpatterns = [path("<slug:slug>/", show_guide, name="guide")]
