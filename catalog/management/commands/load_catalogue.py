"""`manage.py load_catalogue`: GPUs, clouds and dated list prices from the repository's data files."""

from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from catalog.load_catalogue import CatalogueInvalid, load_catalogue
from catalog.refresh import refresh_source
from catalog.sources import ALL_SOURCES


class Command(BaseCommand):
    """Load the repository's facts; a second run changes nothing."""

    help = "Load GPUs, clouds and the reference snapshot of list prices."

    def handle(self, *args: Any, **options: Any) -> None:
        """Load the data files, then read the sources that lie in the repository."""
        now = datetime.now(UTC)
        try:
            report = load_catalogue(now=now)
        except CatalogueInvalid as why:
            raise CommandError(str(why)) from why
        if options["verbosity"]:
            self.stdout.write(str(report))
        for source in ALL_SOURCES:
            if source.needs_network:
                continue
            refreshed = refresh_source(source_name=source.name, now=now)
            if refreshed.failed:
                raise CommandError(refreshed.line)
            if options["verbosity"]:
                self.stdout.write(refreshed.line)
