"""Two rentals of the demo's renter that have ended and are settled when the demo opens first: what a statement looks like.

They are played through the exchange's own functions at times that have passed, after the story of their books
(`plan.ENDS_EARLIER`). Each runs whole UTC hours, at prices in cents, on as many devices that both together cost whole
cents (`billing.sample_wallets.SPENT`). A renter who has any order already is left alone: a second run adds nothing.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from billing.sample_wallets import EMAIL
from billing.tax.record import decide_for
from catalog.models import Gpu
from marketplace.models import BeatSpan, Listing, Order, Rental, Server
from marketplace.orders.instruction import Instruction
from marketplace.orders.place import place_order
from marketplace.rentals.end import acknowledge_stop
from marketplace.rentals.provision import accept_start
from marketplace.rentals.ready import report_ready
from marketplace.sample_market.agents import sample_access
from marketplace.servers import beat_all
from users.models import Membership

READY_IN = timedelta(seconds=6)


@dataclass(frozen=True, kw_only=True)
class Past:
    """A rental that was: which GPU, and how many full hours ago it was ready."""

    gpu: str
    hours_ago: int
    gpu_count: int
    hours: int


PAST = (
    Past(gpu="rtx-pro-6000-blackwell", hours_ago=12, gpu_count=4, hours=5),
    Past(gpu="rtx-a6000", hours_ago=8, gpu_count=4, hours=5),
)


def play_two_rentals(*, now: datetime) -> int:
    """Play the renter's past, all of it or nothing, and return how many rentals were added."""
    membership = Membership.objects.select_related("organisation").get(user__email=EMAIL)
    if Order.objects.filter(organisation=membership.organisation).exists():
        return 0
    decide_for(organisation=membership.organisation, now=now - timedelta(days=2))
    hour = now.replace(minute=0, second=0, microsecond=0)
    with transaction.atomic():
        return sum(_play(past, membership, ready_at=hour - timedelta(hours=past.hours_ago)) for past in PAST)


def _play(past: Past, membership: Membership, *, ready_at: datetime) -> bool:
    began_at, ends_at = ready_at - READY_IN, ready_at + timedelta(hours=past.hours)
    gpu = Gpu.objects.get(slug=past.gpu)
    servers = list(Server.objects.filter(gpu=gpu, is_sample=True).values_list("pk", flat=True))
    beat_all(server_ids=servers, now=began_at)
    placed = place_order(
        organisation_id=membership.organisation_id,
        instruction=Instruction(
            gpu_id=gpu.pk,
            gpu_count=past.gpu_count,
            hours=past.hours,
            limit=min(Listing.objects.filter(gpu=gpu).values_list("price_usd_per_gpu_hour", flat=True)),
            currency="USD",
            time_in_force="ioc",
        ),
        placed_by_id=membership.user_id,
        now=began_at,
    )
    rental = Rental.objects.select_related("server").filter(order_id=placed.order_id).first()
    if rental is None:
        return False
    accept_start(rental_id=rental.pk, now=began_at + READY_IN / 3)
    report_ready(rental_id=rental.pk, access=sample_access(rental), now=ready_at)
    _beat_through(servers, since=began_at, until=ends_at + READY_IN)
    acknowledge_stop(rental_id=rental.pk, now=ends_at + READY_IN)
    return True


def _beat_through(server_ids: list[UUID], *, since: datetime, until: datetime) -> None:
    """Note in one step what a beat every 20 seconds would have left."""
    BeatSpan.objects.filter(server__in=server_ids, last_beat_at=since).update(last_beat_at=until)
    Server.objects.filter(pk__in=server_ids, last_beat_at=since).update(last_beat_at=until)
