"""Time for rentals: the platform is up, servers beat or fall silent, and the sweep runs; all of it by direct calls."""

from datetime import datetime, timedelta

from catalog.models import Gpu
from marketplace.limits import LIVE_FOR
from marketplace.models import BeatSpan, Rental, RentalEvent, Server, UpSpan
from marketplace.orders.place import place_order
from marketplace.rentals.provision import accept_start
from marketplace.rentals.ready import report_ready
from marketplace.servers import beat
from marketplace.sweep import note_up, sweep
from tests.marketplace.conftest import NOW, make_listing, order_for
from users.models import Organisation

ACCESS = {"ssh_host": "203.0.113.7", "ssh_port": 2201, "ssh_user": "root", "host_key": "ssh-ed25519 AAAA"}


def up_all_along(*, since: datetime, until: datetime) -> None:
    """The platform was up in this time, as if its sweep had run all along."""
    present = UpSpan.objects.filter(started_at__lte=since, last_seen_at__gte=since - LIVE_FOR)
    if not present.update(last_seen_at=until):
        UpSpan.objects.create(started_at=since, last_seen_at=until)


def beats_all_along(server: Server, *, since: datetime, until: datetime) -> None:
    """A server beat in this time without a gap; its span goes on where it beat within the minute before."""
    beat(server_id=server.pk, now=since)
    almost = until - timedelta(seconds=1)
    present = Server.objects.filter(pk=server.pk, last_beat_at__gte=since, last_beat_at__lt=almost)
    if present.update(last_beat_at=almost):
        BeatSpan.objects.filter(
            server=server, first_beat_at__lte=since, last_beat_at__gte=since, last_beat_at__lt=almost
        ).update(last_beat_at=almost)
    beat(server_id=server.pk, now=until)


def pass_time(*, since: datetime, until: datetime, silent: tuple[Server, ...] = (), step: timedelta | None = None):
    """Let time pass: the platform is up, every server but the silent ones beats, and it is swept; return the counts.

    With `step` the sweep runs that often on the way, else at the end alone.
    """
    at, counts = since, {}
    while at < until:
        at = min(until, at + step) if step else until
        up_all_along(since=since, until=at)
        for server in Server.objects.exclude(pk__in=[each.pk for each in silent]):
            beats_all_along(server, since=since, until=at)
        counts = sweep(now=at)
    return counts


def rent(gpu: Gpu, renter: Organisation, *, now: datetime = NOW, new_server: bool = True, **values) -> Rental:
    """Return a rental that was just filled, on a new server of 8 devices if need be; the platform is up."""
    note_up(now=now)
    if new_server:
        make_listing(gpu=gpu, price=values.get("limit", "2.88"), now=now)
    placed = place_order(organisation_id=renter.pk, instruction=order_for(gpu, confirm_price=True, **values), now=now)
    return Rental.objects.get(order_id=placed.order_id)


def run(rental: Rental, *, ready_at: datetime) -> Rental:
    """Start a filled rental: its server takes it on and is ready then, having beaten all along."""
    pass_time(since=rental.filled_at, until=ready_at)
    accept_start(rental_id=rental.pk, now=ready_at - timedelta(seconds=1))
    report_ready(rental_id=rental.pk, access=ACCESS, now=ready_at)
    rental.refresh_from_db()
    return rental


def kinds(rental: Rental) -> list[str]:
    """Return the kinds of a rental's events, in the order they were written."""
    return list(RentalEvent.objects.filter(rental=rental).order_by("pk").values_list("kind", flat=True))
