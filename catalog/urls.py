"""The catalogue's pages."""

from django.urls import path

from catalog.views.alerts import end_alert_by_link, end_own_alert, show_alerts
from catalog.views.board import show_board
from catalog.views.clouds import list_clouds, show_cloud
from catalog.views.compare import compare_offers, download_offers
from catalog.views.feeds import show_price_changes
from catalog.views.gpu import show_gpu
from catalog.views.gpus import list_gpus
from catalog.views.history import show_price_history
from catalog.views.link_pictures import draw_gpu, draw_history
from catalog.views.prices import show_prices
from catalog.views.sources import list_sources, show_method

app_name = "catalog"
urlpatterns = [
    path("", show_board, name="board"),
    path("gpus/", list_gpus, name="gpus"),
    path("gpus/<slug:slug>/", show_gpu, name="gpu"),
    path("prices/", show_prices, name="prices"),
    path("prices/<slug:slug>/", show_price_history, name="price-history"),
    path("feeds/prices/", show_price_changes, name="prices-feed"),
    path("feeds/<slug:slug>/", show_price_changes, name="gpu-feed"),
    path("og/gpus/<slug:slug>.png", draw_gpu, name="gpu-picture"),
    path("og/prices/<slug:slug>.png", draw_history, name="history-picture"),
    path("alerts/", show_alerts, name="alerts"),
    path("alerts/<uuid:alert_id>/end/", end_own_alert, name="end-alert"),
    path("alerts/link/<str:token>/", end_alert_by_link, name="end-alert-by-link"),
    path("clouds/", list_clouds, name="clouds"),
    path("clouds/<slug:slug>/", show_cloud, name="cloud"),
    path("compare/", compare_offers, name="compare"),
    path("compare/offers.csv", download_offers, name="compare-csv"),
    path("sources/", list_sources, name="sources"),
    path("method/", show_method, name="method"),
]
