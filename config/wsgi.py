"""WSGI entry point (gunicorn)."""

import os

from django.core.wsgi import get_wsgi_application

from config import celery  # noqa: F401  # a task sent from here finds our broker

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = get_wsgi_application()
