"""The Celery application: workers and one beat. Tasks live beside the flows they call."""

import os
from datetime import UTC, datetime

from celery import Celery
from django.core.cache import cache

from config.health import BEAT_KEY

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("bourse")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@app.task(name="config.note_beat")
def note_beat() -> None:
    """Leave proof that beat, broker and a worker are alive; `/readyz` reads its age."""
    cache.set(BEAT_KEY, datetime.now(UTC).isoformat(), timeout=3600)
