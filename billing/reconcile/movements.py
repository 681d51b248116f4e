"""What a movement of our balance at the gateway is about: pure. A type we do not know is for a person.

>>> meaning_of("charge", 1), meaning_of("adjustment", -1), meaning_of("adjustment", 1), meaning_of("tax_fund", 1)
('payment', 'dispute', 'dispute returned', 'unknown')
"""

from typing import Literal

Meaning = Literal[
    "payment", "refund", "refund returned", "dispute", "dispute returned", "payout", "payout returned", "fee", "unknown"
]
_MEANINGS: dict[str, Meaning] = {
    "charge": "payment",
    "payment": "payment",
    "refund": "refund",
    "payment_refund": "refund",
    "refund_failure": "refund returned",
    "payout": "payout",
    "payout_failure": "payout returned",
    "payout_cancel": "payout returned",
    "stripe_fee": "fee",
    "tax_fee": "fee",
}


def meaning_of(movement_type: str, amount_micros: int) -> Meaning:
    """Return what a movement of this type and amount (negative: away from us) means."""
    if movement_type == "adjustment":  # the gateway's word for what a dispute takes and gives back
        return "dispute" if amount_micros < 0 else "dispute returned"
    return _MEANINGS.get(movement_type, "unknown")
