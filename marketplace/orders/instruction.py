"""What a renter asks for, checked field by field before anything is locked. Pure."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from marketplace.limits import LONGEST_ORDER, MOST_HOURS, MOST_SERVERS, TICK_USD
from marketplace.matching import NO_WISHES, Filters

_HIGHEST_PRICE_USD = Decimal(100_000)
_MOST_GPUS = 64
_TIMES_IN_FORCE = ("gtc", "ioc", "fok")


class InstructionRefused(ValueError):
    """A field of the order is out of place: `field` as in the API, a `code`, and words."""

    def __init__(self, field: str, code: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.code = code


@dataclass(frozen=True, kw_only=True)
class Instruction:
    """An order as it is asked for. `hours` None: open-ended; `limit` in USD per GPU-hour; `currency` of the wallet."""

    gpu_id: int
    gpu_count: int
    hours: int | None
    limit: Decimal
    currency: str
    server_count: int = 1
    time_in_force: str = "gtc"
    expires_at: datetime | None = None
    filters: Filters = NO_WISHES
    image: str = ""
    ssh_public_key: str = ""
    confirm_price: bool = False
    quote_id: UUID | None = None


def check(instruction: Instruction, *, now: datetime) -> None:
    """Raise InstructionRefused for the first field that is out of place."""
    _in_range("gpu_count", instruction.gpu_count, 1, _MOST_GPUS)
    _in_range("server_count", instruction.server_count, 1, MOST_SERVERS)
    if instruction.hours is not None:
        _in_range("hours", instruction.hours, 1, MOST_HOURS)
    if instruction.time_in_force not in _TIMES_IN_FORCE:
        raise InstructionRefused("time_in_force", "unknown", f"One of {', '.join(_TIMES_IN_FORCE)}.")
    _check_limit(instruction.limit)
    _check_expiry(instruction, now)


def expiry(instruction: Instruction, *, now: datetime) -> datetime | None:
    """Return until when the order rests; None for one that never does."""
    if instruction.time_in_force != "gtc":
        return None
    return instruction.expires_at or now + LONGEST_ORDER


def _in_range(field: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InstructionRefused(field, "out_of_range", f"Between {least} and {most}.")


def _check_limit(limit: Decimal) -> None:
    field = "limit_price_usd_per_gpu_hour"
    if not limit.is_finite() or not 0 < limit <= _HIGHEST_PRICE_USD:
        raise InstructionRefused(field, "out_of_range", f"Above 0, at most {_HIGHEST_PRICE_USD}.")
    if limit % TICK_USD:
        raise InstructionRefused(field, "too_fine", f"Prices go in steps of {TICK_USD}.")


def _check_expiry(instruction: Instruction, now: datetime) -> None:
    if instruction.expires_at is None:
        return
    if instruction.time_in_force != "gtc":
        raise InstructionRefused("expires_at", "never_rests", "Only an order that may rest expires.")
    if not now < instruction.expires_at <= now + LONGEST_ORDER:
        raise InstructionRefused("expires_at", "out_of_range", f"Within the next {LONGEST_ORDER.days} days.")
