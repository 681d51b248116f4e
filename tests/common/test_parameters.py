"""Strict parameters: what each field lets through, and what it says of the rest."""

from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from django.http import QueryDict
from hypothesis import given
from hypothesis import strategies as st
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from common.parameters import Number, OneOrMore, PageParameters, QueryParameters, WholeNumber


class Sample(QueryParameters):
    count = WholeNumber(required=False, min_value=1, max_value=1000)
    price = Number(required=False, min_value=Decimal(0), max_value=Decimal(1_000_000))
    market = OneOrMore(required=False, choices=("spot", "on_demand"))
    country = OneOrMore(required=False, item="[A-Za-z]{2}")
    word = serializers.CharField(required=False, max_length=5)


def read(**values: str):
    query = QueryDict(mutable=True)
    query.update(values)
    return Sample.read(query)


def codes(query: str) -> dict[str, str]:
    with pytest.raises(ValidationError) as refused:
        Sample.read(QueryDict(query))
    detail: Any = refused.value.detail
    return {field: errors[0].code for field, errors in detail.items()}


def test_values_come_back_typed():
    assert read(count="8", price="2.50", market="spot,on_demand", country="NL", word="a") == {
        "count": 8,
        "price": Decimal("2.5"),
        "market": ("spot", "on_demand"),
        "country": ("NL",),
        "word": "a",
    }


def test_what_is_not_given_is_not_there():
    assert read() == {}


@pytest.mark.parametrize(
    "text",
    ["", " ", "1.0", "1_0", " 1", "١", "1e2", "0x1", "nan", "None", "true", "1\x00", "9" * 19, "9" * 5000, "--1"],
)
def test_only_digits_are_a_whole_number(text):
    with pytest.raises(ValidationError) as refused:
        read(count=text)
    assert list(refused.value.detail) == ["count"]


@pytest.mark.parametrize("text", ["0", "-1", "1001"])
def test_a_whole_number_out_of_bounds_names_its_parameter(text):
    assert codes(f"count={text}")["count"] in ("min_value", "max_value")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nan",
        "NaN",
        "Infinity",
        "-inf",
        "1_0",
        "１",
        "1,5",
        ".5",
        "1e99999",
        "1e400",
        "0x1",
        "-0.01",
        "1e7",
        "9" * 41,
    ],
)
def test_odd_numbers_are_refused_by_name(text):
    with pytest.raises(ValidationError) as refused:
        read(price=text)
    assert list(refused.value.detail) == ["price"]


@given(st.floats(min_value=0, max_value=1_000_000, allow_nan=False))
def test_any_number_in_bounds_is_read_as_programs_print_it(value):
    assert abs(read(price=repr(value))["price"] - Decimal(repr(value))) < Decimal("1e-9")


@given(st.text(max_size=30))
def test_no_text_at_all_makes_a_field_fail_in_another_way(text):
    for field in ("count", "price", "market", "country", "word"):
        with suppress(ValidationError):
            read(**{field: text})


@pytest.mark.parametrize(
    "text", ["", ",", "spot,", ",spot", "spot,,on_demand", "spot, on_demand", "SPOT", "x", "spot\n"]
)
def test_a_list_holds_only_its_choices(text):
    with pytest.raises(ValidationError) as refused:
        read(market=text)
    assert list(refused.value.detail) == ["market"]


def test_a_refused_choice_says_what_there_is():
    with pytest.raises(ValidationError, match="spot, on_demand"):
        read(market="auction")


def test_unknown_and_repeated_parameters_are_told_beside_bad_values():
    assert codes("cuont=1&word=a&word=b&country=NLD") == {
        "cuont": "unknown_parameter",
        "word": "repeated",
        "country": "invalid",
    }


@pytest.mark.parametrize("text", ["0", "501", "-1", "ten", "", "1.5", "1e2"])
def test_a_page_has_1_to_500_rows(text):
    with pytest.raises(ValidationError) as refused:
        PageParameters.read(QueryDict(f"limit={text}"))
    assert list(refused.value.detail) == ["limit"]


def test_a_page_has_200_rows_unless_told_otherwise():
    assert PageParameters.read(QueryDict())["limit"] == 200
    assert PageParameters.read(QueryDict("limit=500"))["limit"] == 500
