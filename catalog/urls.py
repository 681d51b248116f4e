"""The catalogue's pages."""

from django.urls import path

from catalog.views.board import show_board
from catalog.views.clouds import list_clouds, show_cloud
from catalog.views.gpu import show_gpu
from catalog.views.gpus import list_gpus
from catalog.views.history import show_price_history
from catalog.views.sources import list_sources, show_method

app_name = "catalog"
urlpatterns = [
    path("", show_board, name="board"),
    path("gpus/", list_gpus, name="gpus"),
    path("gpus/<slug:slug>/", show_gpu, name="gpu"),
    path("prices/<slug:slug>/", show_price_history, name="price-history"),
    path("clouds/", list_clouds, name="clouds"),
    path("clouds/<slug:slug>/", show_cloud, name="cloud"),
    path("sources/", list_sources, name="sources"),
    path("method/", show_method, name="method"),
]
