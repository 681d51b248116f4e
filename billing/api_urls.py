"""Calls about money, below `/api/v1/`."""

from django.urls import path

from billing.api.ledger import Ledger
from billing.api.topups import TopUpDetail, TopUpList, TopUpRefund
from billing.api.wallets import WalletList

urlpatterns = [
    path("topups/", TopUpList.as_view(), name="api-topups"),
    path("topups/<uuid:top_up_id>/", TopUpDetail.as_view(), name="api-topup"),
    path("topups/<uuid:top_up_id>/refund/", TopUpRefund.as_view(), name="api-topup-refund"),
    path("wallets/", WalletList.as_view(), name="api-wallets"),
    path("ledger/", Ledger.as_view(), name="api-ledger"),
]
