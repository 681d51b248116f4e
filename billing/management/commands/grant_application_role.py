"""`manage.py grant_application_role ROLE`: let a database role run the application without owning the ledger."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from billing.roles import grant_to_application


class Command(BaseCommand):
    """Grant what the application needs; run as the owner, after each migration."""

    help = "Give a database role what the application needs, and no more on the ledger."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the role's name."""
        parser.add_argument("role")

    def handle(self, *args: Any, **options: Any) -> None:
        """Grant."""
        try:
            grant_to_application(options["role"])
        except (ValueError, DatabaseError) as why:
            raise CommandError(str(why)) from why
        self.stdout.write(f"{options['role']} may read the ledger and call its door.")
