"""What beat asks of the exchange. Each task asks the database what is due and may run twice or late."""

from datetime import UTC, datetime
from typing import Any

from celery import shared_task

from billing import books
from marketplace.checks import ALL_CHECKS
from marketplace.sample_market.agents import play_agents
from marketplace.sample_market.fleet import play_fleet
from marketplace.sample_market.keep_alive import keep_alive
from marketplace.settlement.due import settle_due
from marketplace.sweep import sweep


@shared_task(name="marketplace.sweep")
def sweep_books(**_room: Any) -> None:
    """Note that the platform is up, do what time alone does to rentals and orders, confirm the best asks."""
    sweep(now=datetime.now(UTC))


@shared_task(name="marketplace.settle")
def settle_rentals(**_room: Any) -> None:
    """Sweep up to this instant, then settle every rental-hour that is due."""
    now = datetime.now(UTC)
    sweep(now=now)
    settle_due(until=now, now=now)


@shared_task(name="marketplace.audit_books")
def audit_books(**_room: Any) -> None:
    """Check the ledger and the exchange; a breach is logged and stops new outgoing money."""
    books.audit(now=datetime.now(UTC), checks=ALL_CHECKS)


@shared_task(name="marketplace.play_fleet")
def play_sample_fleet(**_room: Any) -> None:
    """In the demo: let the sample servers beat."""
    play_fleet(now=datetime.now(UTC))


@shared_task(name="marketplace.play_agents")
def play_sample_agents(**_room: Any) -> None:
    """In the demo: let the sample servers start and stop what is asked of them."""
    play_agents(now=datetime.now(UTC))


@shared_task(name="marketplace.keep_alive")
def keep_sample_market_alive(**_room: Any) -> None:
    """In the demo: give sample rentals back, renew sample bids, trade a little."""
    keep_alive(now=datetime.now(UTC))
