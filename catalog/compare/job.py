"""What one job costs at an offer: hours as they are billed, volumes, traffic, and the work that interruptions take.

Pure: a job, what an offer's cloud says, and a price go in; every line of the sum comes out. Rules:

- The hours are of work on all machines together, in so many starts of equal length. An offer with fewer GPUs than
  the job needs is taken several times; one with more is paid whole.
- Each start is billed up to the next billing step, and at least the cloud's minimum time. A step that is not known is
  not rounded, a minimum that is not known is none.
- Spot machines are taken away so many times a day. With checkpoints as often as is best, the share of time lost is
  `sizing.engine.cost.spot_waste`; loading a checkpoint takes as long as writing it, and each interruption is one more
  start. Where the notice leaves time to write one, no work is lost, only the writing and the loading.
- A fixed term is paid whole, as often as the job needs it.
- The volume is paid while the machines run and while they are stopped. Where nothing survives a stop, nothing is paid
  meanwhile, unless the cloud bills a stopped machine as if it ran.
- What is not known (the price of a volume, of traffic) is left out of the total, and named.

Two hours on one GPU at 3.00 USD, billed by the hour, in three starts: each of 40 minutes counts as an hour.

>>> terms = Terms(gpu_count=Decimal(1), billing_step_seconds=3600)
>>> cost = plan(Job(hours=Decimal(2), starts=3), terms).cost(Decimal("3.00"))
>>> str(cost.work_usd), str(cost.rounding_usd), str(cost.total_usd)
('6.000000', '3.000000', '9.000000')
"""

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal
from typing import Literal

from sizing.engine.cost import spot_waste

HOURS_PER_MONTH = Decimal(730)
MOST_WASTE = Decimal("0.95")
_MICRO = Decimal("0.000001")
_SECOND = Decimal("0.000000001")
_NOTHING = Decimal(0)

Unknown = Literal["billing_step", "minimum", "storage", "egress", "volume"]


@dataclass(frozen=True, kw_only=True)
class Job:
    """What is to be run. `hours` of work on all machines; `stopped_hours` in all, between the starts."""

    hours: Decimal
    gpus: int = 1
    starts: int = 1
    storage_gb: Decimal = _NOTHING
    stopped_hours: Decimal = _NOTHING
    egress_gb: Decimal = _NOTHING
    checkpoint_minutes: Decimal = Decimal(2)
    interruptions_per_day: Decimal = Decimal(1)


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What an offer and its cloud say, besides the price. None = not known."""

    gpu_count: Decimal
    is_spot: bool = False
    term_months: int | None = None
    billing_step_seconds: int | None = None
    minimum_seconds: int | None = None
    egress_usd_per_gb: Decimal | None = None
    storage_usd_per_gb_month: Decimal | None = None
    volume_survives_stop: bool | None = None
    bills_when_stopped: bool | None = None
    spot_notice_seconds: int | None = None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A job on one kind of machine, before its price: hours per machine, and what does not depend on the price.

    `run_hours` hold the work and what interruptions waste; `billed_hours` are those as charged, `idle_hours` the
    stopped ones that are charged like running ones. `interruptions` are of all machines.
    """

    machines: int
    work_hours: Decimal
    run_hours: Decimal
    billed_hours: Decimal
    idle_hours: Decimal
    interruptions: Decimal
    starts: int
    terms_paid: int
    storage_usd: Decimal | None
    stopped_storage_usd: Decimal | None
    egress_usd: Decimal | None
    unknown: tuple[Unknown, ...]

    @property
    def machine_hours(self) -> Decimal:
        """The hours that are multiplied with the price of a machine."""
        return self.machines * (self.billed_hours + self.idle_hours)

    @property
    def fixed_usd(self) -> Decimal:
        """What is known of volume and traffic."""
        return sum(
            (part or _NOTHING for part in (self.storage_usd, self.stopped_storage_usd, self.egress_usd)), _NOTHING
        )

    def cost(self, price_usd_per_hour: Decimal) -> "Cost":
        """Return the sum, line by line, at this price of a machine."""

        def at_price(hours: Decimal) -> Decimal:
            return (self.machines * hours * price_usd_per_hour).quantize(_MICRO, rounding=ROUND_HALF_EVEN)

        return Cost(
            plan=self,
            price_usd_per_hour=price_usd_per_hour,
            work_usd=at_price(self.work_hours),
            lost_usd=at_price(self.run_hours - self.work_hours),
            rounding_usd=at_price(self.billed_hours) - at_price(self.run_hours),
            idle_usd=at_price(self.idle_hours),
            total_usd=at_price(self.billed_hours + self.idle_hours) + self.fixed_usd,
        )


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The sum: work, what interruptions waste, what billing steps (or a whole term) add, stopped machines, the rest."""

    plan: Plan
    price_usd_per_hour: Decimal
    work_usd: Decimal
    lost_usd: Decimal
    rounding_usd: Decimal
    idle_usd: Decimal
    total_usd: Decimal

    @property
    def is_at_least(self) -> bool:
        """Whether something that costs money is not known, so that the total may be more."""
        return bool({"storage", "egress"} & set(self.plan.unknown))


def plan(job: Job, terms: Terms) -> Plan:
    """Return the hours and fixed sums of `job` on machines of these terms."""
    machines = _up(job.gpus / terms.gpu_count)
    run_hours = _rounded(job.hours / (1 - _waste(job, terms, machines=machines)))
    interruptions = run_hours / 24 * job.interruptions_per_day * machines if terms.is_spot else _NOTHING
    starts = job.starts + _up(interruptions)
    billed_hours, terms_paid = _paid_hours(_billed_hours(run_hours, starts, terms), terms)
    stores_when_stopped = terms.volume_survives_stop is not False
    is_idle_paid = terms.bills_when_stopped is True and terms.volume_survives_stop is not True and not terms_paid
    return Plan(
        machines=machines,
        work_hours=job.hours,
        run_hours=run_hours,
        billed_hours=billed_hours,
        idle_hours=job.stopped_hours if is_idle_paid else _NOTHING,
        interruptions=interruptions,
        starts=starts,
        terms_paid=terms_paid,
        storage_usd=_storage_usd(job, terms, hours=run_hours),
        stopped_storage_usd=_storage_usd(job, terms, hours=job.stopped_hours if stores_when_stopped else _NOTHING),
        egress_usd=_times(job.egress_gb, terms.egress_usd_per_gb),
        unknown=_unknown(job, terms),
    )


def _waste(job: Job, terms: Terms, *, machines: int) -> Decimal:
    """Return the share of run time that interruptions take; only spot machines are interrupted."""
    if not terms.is_spot or not job.interruptions_per_day:
        return _NOTHING
    seconds = float(job.checkpoint_minutes * 60)
    waste = spot_waste(
        checkpoint_s=seconds,
        interruption_mean_s=86_400 / float(job.interruptions_per_day),
        restart_s=seconds,
        instances=machines,
        is_warned=_is_warned(job, terms),
    )
    return Decimal(repr(waste))


def _is_warned(job: Job, terms: Terms) -> bool:
    return terms.spot_notice_seconds is not None and terms.spot_notice_seconds >= job.checkpoint_minutes * 60 > 0


def _billed_hours(run_hours: Decimal, starts: int, terms: Terms) -> Decimal:
    each_seconds = run_hours * 3600 / starts
    if terms.billing_step_seconds:
        each_seconds = Decimal(_up(_rounded(each_seconds / terms.billing_step_seconds)) * terms.billing_step_seconds)
    return _rounded(starts * max(each_seconds, Decimal(terms.minimum_seconds or 0)) / 3600)


def _paid_hours(billed_hours: Decimal, terms: Terms) -> tuple[Decimal, int]:
    """Return the hours paid and how many fixed terms they are: 0 without a term."""
    if not terms.term_months:
        return billed_hours, 0
    term_hours = HOURS_PER_MONTH * terms.term_months
    count = max(1, _up(billed_hours / term_hours))
    return count * term_hours, count


def _storage_usd(job: Job, terms: Terms, *, hours: Decimal) -> Decimal | None:
    return _times(_rounded(job.storage_gb * hours / HOURS_PER_MONTH), terms.storage_usd_per_gb_month)


def _times(amount: Decimal, price: Decimal | None) -> Decimal | None:
    """Return the product to the micro; nothing costs nothing, whatever its price."""
    if not amount:
        return _NOTHING
    return None if price is None else (amount * price).quantize(_MICRO, rounding=ROUND_HALF_EVEN)


def _unknown(job: Job, terms: Terms) -> tuple[Unknown, ...]:
    named: dict[Unknown, bool] = {
        "billing_step": terms.billing_step_seconds is None and not terms.term_months,
        "minimum": terms.minimum_seconds is None and not terms.term_months,
        "storage": bool(job.storage_gb) and terms.storage_usd_per_gb_month is None,
        "egress": bool(job.egress_gb) and terms.egress_usd_per_gb is None,
        "volume": bool(job.storage_gb and job.stopped_hours) and terms.volume_survives_stop is None,
    }
    return tuple(name for name, is_unknown in named.items() if is_unknown)


def break_even_per_day(
    job: Job, terms: Terms, *, spot_usd_per_hour: Decimal, on_demand_usd_per_hour: Decimal
) -> Decimal | None:
    """Return how many interruptions a day a spot machine may have until it costs as much as an on-demand one.

    Before rounding by the billing step. 0 = never cheaper; None = cheaper whatever happens (nothing to save or load,
    or so cheap that the waste counted at most, 95 %, does not eat the difference). With checkpoints of c seconds and
    n machines, waste = k sqrt(2 c r) + c r at r interruptions a second of all; solved for r where it is 1 - spot/on-demand.

    >>> terms = Terms(gpu_count=Decimal(1), is_spot=True)
    >>> rate = break_even_per_day(Job(hours=Decimal(10)), terms, spot_usd_per_hour=Decimal(1), on_demand_usd_per_hour=Decimal(2))
    >>> round(rate, 1)
    Decimal('61.8')
    """
    discount = 1 - spot_usd_per_hour / on_demand_usd_per_hour if on_demand_usd_per_hour else _NOTHING
    if discount <= 0:
        return _NOTHING
    seconds = job.checkpoint_minutes * 60
    if not seconds or discount > MOST_WASTE:
        return None
    share = Decimal("0.5") if _is_warned(job, terms) else Decimal(1)
    root = (((2 * share**2 + 4 * discount) * seconds).sqrt() - share * (2 * seconds).sqrt()) / (2 * seconds)
    return root**2 * 86_400 / _up(job.gpus / terms.gpu_count)


def _up(value: Decimal) -> int:
    return int(value.to_integral_value(rounding=ROUND_CEILING))


def _rounded(value: Decimal) -> Decimal:
    """Cut the noise of a division, which a step of billing would otherwise round up."""
    return value.quantize(_SECOND, rounding=ROUND_HALF_EVEN)
