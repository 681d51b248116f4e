"""The ledger's rows, and the payments behind them."""

from billing.models.ledger import Account, BooksStop, Hold, HoldMovement, JournalEntry, Posting
from billing.models.tax import TaxDecision, TaxDetails, VatCheck
from billing.models.topups import Dispute, GatewayCustomer, GatewayEvent, GatewayTransaction, Refund, TopUp

__all__ = [
    "Account",
    "BooksStop",
    "Dispute",
    "GatewayCustomer",
    "GatewayEvent",
    "GatewayTransaction",
    "Hold",
    "HoldMovement",
    "JournalEntry",
    "Posting",
    "Refund",
    "TaxDecision",
    "TaxDetails",
    "TopUp",
    "VatCheck",
]
