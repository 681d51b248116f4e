"""Pages about money."""

from django.urls import URLPattern, path

from billing.views.operator import show_disputes, show_top_ups, try_event_again
from billing.views.operator_by_hand import settle_movement, settle_payment
from billing.views.refund import refund
from billing.views.tax import check_vat_id, show_tax
from billing.views.top_up import ask_about_top_up, show_top_up, top_up
from billing.views.wallet import download_statement, show_wallet

app_name = "billing"

urlpatterns: list[URLPattern] = [
    path("wallet/", show_wallet, name="wallet"),
    path("wallet/statement.csv", download_statement, name="statement-csv"),
    path("wallet/top-up/", top_up, name="top-up"),
    path("wallet/top-up/<uuid:top_up_id>/", show_top_up, name="top-up-state"),
    path("wallet/top-up/<uuid:top_up_id>/ask/", ask_about_top_up, name="ask-about-top-up"),
    path("wallet/refund/", refund, name="refund"),
    path("account/tax/", show_tax, name="tax"),
    path("account/tax/check/", check_vat_id, name="check-vat-id"),
    path("operator/top-ups/", show_top_ups, name="operator-top-ups"),
    path("operator/payments/<slug:payment_id>/settle/", settle_payment, name="operator-settle-payment"),
    path("operator/movements/<int:movement_pk>/settle/", settle_movement, name="operator-settle-movement"),
    path("operator/messages/<int:event_pk>/try-again/", try_event_again, name="operator-try-again"),
    path("operator/disputes/", show_disputes, name="operator-disputes"),
]
