"""What beat asks of the ledger and the gateway. Each task finds its work in rows, and may run twice or late."""

from datetime import UTC, datetime
from typing import Any

from celery import shared_task

from billing import holds, ledger, receivables
from billing.gateway import client
from billing.models import Account
from billing.reconcile import close, run
from billing.refunds import submit
from billing.tax import check_vat_ids as vat_ids
from billing.tax import record
from billing.tax.seller import vat_register
from billing.topups import apply_event, unfinished


@shared_task(name="billing.release_expired_holds")
def release_expired_holds(**_room: Any) -> None:
    """Give back what is left of holds whose time has passed."""
    holds.release_expired(now=datetime.now(UTC))


@shared_task(name="billing.roll_up_accounts")
def roll_up_accounts(**_room: Any) -> None:
    """Fold the tails of the entries-only accounts."""
    for account_id in Account.objects.filter(entries_only=True).order_by("pk").values_list("pk", flat=True):
        ledger.roll_up(account_id)


@shared_task(name="billing.apply_gateway_events")
def apply_gateway_events(**_room: Any) -> None:
    """Apply the gateway's events that are due; the webhook sends this too, so that a payment shows at once."""
    apply_event.apply_due_events(now=datetime.now(UTC))


@shared_task(name="billing.retry_created_top_ups")
def retry_created_top_ups(**_room: Any) -> None:
    """Settle top-ups whose payment page was asked for without an answer."""
    unfinished.retry_created_top_ups(now=datetime.now(UTC))


@shared_task(name="billing.expire_top_ups")
def expire_top_ups(**_room: Any) -> None:
    """Close top-ups that were not paid in time."""
    unfinished.expire_top_ups(now=datetime.now(UTC))


@shared_task(name="billing.submit_due_refunds")
def submit_due_refunds(**_room: Any) -> None:
    """Ask the gateway once more for refunds that it gave no answer to."""
    submit.submit_due_refunds(now=datetime.now(UTC))


@shared_task(name="billing.pay_open_receivables")
def pay_open_receivables(**_room: Any) -> None:
    """Pay what organisations owe from what their wallets have available."""
    receivables.pay_open_receivables(now=datetime.now(UTC))


@shared_task(name="billing.reconcile")
def reconcile_with_gateway(**_room: Any) -> None:
    """Compare the books with the gateway's lists and movements."""
    if client.is_on():
        run.reconcile(now=datetime.now(UTC))


@shared_task(name="billing.close_day")
def close_day(**_room: Any) -> None:
    """Compare the balances with the gateway's own, per currency."""
    if client.is_on():
        close.close_day(now=datetime.now(UTC))


@shared_task(name="billing.check_vat_ids")
def check_vat_ids(**_room: Any) -> None:
    """Ask the register about the VAT numbers that are due."""
    with vat_register() as register:
        vat_ids.check_due(register=register, now=datetime.now(UTC))


@shared_task(name="billing.decide_taxes")
def decide_taxes(**_room: Any) -> None:
    """Decide the tax again where the stored decisions no longer fit."""
    record.decide_due(now=datetime.now(UTC))
