"""Bring the database to today's schema and load the demo's data; run as a process of its own before the site starts.

Every step may run again: nothing is doubled, nothing a user changed is undone.
"""

import json
import logging
import os
import secrets
import sys

import django
from django.core.management import call_command

from config.runtime import addresses
from config.runtime.lines import step
from config.translations import compile_translations

OPERATOR_EMAIL = "operator@demo.example"


def main() -> int:
    """Prepare everything; return the exit code."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    logging.disable(logging.INFO)
    with step("Compiling translations"):
        compile_translations()
    with step("Loading the application"):
        django.setup()
    with step("Bringing the database up to date"):
        call_command("migrate", verbosity=0, interactive=False)
    with step("Collecting static files"):
        call_command("collectstatic", verbosity=0, interactive=False)
    with step("Loading GPUs, clouds and dated list prices"):
        _load_catalogue()
    _seed_operator()
    return 0


def _load_catalogue() -> None:
    call_command("load_catalogue", verbosity=0)
    call_command("load_sample_rates", verbosity=0)


def _seed_operator() -> None:
    from django.contrib.auth import get_user_model  # noqa: PLC0415  # models load only after setup

    path = addresses.home() / "people.json"
    people = json.loads(path.read_text()) if path.exists() else {}
    users = get_user_model().objects
    if "operator" not in people or not users.filter(email=people["operator"]["email"]).exists():
        password = secrets.token_urlsafe(12)
        users.filter(email=OPERATOR_EMAIL).delete()
        get_user_model()._default_manager.create_superuser(email=OPERATOR_EMAIL, password=password)
        path.touch(mode=0o600)
        path.write_text(json.dumps({**people, "operator": {"email": OPERATOR_EMAIL, "password": password}}))


if __name__ == "__main__":
    sys.exit(main())
