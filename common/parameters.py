"""Strict query parameters: declared once, checked and described from the same lines.

A call declares its parameters as a serializer. Anything that is not declared, is given twice, or has a value out
of place is refused with 400 and the parameter's name; nothing is ignored. Several values of one parameter are
separated by commas (`market=spot,on_demand`).
"""

import re
from collections.abc import Iterable
from decimal import Decimal
from functools import cache
from typing import Any, cast

from django.core.validators import ProhibitNullCharactersValidator, RegexValidator
from django.db.models import Model
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_NUMBER = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{0,400})?([eE][+-]?[0-9]{1,4})?", re.ASCII)
_MOST_DECIMALS = Decimal("1e-9")
_LARGEST = Decimal(10) ** 12
_ITEM = r"[^,\x00]+"
_MOST_ITEMS = 100


class QueryParameters(serializers.Serializer[Any]):
    """The parameters of one call."""

    @classmethod
    def read(cls, query: QueryDict) -> dict[str, Any]:
        """Return the values by name, defaults filled in. Raises ValidationError that names each bad parameter."""
        if not query:
            return dict(cls._defaults())
        parameters = cls(data=query.dict())
        parameters.is_valid()
        problems = {**parameters.errors, **_unexpected(query, known=parameters.fields)}
        if problems:
            raise ValidationError(problems)
        return cast("dict[str, Any]", parameters.validated_data)

    @classmethod
    @cache
    def _defaults(cls) -> dict[str, Any]:
        parameters = cls(data={})
        parameters.is_valid(raise_exception=True)
        return cast("dict[str, Any]", parameters.validated_data)


def _unexpected(query: QueryDict, *, known: Iterable[str]) -> dict[str, list[ErrorDetail]]:
    found: dict[str, list[ErrorDetail]] = {}
    for name, values in query.lists():
        if name not in known:
            found[name] = [ErrorDetail(str(_("There is no parameter of this name.")), code="unknown_parameter")]
        elif len(values) > 1:
            message = _("Give this parameter once; several values are separated by commas where a list is allowed.")
            found[name] = [ErrorDetail(str(message), code="repeated")]
    return found


class WholeNumber(serializers.IntegerField):
    """Digits only: no "1.0", no "1_000", no digits of other scripts."""

    def to_internal_value(self, data: Any) -> int:
        """Return the number, or fail."""
        if not _WHOLE.fullmatch(data):
            self.fail("invalid")
        return int(data)


class Number(serializers.DecimalField):
    """A finite decimal number of any precision, rounded to nine decimals (more than any figure here has)."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"max_digits": None, "decimal_places": None, "coerce_to_string": False, **kwargs})

    def to_internal_value(self, data: Any) -> Decimal:
        """Return the number, or fail."""
        if not _NUMBER.fullmatch(data):
            self.fail("invalid")
        value = Decimal(data)
        return value.quantize(_MOST_DECIMALS) if abs(value) < _LARGEST else value


def _without_nul(pattern: str) -> RegexValidator:
    return RegexValidator(pattern, message=_("This text holds a NUL character."), code="null_characters_not_allowed")


ANY_TEXT = _without_nul(r"^[^\x00]+\Z")
_NOT_BLANK = _without_nul(r"^[^\x00]*[^\x00\s][^\x00]*\Z")


class Words(serializers.CharField):
    """A text of a form that the description can tell: by default not blank, and without NUL, which no row can hold."""

    def __init__(self, *, form: RegexValidator = _NOT_BLANK, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        untold = ProhibitNullCharactersValidator  # the framework's own check, which no description mentions
        self.validators = [form, *(each for each in self.validators if not isinstance(each, untold))]


class OneOrMore(Words):
    """Values separated by commas, as a tuple. With `choices` each must be one of them; `item` is a value's form."""

    def __init__(self, *, choices: Iterable[str] = (), item: str = _ITEM, **kwargs: Any) -> None:
        options = tuple(choices)
        if options:
            item = "(" + "|".join(re.escape(option) for option in options) + ")"
        form = RegexValidator(
            rf"^{item}(,{item}){{0,{(len(options) or _MOST_ITEMS) - 1}}}\Z",
            message=_("Choose from these, several separated by commas: %s.") % ", ".join(options)
            if options
            else _("Give one value of the right form, or several separated by commas."),
            code="invalid_choice" if options else "invalid",
        )
        super().__init__(**{"trim_whitespace": False, "form": form, **kwargs})

    def run_validation(self, data: Any = serializers.empty) -> Any:
        """Return the parts of the checked text."""
        return tuple(part.strip() for part in super().run_validation(data).split(","))


class KnownValues(OneOrMore):
    """Values that a column of the catalogue holds, in any letter case, as a tuple of the column's spellings."""

    default_error_messages = {"unknown": _("Not known here: {names}.")}

    def __init__(self, *, model: type[Model], column: str, **kwargs: Any) -> None:
        self._model, self._column = model, column
        super().__init__(**kwargs)

    def run_validation(self, data: Any = serializers.empty) -> Any:
        """Return the column's values, or fail naming those it does not hold.

        One query, unless the serializer's context has the column's values as `known[parameter]`.
        """
        wanted = super().run_validation(data)
        column = self.context.get("known", {}).get(self.field_name)
        if column is None:
            column = self._model._default_manager.order_by().values_list(self._column, flat=True).distinct()
        known = {value.lower(): value for value in column}
        if missing := [value for value in wanted if value.lower() not in known]:
            self.fail("unknown", names=", ".join(missing))
        return tuple(known[value.lower()] for value in wanted)


class PageParameters(QueryParameters):
    """What every list takes."""

    limit = WholeNumber(default=200, min_value=1, max_value=500, help_text="Rows per page.")
    cursor = serializers.CharField(
        required=False, max_length=1000, help_text="Where to go on: taken from `next` or `previous`, never made up."
    )

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Return the call's own parameters first, paging last."""
        fields = super().get_fields()
        return {name: fields[name] for name in sorted(fields, key=lambda name: name in ("limit", "cursor"))}
