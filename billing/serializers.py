"""What the calls about money answer, field by field: the same lines make the body and its description.

Amounts are strings with six decimals, exact to the micro, in the currency beside them.
"""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from billing.accounts import WALLET_CURRENCIES
from billing.queries.statement import StatementLine
from common.money import from_micros


@extend_schema_field({"type": "string", "format": "decimal", "pattern": r"^-?\d+\.\d{6}$", "example": "1000.000000"})
class Micros(serializers.Field[int, Any, str, Any]):
    """Micros as a decimal string."""

    def to_representation(self, value: int) -> str:
        """Return the text."""
        return f"{from_micros(value):f}"


class WalletSerializer(serializers.Serializer[Any]):
    """One wallet: `posted` = `held` + `available`, and `available` is never negative."""

    currency = serializers.ChoiceField(choices=WALLET_CURRENCIES)
    posted = Micros(source="posted_micros", help_text="All that is in the wallet.")
    held = Micros(source="held_micros", help_text="Set aside for orders and rentals.")
    available = Micros(source="available_micros", help_text="What may be spent, held or refunded now.")
    burn_per_hour = Micros(source="burn_micros_per_hour", help_text="What running rentals take an hour, tax included.")
    runway_seconds = serializers.IntegerField(
        allow_null=True,
        help_text="How long `available` lasts at `burn_per_hour`, rounded down; held money comes on top. "
        "Null while nothing runs.",
    )


class WalletListSerializer(serializers.Serializer[Any]):
    """All wallets of an organisation."""

    results = WalletSerializer(many=True)


class ReferenceSerializer(serializers.Serializer[Any]):
    """What a line is about."""

    type = serializers.CharField(source="reference_type", help_text="For example top_up, refund, rental.")
    id = serializers.CharField(source="reference_id")


class StatementLineSerializer(serializers.Serializer[Any]):
    """One line of a wallet's statement."""

    id = serializers.CharField()
    at = serializers.DateTimeField(help_text="When it happened.")
    kind = serializers.CharField(help_text="For example topup, refund, settlement, dispute; it may grow.")
    amount = Micros(source="amount_micros", help_text="Above zero came in, below zero went out.")
    balance_after = Micros(source="balance_after_micros", help_text="The sum of all lines up to and with this one.")
    reference = serializers.SerializerMethodField(help_text="Null where it is about no single object.")
    description = serializers.CharField(source="words")

    @extend_schema_field(ReferenceSerializer(allow_null=True))
    def get_reference(self, line: StatementLine) -> dict[str, str] | None:
        """Return what the line is about."""
        return {"type": line.reference_type, "id": line.reference_id} if line.reference_id else None


class StatementPageSerializer(serializers.Serializer[Any]):
    """A page of a statement; `next` leads to older lines."""

    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    results = StatementLineSerializer(many=True)
