"""What an order means in money before it is placed: the most it can come to, what is set aside, what it meets. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from common.money import round_to_micros
from marketplace.matching import hours_at_first
from marketplace.orders.instruction import Instruction
from marketplace.pricing import Terms, gross_per_hour, hold_micros, net_per_hour
from marketplace.quotes import Quoted, QuotedFill
from marketplace.why import Why

_CENT_MICROS = 10_000


@dataclass(frozen=True, kw_only=True)
class Sums:
    """Of all servers, for the hours that are held at once (all of a lot, the first of an open-ended order); micros.

    `net` and `tax` add up to `gross` in whole cents. `hold` is gross to the micro and never less than what is charged.
    """

    net_micros: int
    tax_micros: int
    gross_micros: int
    hold_micros: int


@dataclass(frozen=True, kw_only=True)
class Review:
    """An order as it is confirmed. `price`: USD per GPU-hour at most; None where nothing fits a best offer.

    `sums` None: there is no price. `fills_now`: servers that fit at that price at this moment.
    `next_price`: of the next server that would do, where its price is above the limit.
    """

    instruction: Instruction
    is_best: bool
    price: Decimal | None
    quoted: Quoted
    sums: Sums | None
    fills_now: Sequence[QuotedFill]
    next_price: Decimal | None
    why: Why | None

    @property
    def is_whole_now(self) -> bool:
        """Whether every server fills at once."""
        return len(self.fills_now) == self.instruction.server_count

    @property
    def rests(self) -> bool:
        """Whether what does not fill now waits."""
        return self.instruction.time_in_force == "gtc"

    @property
    def gap(self) -> Decimal | None:
        """How far the next server's price is above the limit."""
        return None if self.next_price is None or self.price is None else self.next_price - self.price

    @property
    def left_micros(self) -> int:
        """What is available after the hold; negative where it is not enough."""
        return self.quoted.available_micros - (self.sums.hold_micros if self.sums else 0)

    @property
    def missing_micros(self) -> int:
        """What the wallet lacks."""
        return max(0, -self.left_micros)

    @property
    def would_do_nothing(self) -> bool:
        """Whether the order would be dropped as the book stands."""
        is_all_or_nothing = self.instruction.time_in_force == "fok"
        return not self.rests and (not self.fills_now or (is_all_or_nothing and not self.is_whole_now))

    @property
    def can_be_placed(self) -> bool:
        """Whether it does something and is paid for: a best offer needs its quote, which stands for all servers."""
        if self.sums is None or self.missing_micros:
            return False
        return self.quoted.quote is not None if self.is_best else not self.would_do_nothing


def review(instruction: Instruction, quoted: Quoted, *, is_best: bool) -> Review:
    """Return the review of an instruction that was priced. Of a best offer the quote's price is the limit."""
    price = quoted.price if is_best else instruction.limit
    fills_now = [fill for fill in quoted.fills if price is not None and fill.price <= price]
    why = quoted.obstacle.why if quoted.obstacle else None
    dearer = next((fill.price for fill in quoted.fills if price is not None and fill.price > price), None)
    return Review(
        instruction=instruction,
        is_best=is_best,
        price=price,
        quoted=quoted,
        sums=None
        if price is None
        else sums(price, terms=terms_of(instruction, quoted), servers=instruction.server_count),
        fills_now=fills_now,
        next_price=dearer,
        why=why,
    )


def terms_of(instruction: Instruction, quoted: Quoted) -> Terms:
    """Return the rates an instruction was priced with."""
    return Terms(
        gpu_count=instruction.gpu_count,
        hours=instruction.hours,
        fx_rate=quoted.rate.rate,
        tax_rate_percent=quoted.tax_rate_percent,
    )


def sums(price: Decimal, *, terms: Terms, servers: int) -> Sums:
    """Return what servers at this price come to at most."""
    hours = hours_at_first(terms.hours) * servers
    net = _in_cents(round_to_micros(net_per_hour(price, terms) * hours))
    gross = _in_cents(round_to_micros(gross_per_hour(price, terms) * hours))
    return Sums(
        net_micros=net, tax_micros=gross - net, gross_micros=gross, hold_micros=hold_micros(price, terms) * servers
    )


def _in_cents(micros: int) -> int:
    return round(Decimal(micros) / _CENT_MICROS) * _CENT_MICROS
