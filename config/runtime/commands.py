"""Every other command: Django's, with this home's servers running for as long as it needs them."""

import logging
import os
import sys

import django
from django.core.management import call_command, execute_from_command_line

from config.runtime import postgres, root, servers, valkey
from config.runtime.lines import say

# Commands that read or write no row: they do not wake the servers.
_WITHOUT_SERVERS = {
    "help",
    "version",
    "check",
    "compilemessages",
    "makemessages",
    "collectstatic",
    "sizing_report",
    "spectacular",
}
# Commands that look after the schema themselves.
_ABOUT_THE_SCHEMA = {"makemigrations", "migrate", "showmigrations", "sqlmigrate", "flush", "dbshell"}


def main(arguments: list[str]) -> int:
    """Run one Django command; return the exit code."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    name = arguments[0] if arguments else "help"
    if name in _WITHOUT_SERVERS or name.startswith("-") or {"-h", "--help"} & set(arguments):
        execute_from_command_line(["manage.py", *arguments])
        return 0
    try:
        with servers.available(dict(os.environ)) as is_running:
            if not is_running and name not in _ABOUT_THE_SCHEMA:
                _fill_own_database()
            execute_from_command_line(["manage.py", *arguments])
    except (servers.HomeBusy, postgres.PostgresUnavailable, valkey.BrokerUnavailable, root.RootRefused) as why:
        say(str(why))
        return 1
    return 0


def _fill_own_database() -> None:
    """Make the database of a home without a running site usable: a command may be the first thing someone types."""
    if os.environ.get("BOURSE_ENV") != "demo" or os.environ.get("DATABASE_URL"):
        return
    django.setup()
    logging.disable(logging.INFO)
    call_command("migrate", verbosity=0, interactive=False)
    call_command("collectstatic", verbosity=0, interactive=False)
    call_command("load_catalogue", verbosity=0)
    call_command("load_sample_rates", verbosity=0)
    logging.disable(logging.NOTSET)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
