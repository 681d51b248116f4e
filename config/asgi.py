"""ASGI entry point."""

import os

from django.core.asgi import get_asgi_application

from config import celery  # noqa: F401  # a task sent from here finds our broker

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = get_asgi_application()
