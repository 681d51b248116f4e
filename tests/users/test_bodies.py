"""Bodies of keyed calls: every fault is told at its field, nothing is taken for what it is not, nothing is a 500."""

import json
from decimal import Decimal

import pytest
from django.test import RequestFactory
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from tests.factories import NOW, make_organisation
from users.api.body import MOST_BYTES, Amount, OneOf, StrictSerializer, Text, Whole
from users.api.view import OrganisationView
from users.api_keys import issue_key
from users.models import Scope


class Inner(StrictSerializer):
    """An object in a body."""

    size = Whole(required=False, min_value=1)


class Body(StrictSerializer):
    """One field of each kind."""

    text = Text(max_length=5, required=False)
    count = Whole(required=False, min_value=1, max_value=9)
    currency = OneOf(choices=["EUR", "USD"], required=False)
    amount = Amount(required=False)
    inner = Inner(required=False)


class Notes(OrganisationView):
    """A call with a body."""

    scopes = {"POST": Scope.READ}

    def post(self, request: Request) -> Response:
        Body.read(request.data)
        return Response({})


def codes_of(body: object) -> dict[str, str]:
    """Return the first code by field; empty where the body is good."""
    try:
        Body.read(body)
    except ValidationError as problem:
        assert isinstance(problem.detail, dict)  # noqa: PT017  # what is looked at comes after
        return {name: _first(errors) for name, errors in problem.detail.items()}
    return {}


def _first(errors) -> str:
    return (
        errors[0].code
        if isinstance(errors, list)
        else f"in {next(iter(errors))}: {_first(next(iter(errors.values())))}"
    )


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        ({}, {}),
        ({"text": " a ", "count": 3, "currency": "EUR", "amount": "25.00", "inner": {"size": 1}}, {}),
        ({"count": 3.0}, {}),
        ({"colour": 1}, {"colour": "unknown_field"}),
        ({"colour": 1, "count": 0}, {"colour": "unknown_field", "count": "min_value"}),
        ({"inner": {"colour": 1}}, {"inner": "in colour: unknown_field"}),
        ([], {"non_field_errors": "invalid"}),
        (None, {"non_field_errors": "null"}),
        ("text", {"non_field_errors": "invalid"}),
        ({"text": 5}, {"text": "invalid"}),
        ({"text": True}, {"text": "invalid"}),
        ({"text": ["a"]}, {"text": "invalid"}),
        ({"text": "a\x00"}, {"text": "null_characters_not_allowed"}),
        ({"text": None}, {"text": "null"}),
        ({"count": "3"}, {"count": "invalid"}),
        ({"count": True}, {"count": "invalid"}),
        ({"count": 3.5}, {"count": "invalid"}),
        ({"count": float("inf")}, {"count": "invalid"}),
        ({"count": 10**400}, {"count": "max_value"}),
        ({"currency": "eur"}, {"currency": "invalid_choice"}),
        ({"currency": ["EUR"]}, {"currency": "invalid_choice"}),
        ({"amount": 25}, {"amount": "invalid"}),
        ({"amount": "25,00"}, {"amount": "invalid"}),
        ({"amount": "-1"}, {"amount": "invalid"}),
        ({"amount": "1e3"}, {"amount": "invalid"}),
        ({"amount": "1.0000001"}, {"amount": "invalid"}),
        ({"amount": "01"}, {"amount": "invalid"}),
        ({"amount": "٣"}, {"amount": "invalid"}),
        ({"amount": "1\n"}, {"amount": "invalid"}),
        ({"amount": "12345678901"}, {"amount": "invalid"}),
    ],
)
def test_each_fault_is_told_at_its_field(body, codes):
    assert codes_of(body) == codes


@given(st.decimals(min_value=0, max_value=Decimal("9999999999.999999"), places=6))
def test_an_amount_is_read_to_the_micro(value):
    assert Body.read({"amount": f"{value:.6f}"}) == {"amount": value}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*Body().fields, "x"]), JSON))
def test_whatever_is_sent_is_read_or_refused(body):
    codes_of(body)


@pytest.fixture
def secret(db) -> str:
    issued = issue_key(
        organisation=make_organisation(), name="n", scopes=["read"], created_by=None, expires_at=None, now=NOW
    )
    return issued.secret


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (b"", 200, ""),  # as an object without fields
        (b"{", 400, "parse_error"),
        (b'{"text": "a", "text": "b"}', 400, "parse_error"),
        (b'{"count": NaN}', 400, "parse_error"),
        (b'{"text": "\\ud800"}', 400, "parse_error"),
        (b'{"\\udfff": 1}', 400, "parse_error"),
        (b"\xff\xfe", 400, "parse_error"),
        (b"[" * 50_000, 400, "parse_error"),
        (b'{"inner": ' * 20 + b"1" + b"}" * 20, 400, "parse_error"),
        (b'{"count": ' + b"9" * 5000 + b"}", 400, "parse_error"),
        (b'{"text": "' + b"a" * MOST_BYTES + b'"}', 413, "too_large"),
        (b'{"count": 1e999}', 400, "invalid"),
        (b'{"text": "\\u00e9"}', 200, ""),
    ],
)
def test_a_body_that_is_no_json_is_refused_and_nothing_is_a_500(secret, sent, status, code):
    request = RequestFactory().post(
        "/api/v1/notes/", sent, content_type="application/json", headers={"Authorization": f"Bearer {secret}"}
    )
    response = Notes.as_view()(request)
    assert response.status_code == status
    assert not code or json.loads(response.content)["errors"][0]["code"] == code


def test_another_media_type_is_refused(secret):
    request = RequestFactory().post("/api/v1/notes/", {"text": "a"}, headers={"Authorization": f"Bearer {secret}"})
    assert Notes.as_view()(request).status_code == 415
