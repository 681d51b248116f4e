"""Sizing's addresses below `/api/v1/`."""

from django.urls import path

from sizing.api import EstimateCall

urlpatterns = [path("sizing/estimate/", EstimateCall.as_view(), name="api-estimate")]
