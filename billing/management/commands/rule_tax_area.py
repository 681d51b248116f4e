"""`manage.py rule_tax_area ORGANISATION mainland|outside --operator EMAIL --reason TEXT`: end the review of a special area."""

from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from billing.tax.decide import AreaRuling
from billing.tax.details import NoAreaToRule, rule_on_area
from users.models import Organisation, User


class Command(BaseCommand):
    """Say how a business in a special area is taxed."""

    help = "Tax a business in a special area as the mainland, or as outside the Union, with a name and a reason."

    def add_arguments(self, parser: CommandParser) -> None:
        """Who, how, and by whom; all of it is kept."""
        parser.add_argument("organisation", type=int)
        parser.add_argument("ruling", choices=[ruling.value for ruling in AreaRuling if ruling.value])
        parser.add_argument("--operator", required=True)
        parser.add_argument("--reason", required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        """Rule."""
        try:
            rule_on_area(
                organisation_id=options["organisation"],
                ruling=AreaRuling(options["ruling"]),
                operator=User.objects.get(email__iexact=options["operator"], is_staff=True),
                reason=options["reason"],
                now=datetime.now(UTC),
            )
        except (User.DoesNotExist, Organisation.DoesNotExist, NoAreaToRule, ValueError) as why:
            raise CommandError(str(why) or type(why).__name__) from why
        self.stdout.write(
            f"Organisation {options['organisation']} is taxed as {options['ruling']} from the next full hour."
        )
