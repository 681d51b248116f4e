"""What beat starts when: one schedule, reviewed in git.

Each task asks the database what is due, so a missed or doubled tick is harmless.
"""

from datetime import timedelta
from typing import Any

from celery.schedules import crontab

from catalog.sources import ALL_SOURCES

SCHEDULE: dict[str, dict[str, Any]] = {
    **{
        f"refresh-{source.name}": {
            "task": "catalog.refresh_due_sources",
            "kwargs": {"only": source.name},
            "schedule": timedelta(minutes=1),
            "options": {"expires": 60},
        }
        for source in ALL_SOURCES
    },
    "note-the-beat": {"task": "config.note_beat", "schedule": timedelta(seconds=5), "options": {"expires": 30}},
    "release-expired-holds": {
        "task": "billing.release_expired_holds",
        "schedule": timedelta(minutes=1),
        "options": {"expires": 60},
    },
    "apply-gateway-events": {
        "task": "billing.apply_gateway_events",
        "schedule": timedelta(seconds=5),
        "options": {"expires": 30},
    },
    "retry-created-top-ups": {
        "task": "billing.retry_created_top_ups",
        "schedule": timedelta(seconds=30),
        "options": {"expires": 60},
    },
    "expire-top-ups": {"task": "billing.expire_top_ups", "schedule": timedelta(minutes=1), "options": {"expires": 60}},
    "roll-up-accounts": {
        "task": "billing.roll_up_accounts",
        "schedule": timedelta(minutes=5),
        "options": {"expires": 300},
    },
    "submit-due-refunds": {
        "task": "billing.submit_due_refunds",
        "schedule": timedelta(minutes=1),
        "options": {"expires": 60},
    },
    "pay-open-receivables": {
        "task": "billing.pay_open_receivables",
        "schedule": timedelta(minutes=1),
        "options": {"expires": 60},
    },
    "reconcile": {"task": "billing.reconcile", "schedule": crontab(minute=23), "options": {"expires": 3000}},
    "close-day": {"task": "billing.close_day", "schedule": crontab(hour=4, minute=47), "options": {"expires": 3600}},
    "audit-books": {
        "task": "marketplace.audit_books",
        "schedule": crontab(hour=3, minute=17),
        "options": {"expires": 3600},
    },
    "check-vat-ids": {
        "task": "billing.check_vat_ids",
        "schedule": timedelta(minutes=1),
        "options": {"expires": 60},
    },
    "decide-taxes": {
        "task": "billing.decide_taxes",
        "schedule": timedelta(minutes=10),
        "options": {"expires": 300},
    },
    "refresh-due-rates": {"task": "fx.refresh_due_rates", "schedule": timedelta(hours=1), "options": {"expires": 600}},
    "thin-idempotency-keys": {
        "task": "users.thin_idempotency_keys",
        "schedule": timedelta(hours=1),
        "options": {"expires": 600},
    },
    "send-webhooks": {"task": "users.send_webhooks", "schedule": timedelta(seconds=5), "options": {"expires": 5}},
    "thin-webhook-log": {
        "task": "users.thin_webhook_log",
        "schedule": crontab(hour=3, minute=53),
        "options": {"expires": 3600},
    },
    "tell-price-alerts": {"task": "catalog.tell_alerts", "schedule": timedelta(minutes=1), "options": {"expires": 60}},
    "take-snapshots": {
        "task": "catalog.take_snapshots",
        "schedule": timedelta(minutes=10),
        "options": {"expires": 600},
    },
    "thin-snapshots": {
        "task": "catalog.thin_snapshots",
        "schedule": crontab(hour=2, minute=41),
        "options": {"expires": 3600},
    },
    "sweep-market": {
        "task": "marketplace.sweep",
        "schedule": timedelta(seconds=10),
        "options": {"expires": 30},
    },
    "settle-rentals": {
        "task": "marketplace.settle",
        "schedule": timedelta(minutes=1),
        "options": {"expires": 60},
    },
}

# The demo's machines and renters, in a worker of their own: what else is being done never silences them.
FLEET_SCHEDULE: dict[str, dict[str, Any]] = {
    "play-fleet": {
        "task": "marketplace.play_fleet",
        "schedule": timedelta(seconds=20),
        "options": {"queue": "fleet", "expires": 20},
    },
    "play-agents": {
        "task": "marketplace.play_agents",
        "schedule": timedelta(seconds=2),
        "options": {"queue": "fleet", "expires": 2},
    },
    "keep-alive": {
        "task": "marketplace.keep_alive",
        "schedule": timedelta(minutes=1),
        "options": {"queue": "fleet", "expires": 60},
    },
}
