"""Calls about the exchange, below `/api/v1/`."""

from django.urls import path

from marketplace.api.market import BookDetail, MarketList, TradeList
from marketplace.api.orders import OrderCancel, OrderDetail, OrderList, QuoteList
from marketplace.api.provider import (
    Application,
    EarningList,
    ListingDetail,
    ListingList,
    ListingPause,
    ListingResume,
    ProviderDetail,
    ServerEnrolToken,
    ServerList,
    SoldRentalList,
)
from marketplace.api.rentals import RentalDetail, RentalList, RentalStop

urlpatterns = [
    path("market/", MarketList.as_view(), name="api-market"),
    path("market/<slug:slug>/book/", BookDetail.as_view(), name="api-book"),
    path("market/<slug:slug>/trades/", TradeList.as_view(), name="api-trades"),
    path("quotes/", QuoteList.as_view(), name="api-quotes"),
    path("orders/", OrderList.as_view(), name="api-orders"),
    path("orders/<uuid:order_id>/", OrderDetail.as_view(), name="api-order"),
    path("orders/<uuid:order_id>/cancel/", OrderCancel.as_view(), name="api-order-cancel"),
    path("rentals/", RentalList.as_view(), name="api-rentals"),
    path("rentals/<uuid:rental_id>/", RentalDetail.as_view(), name="api-rental"),
    path("rentals/<uuid:rental_id>/stop/", RentalStop.as_view(), name="api-rental-stop"),
    path("provider/", ProviderDetail.as_view(), name="api-provider"),
    path("provider/application/", Application.as_view(), name="api-provider-application"),
    path("provider/servers/", ServerList.as_view(), name="api-provider-servers"),
    path("provider/servers/<uuid:server_id>/enrol-token/", ServerEnrolToken.as_view(), name="api-provider-enrol-token"),
    path("provider/listings/", ListingList.as_view(), name="api-provider-listings"),
    path("provider/listings/<uuid:listing_id>/", ListingDetail.as_view(), name="api-provider-listing"),
    path("provider/listings/<uuid:listing_id>/pause/", ListingPause.as_view(), name="api-provider-listing-pause"),
    path("provider/listings/<uuid:listing_id>/resume/", ListingResume.as_view(), name="api-provider-listing-resume"),
    path("provider/earnings/", EarningList.as_view(), name="api-provider-earnings"),
    path("provider/rentals/", SoldRentalList.as_view(), name="api-provider-rentals"),
]
