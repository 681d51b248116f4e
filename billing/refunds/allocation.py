"""Which payments a refund takes from, and who bears what leaves a payment more than once. Pure.

Amounts are micros. A top-up is never refunded beyond what was paid, less what was refunded (what is still on its
way included) and what is disputed; all of them together never beyond what the wallet has available.

>>> share_outflow(paid_micros=60, before_micros=40, after_micros=100)
Share(customer_micros=20, loss_micros=40)
>>> share_outflow(paid_micros=60, before_micros=100, after_micros=60)
Share(customer_micros=0, loss_micros=-40)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


class MoreThanRefundable(Exception):
    """The payments and the wallet together give less than was asked for."""

    def __init__(self, refundable_micros: int) -> None:
        super().__init__(f"At most {refundable_micros} micros can go back.")
        self.refundable_micros = refundable_micros


@dataclass(frozen=True, kw_only=True)
class Payment:
    """A paid top-up. `refunded_micros` counts refunds that are asked for and not failed."""

    top_up_id: UUID
    paid_at: datetime
    amount_micros: int
    refunded_micros: int = 0
    disputed_micros: int = 0

    @property
    def refundable_micros(self) -> int:
        """What can still go back to it."""
        return max(0, self.amount_micros - self.refunded_micros - self.disputed_micros)


@dataclass(frozen=True, kw_only=True)
class Part:
    """What goes back to one payment."""

    top_up_id: UUID
    amount_micros: int


@dataclass(frozen=True, kw_only=True)
class Share:
    """Who bears an amount: the customer what one payment brought in, we what left it beyond that. Negative: it returns."""

    customer_micros: int
    loss_micros: int


def most_refundable_micros(payments: Sequence[Payment], *, available_micros: int, step_micros: int) -> int:
    """Return the most that can go back, in whole steps (cents) of the currency."""
    most = min(sum(payment.refundable_micros for payment in payments), max(0, available_micros))
    return most - most % step_micros


def allocate(payments: Sequence[Payment], *, wanted_micros: int, available_micros: int, step_micros: int) -> list[Part]:
    """Return the parts of a refund, oldest payment first; they sum to what was asked for. Raises MoreThanRefundable."""
    most_micros = most_refundable_micros(payments, available_micros=available_micros, step_micros=step_micros)
    if wanted_micros > most_micros:
        raise MoreThanRefundable(most_micros)
    parts, left_micros = [], wanted_micros
    for payment in sorted(payments, key=lambda payment: (payment.paid_at, payment.top_up_id)):
        part_micros = min(payment.refundable_micros, left_micros)
        if part_micros > 0:
            parts.append(Part(top_up_id=payment.top_up_id, amount_micros=part_micros))
            left_micros -= part_micros
    return parts


def share_outflow(*, paid_micros: int, before_micros: int, after_micros: int) -> Share:
    """Share a change of what refunds and disputes have taken from one payment, from `before` to `after`.

    A payment is deducted from its customer once, whatever refunds and chargebacks of it come together; what leaves
    it beyond its amount is our loss, and the first to come back.
    """
    change_micros = after_micros - before_micros
    customer_micros = min(paid_micros, after_micros) - min(paid_micros, before_micros)
    return Share(customer_micros=customer_micros, loss_micros=change_micros - customer_micros)
