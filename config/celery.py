"""The Celery application: workers and one beat. Tasks live beside the flows they call."""

import os
from datetime import UTC, datetime

from celery import Celery

from config import beat

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("bourse")
app.set_default()  # in every thread, also those of the web server
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@app.task(name="config.note_beat")
def note_beat() -> None:
    """Leave proof that beat, broker and a worker are alive; `/readyz` reads its age."""
    beat.note(datetime.now(UTC))
