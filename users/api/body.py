"""Bodies of keyed calls, read strictly: a JSON object, its fields declared once, of the type that JSON has for them.

What is not declared is refused with 400, code `unknown_field`; a number is not taken for a text nor a text for a
number, so that the description (made from the same lines) is the whole truth.
"""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import IO, Any, ClassVar, cast

from django.core.validators import RegexValidator
from django.utils.translation import gettext_lazy as _
from drf_spectacular.extensions import OpenApiSerializerExtension
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ParseError, ValidationError

from common.json_body import BoundedJSONParser
from common.parameters import ANY_TEXT, Words

MOST_BYTES = 64 * 1024


class BodyParser(BoundedJSONParser):
    """Parses the body of a keyed call. Half a surrogate pair is refused: JSON can escape it, no row can hold it."""

    most_bytes: ClassVar[int] = MOST_BYTES

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """Return the body's value. Raises ParseError, or a 413 problem for a body that is too large."""
        value = super().parse(stream, media_type, parser_context)
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as problem:
            raise ParseError(_("The body holds half a character (a lone surrogate).")) from problem
        return value


class ClosedObjects(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Says in the description that a body has no other fields."""

    target_class = "users.api.body.StrictSerializer"
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        """Return the object's schema, closed."""
        schema = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        return {**schema, "additionalProperties": False}


class StrictSerializer(serializers.Serializer[Any]):
    """The fields of one body, or of an object in it."""

    @classmethod
    def read(cls, body: Any) -> dict[str, Any]:
        """Return the values by name. Raises ValidationError that names each bad field."""
        fields = cls(data=body)
        fields.is_valid(raise_exception=True)
        return cast("dict[str, Any]", fields.validated_data)

    def to_internal_value(self, data: Any) -> Any:
        """Return the values, or fail naming the fields that are wrong and those that do not exist."""
        unknown = self._unknown_fields(data)
        try:
            values = super().to_internal_value(data)
        except ValidationError as problem:
            raise ValidationError({**cast("dict[str, Any]", problem.detail), **unknown}) from problem
        if unknown:
            raise ValidationError(unknown)
        return values

    def _unknown_fields(self, data: Any) -> dict[str, list[ErrorDetail]]:
        if not isinstance(data, Mapping):
            return {}
        known = {field.field_name for field in self._writable_fields}
        message = str(_("There is no field of this name."))
        return {name: [ErrorDetail(message, code="unknown_field")] for name in data if name not in known}


class Text(Words):
    """A JSON string as it is: not cut at its ends, without NUL. With `form` it must match."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"trim_whitespace": False, "form": ANY_TEXT, **kwargs})

    def to_internal_value(self, data: Any) -> str:
        """Return the text, or fail."""
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class Whole(serializers.IntegerField):
    """A JSON number without a fraction."""

    def to_internal_value(self, data: Any) -> int:
        """Return the number, or fail."""
        is_whole = isinstance(data, int) or (isinstance(data, float) and data.is_integer())
        if isinstance(data, bool) or not is_whole:
            self.fail("invalid")
        return int(data)


class Flag(serializers.BooleanField):
    """JSON's true or false: not 1, not "yes"."""

    def to_internal_value(self, data: Any) -> bool:
        """Return the value, or fail."""
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class OneOf(serializers.ChoiceField):
    """One of some words."""

    def to_internal_value(self, data: Any) -> Any:
        """Return the word, or fail."""
        if not isinstance(data, str):
            self.fail("invalid_choice", input=data)
        return super().to_internal_value(data)


class Amount(Text):
    """Money as a string: digits, at most six of them behind a point. Above zero is the caller's to check."""

    def __init__(self, **kwargs: Any) -> None:
        form = RegexValidator(
            r"^(0|[1-9][0-9]{0,9})(\.[0-9]{1,6})?\Z",
            message=_('Write the amount as a string of digits, such as "25.00".'),
            code="invalid",
        )
        super().__init__(**{"form": form, "max_length": 17, **kwargs})

    def run_validation(self, data: Any = serializers.empty) -> Any:
        """Return the amount as a Decimal, or fail."""
        text = super().run_validation(data)
        return Decimal(text) if isinstance(text, str) else text
