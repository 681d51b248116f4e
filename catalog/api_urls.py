"""The catalogue's addresses below `/api/v1/`."""

from django.urls import path

from catalog.api.clouds import CloudList
from catalog.api.gpu_names import GpuName
from catalog.api.gpus import GpuDetail, GpuList
from catalog.api.history import PriceHistory
from catalog.api.offers import OfferList
from catalog.api.prices import PriceList
from catalog.api.sources import SourceList

urlpatterns = [
    path("gpus/", GpuList.as_view(), name="api-gpus"),
    path("gpus/resolve/", GpuName.as_view(), name="api-gpu-name"),
    path("gpus/<slug:slug>/", GpuDetail.as_view(), name="api-gpu"),
    path("prices/", PriceList.as_view(), name="api-prices"),
    path("prices/<slug:slug>/history/", PriceHistory.as_view(), name="api-price-history"),
    path("offers/", OfferList.as_view(), name="api-offers"),
    path("clouds/", CloudList.as_view(), name="api-clouds"),
    path("sources/", SourceList.as_view(), name="api-sources"),
]
