"""The parameters of the calls about money."""

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError

from billing.accounts import WALLET_CURRENCIES
from common.parameters import PageParameters, QueryParameters

_MOMENT = re.compile(r"[12]\d{3}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d))?", re.ASCII)
_DAY = timedelta(days=1)


@extend_schema_field(
    {
        "anyOf": [
            {"type": "string", "format": "date", "pattern": "^[12]", "example": "2026-11-30"},
            {"type": "string", "format": "date-time", "pattern": "^[12]", "example": "2026-11-30T14:00:00Z"},
        ]
    }
)
class Moment(serializers.Field[datetime, str, str, Any]):
    """A time with its offset, or a day of UTC: its first instant, as an end the first of the next day."""

    default_error_messages = {
        "invalid": _("Write a day as 2026-11-30, or a time with its offset as 2026-11-30T14:00:00Z.")
    }

    def __init__(self, *, is_end: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._is_end = is_end

    def to_internal_value(self, data: str) -> datetime:
        """Return the time, or fail."""
        if not _MOMENT.fullmatch(data):
            self.fail("invalid")
        try:
            if "T" in data:
                return datetime.fromisoformat(data).astimezone(UTC)
            start = datetime.combine(date.fromisoformat(data), time(), tzinfo=UTC)
        except ValueError:
            self.fail("invalid")
        return start + _DAY if self._is_end else start


class LedgerParameters(PageParameters):
    """Which wallet, and when."""

    wallet = serializers.ChoiceField(choices=WALLET_CURRENCIES, help_text="The wallet's currency.")
    format = serializers.ChoiceField(
        choices=("json", "csv"), required=False, help_text="CSV comes whole, in one stream."
    )

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Return the fields; `from` is no name that a class may give to one of them."""
        fields = super().get_fields()
        since = Moment(required=False, help_text="Lines that happened at or after this; a day counts from its start.")
        until = Moment(
            is_end=True, required=False, help_text="Lines that happened before this; a day counts to its end."
        )
        return {"wallet": fields.pop("wallet"), "from": since, "to": until, **fields}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse a span that ends before it begins."""
        if "from" in attrs and "to" in attrs and attrs["from"] >= attrs["to"]:
            message = _("This is before `from`.")
            raise ValidationError({"to": [ErrorDetail(str(message), code="empty_span")]})
        return attrs


class NoParameters(QueryParameters):
    """For calls about one thing, or all there is of it."""
