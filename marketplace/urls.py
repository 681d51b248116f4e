"""Pages of the exchange."""

from django.urls import URLPattern, path

from marketplace.views.book import show_book, show_live_book
from marketplace.views.feeds import download_skypilot_csv
from marketplace.views.market import list_markets
from marketplace.views.operator import (
    decide_server,
    list_applications,
    list_servers,
    show_breaches,
    show_operator,
)
from marketplace.views.operator import show_application as show_operator_application
from marketplace.views.operator_records import (
    list_listings,
    rule_on_price,
    show_audit,
    show_prices,
    stop_listing,
)
from marketplace.views.operator_rentals import show_rentals
from marketplace.views.order import cancel, show_order
from marketplace.views.orders import list_orders
from marketplace.views.provider import show_application, show_provider, show_terms, take_back
from marketplace.views.provider_bank import show_bank_account
from marketplace.views.provider_earnings import download_earnings, show_earnings
from marketplace.views.provider_servers import (
    issue_token,
    list_own_servers,
    new_server,
    pause,
    resume,
    show_server,
    withdraw,
)
from marketplace.views.providers import show_seller, show_selling
from marketplace.views.rental import show_live_rental, show_rental, stop
from marketplace.views.rentals import list_rentals
from marketplace.views.ticket import order, place, preview

app_name = "marketplace"

urlpatterns: list[URLPattern] = [
    path("market/", list_markets, name="market"),
    path("market/<slug:slug>/", show_book, name="book"),
    path("market/<slug:slug>/live/", show_live_book, name="live-book"),
    path("market/<slug:slug>/order/", order, name="ticket"),
    path("market/<slug:slug>/order/preview/", preview, name="preview"),
    path("market/<slug:slug>/order/place/", place, name="place"),
    path("feeds/skypilot.csv", download_skypilot_csv, name="skypilot-csv"),
    path("orders/", list_orders, name="orders"),
    path("orders/<uuid:order_id>/", show_order, name="order"),
    path("orders/<uuid:order_id>/cancel/", cancel, name="cancel-order"),
    path("rentals/", list_rentals, name="rentals"),
    path("rentals/<uuid:rental_id>/", show_rental, name="rental"),
    path("rentals/<uuid:rental_id>/live/", show_live_rental, name="live-rental"),
    path("rentals/<uuid:rental_id>/stop/", stop, name="stop-rental"),
    path("operator/rentals/", show_rentals, name="operator-rentals"),
    path("providers/", show_selling, name="selling"),
    path("providers/<int:organisation_id>/", show_seller, name="seller"),
    path("provider/", show_provider, name="provider"),
    path("provider/application/", show_application, name="provider-application"),
    path("provider/application/take-back/", take_back, name="provider-take-back"),
    path("provider/bank-account/", show_bank_account, name="provider-bank-account"),
    path("provider/terms/", show_terms, name="provider-terms"),
    path("provider/servers/", list_own_servers, name="provider-servers"),
    path("provider/servers/new/", new_server, name="provider-new-server"),
    path("provider/servers/<uuid:server_id>/", show_server, name="provider-server"),
    path("provider/servers/<uuid:server_id>/enrol-token/", issue_token, name="provider-enrol-token"),
    path("provider/servers/<uuid:server_id>/pause/", pause, name="provider-pause"),
    path("provider/servers/<uuid:server_id>/resume/", resume, name="provider-resume"),
    path("provider/servers/<uuid:server_id>/withdraw/", withdraw, name="provider-withdraw"),
    path("provider/earnings/", show_earnings, name="provider-earnings"),
    path("provider/earnings.csv", download_earnings, name="provider-earnings-csv"),
    path("operator/", show_operator, name="operator"),
    path("operator/applications/", list_applications, name="operator-applications"),
    path("operator/applications/<int:provider_id>/", show_operator_application, name="operator-application"),
    path("operator/servers/", list_servers, name="operator-servers"),
    path("operator/servers/<uuid:server_id>/decide/", decide_server, name="operator-decide-server"),
    path("operator/listings/", list_listings, name="operator-listings"),
    path("operator/listings/<uuid:listing_id>/pause/", stop_listing, name="operator-stop-listing"),
    path("operator/audit/", show_audit, name="operator-audit"),
    path("operator/prices/", show_prices, name="operator-prices"),
    path("operator/prices/<int:name_pk>/rule/", rule_on_price, name="operator-rule-on-price"),
    path("operator/breaches/", show_breaches, name="operator-breaches"),
]
