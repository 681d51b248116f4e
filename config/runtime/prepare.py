"""Bring the database to today's schema and load the demo's data; run as a process of its own before the site starts.

Every step may run again: nothing is doubled, nothing a user changed is undone.
"""

import json
import logging
import os
import secrets
import sys
from dataclasses import asdict
from datetime import UTC, datetime

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
    with step("Filling the sample wallets"):
        _seed_renter()
    with step("Opening the sample market"):
        _open_market()
    return 0


def _load_catalogue() -> None:
    call_command("load_catalogue", verbosity=0)
    call_command("load_sample_rates", verbosity=0)


def _seed_operator() -> None:
    # Models load only after setup.
    from allauth.account.models import EmailAddress  # noqa: PLC0415
    from django.contrib.auth import get_user_model  # noqa: PLC0415

    people = _people()
    users = get_user_model().objects
    if "operator" not in people or not users.filter(email=people["operator"]["email"]).exists():
        password = secrets.token_urlsafe(12)
        users.filter(email=OPERATOR_EMAIL).delete()
        get_user_model()._default_manager.create_superuser(email=OPERATOR_EMAIL, password=password)
        _note_person("operator", {"email": OPERATOR_EMAIL, "password": password})
    operator = users.get(email=OPERATOR_EMAIL)
    EmailAddress.objects.get_or_create(
        user=operator, email=OPERATOR_EMAIL, defaults={"verified": True, "primary": True}
    )


def _seed_renter() -> None:
    # Models load only after setup.
    from django.conf import settings  # noqa: PLC0415
    from django.contrib.auth import get_user_model  # noqa: PLC0415

    from billing.sample_wallets import fill_sample_wallets, open_sample_renter  # noqa: PLC0415

    now = datetime.now(UTC)
    renter = _people().get("renter")
    if renter is None or not get_user_model().objects.filter(email=renter["email"]).exists():
        _note_person("renter", asdict(open_sample_renter(password=secrets.token_urlsafe(12), now=now)))
    if settings.FAKE_STRIPE_URL:  # with a key of Stripe nobody is there to pay
        fill_sample_wallets(now=now)


def _open_market() -> None:
    # Models load only after setup.
    from django.conf import settings  # noqa: PLC0415
    from django.contrib.auth import get_user_model  # noqa: PLC0415

    from marketplace.sample_market.build import build_sample_market  # noqa: PLC0415
    from marketplace.sample_market.fleet import play_fleet  # noqa: PLC0415
    from marketplace.sample_market.people import (  # noqa: PLC0415
        fund_sample_renters,
        open_sample_login,
        open_sample_people,
    )
    from marketplace.sample_market.two_rentals import play_two_rentals  # noqa: PLC0415

    now = datetime.now(UTC)
    open_sample_people(now=now)
    provider = _people().get("provider")
    if provider is None or not get_user_model().objects.filter(email=provider["email"]).exists():
        _note_person("provider", asdict(open_sample_login(password=secrets.token_urlsafe(12), now=now)))
    if settings.FAKE_STRIPE_URL:  # with a key of Stripe nobody is there to pay
        fund_sample_renters(now=now)
    build_sample_market(now=now, have_renters_money=bool(settings.FAKE_STRIPE_URL))
    if settings.FAKE_STRIPE_URL:
        play_two_rentals(now=now)
    if settings.DEMO_FLEET:
        play_fleet(now=datetime.now(UTC))


def _people() -> dict[str, dict[str, str]]:
    path = addresses.home() / "people.json"
    return dict(json.loads(path.read_text())) if path.exists() else {}


def _note_person(role: str, person: dict[str, str]) -> None:
    path = addresses.home() / "people.json"
    fresh = path.with_suffix(".new")
    fresh.touch(mode=0o600)
    fresh.write_text(json.dumps({**_people(), role: person}))
    fresh.replace(path)


if __name__ == "__main__":
    sys.exit(main())
