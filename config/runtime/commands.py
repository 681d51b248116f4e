"""Every other command: Django's, with this home's servers running for as long as it needs them."""

import os
import sys

from django.core.management import execute_from_command_line

from config.runtime import postgres, root, servers, valkey
from config.runtime.lines import say

# Commands that read or write no row: they do not wake the servers.
_WITHOUT_SERVERS = {"help", "version", "check", "compilemessages", "makemessages", "collectstatic", "spectacular"}


def main(arguments: list[str]) -> int:
    """Run one Django command; return the exit code."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    name = arguments[0] if arguments else "help"
    if name in _WITHOUT_SERVERS or name.startswith("-") or {"-h", "--help"} & set(arguments):
        execute_from_command_line(["manage.py", *arguments])
        return 0
    try:
        with servers.available(dict(os.environ)):
            execute_from_command_line(["manage.py", *arguments])
    except (servers.HomeBusy, postgres.PostgresUnavailable, valkey.BrokerUnavailable, root.RootRefused) as why:
        say(str(why))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
