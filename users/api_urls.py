"""Calls about an organisation's webhooks, below `/api/v1/`."""

from django.urls import path

from users.api.webhooks import (
    DeliveryAgain,
    DeliveryList,
    EndpointDetail,
    EndpointList,
    EndpointSecret,
    EndpointTest,
)

urlpatterns = [
    path("webhooks/", EndpointList.as_view(), name="api-webhooks"),
    path("webhooks/<uuid:endpoint_id>/", EndpointDetail.as_view(), name="api-webhook"),
    path("webhooks/<uuid:endpoint_id>/secret/", EndpointSecret.as_view(), name="api-webhook-secret"),
    path("webhooks/<uuid:endpoint_id>/test/", EndpointTest.as_view(), name="api-webhook-test"),
    path("webhooks/<uuid:endpoint_id>/deliveries/", DeliveryList.as_view(), name="api-webhook-deliveries"),
    path(
        "webhooks/<uuid:endpoint_id>/deliveries/<uuid:event_id>/again/",
        DeliveryAgain.as_view(),
        name="api-webhook-again",
    ),
]
