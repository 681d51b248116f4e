"""Whether a payment is the one a top-up waits for: pure.

What may be paid, by whom and for what stands in our row; what the gateway says is compared with it, word by word.
"""

from dataclasses import dataclass
from uuid import UUID

from billing.gateway.objects import Payment


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What a top-up waits for. `payment_intent_id` is None until the gateway named a payment."""

    top_up_id: str
    amount_micros: int
    currency: str
    customer_id: str | None
    payment_intent_id: str | None


def differences(expected: Expected, payment: Payment) -> list[str]:
    """Return what does not fit, by name: amount, currency, customer, metadata, payment. Empty for the right payment."""
    fits = {
        "amount": payment.received_micros == payment.amount_micros == expected.amount_micros,
        "currency": payment.currency == expected.currency,
        "customer": expected.customer_id is not None and payment.customer_id == expected.customer_id,
        "metadata": payment.top_up_id == expected.top_up_id,
        "payment": expected.payment_intent_id in (None, payment.id),
    }
    return [name for name, does_fit in fits.items() if not does_fit]


def row_id_of(text: str) -> UUID | None:
    """Return the row's id that an object at the gateway bears; None where it bears none of ours."""
    try:
        return UUID(text)
    except ValueError:
        return None
