"""`manage.py load_catalogue`: GPUs, clouds and dated list prices from the repository's data files."""

from typing import Any

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    """Load the repository's facts; a second run changes nothing."""

    help = "Load GPUs, clouds and the reference snapshot of list prices."

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command."""
