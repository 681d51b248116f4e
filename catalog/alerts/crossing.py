"""When an alert is told: once per fall, and again only after the price had clearly risen.

>>> limit = Decimal("2.00")
>>> [next_step(limit, is_met=False, price=Decimal(text)).value for text in ("2.01", "2.00", "1.50")]
['stay', 'tell', 'tell']
>>> [next_step(limit, is_met=True, price=Decimal(text)).value for text in ("1.90", "2.01", "2.03")]
['stay', 'stay', 'wait_again']
>>> next_step(limit, is_met=True, price=None).value
'stay'
"""

from decimal import Decimal
from enum import Enum

# A price that hovers around the limit is no news each time it crosses it.
CLEARLY_ABOVE = Decimal("1.01")


class Step(Enum):
    """What becomes of an alert now."""

    STAY = "stay"
    TELL = "tell"
    WAIT_AGAIN = "wait_again"


def next_step(at_most: Decimal, *, is_met: bool, price: Decimal | None) -> Step:
    """Decide by the price now (USD per GPU-hour). None, no live price, says nothing: it is neither low nor high."""
    if price is None:
        return Step.STAY
    if not is_met and price <= at_most:
        return Step.TELL
    if is_met and price > at_most * CLEARLY_ABOVE:
        return Step.WAIT_AGAIN
    return Step.STAY
