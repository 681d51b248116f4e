"""Reading JSON bodies: exact numbers, typed fields, and everything that must be refused."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.sources.base import BodyRejected
from catalog.sources.json_body import (
    at_least_one,
    fields_of,
    is_true,
    list_of,
    number_at,
    read_json,
    read_pages,
    text_at,
    texts_at,
)


@given(st.decimals(min_value=0, max_value=10**7, places=6))
def test_a_price_keeps_every_digit(price: Decimal):
    assert read_json(f'{{"price": {price:f}}}'.encode()) == {"price": price}


def test_whole_numbers_are_decimals_too():
    assert isinstance(fields_of(read_json(b'{"count": 8}'), "body")["count"], Decimal)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"  ",
        b"<html><body>Sign in</body></html>",
        b'{"offers": [{"dph_total": 1.2',
        b'{"price": NaN}',
        b'{"price": -Infinity}',
        b'{"price": 1} trailing',
        b"\xff\xfe\x00",
        b'{"a": 1} {"b": 2}',
        b"[" * 100_000,
        b'{"price": 1e99999999999999999999}',
    ],
)
def test_what_is_not_one_whole_json_value_is_refused(content: bytes):
    with pytest.raises(BodyRejected):
        read_json(content)


def test_a_byte_order_mark_is_accepted():
    assert read_json(b"\xef\xbb\xbf[]") == []


def test_pages_one_after_another_are_read_in_order():
    assert read_pages(b'{"page": 1}\n{"page": 2}\n') == [{"page": Decimal(1)}, {"page": Decimal(2)}]


def test_a_page_cut_in_the_middle_refuses_the_whole_body():
    with pytest.raises(BodyRejected):
        read_pages(b'{"page": 1}\n{"page"')


def test_a_field_of_another_type_is_refused_and_a_missing_one_is_not():
    fields = fields_of(read_json(b'{"number": 1.5, "text": "a", "flag": true, "list": ["b"], "null": null}'), "body")
    assert (number_at(fields, "number"), number_at(fields, "null"), number_at(fields, "absent")) == (
        Decimal("1.5"),
        None,
        None,
    )
    assert (text_at(fields, "text"), text_at(fields, "absent"), texts_at(fields, "list")) == ("a", "", ["b"])
    assert (is_true(fields, "flag"), is_true(fields, "absent")) == (True, False)
    for reader, name in ((number_at, "flag"), (number_at, "list"), (text_at, "number"), (is_true, "text")):
        with pytest.raises(BodyRejected):
            reader(fields, name)
    with pytest.raises(BodyRejected):
        texts_at(fields, "text")
    with pytest.raises(BodyRejected):
        list_of([1], "entries")


def test_a_number_beyond_any_price_is_refused():
    with pytest.raises(BodyRejected):
        number_at(fields_of(read_json(b'{"price": 1e300}'), "body"), "price")


def test_an_answer_without_any_price_is_refused_so_that_it_empties_nothing():
    with pytest.raises(BodyRejected, match="no price"):
        list(at_least_one([]))
