"""Problem documents: one form for every error under `/api/`, and no more said than helps the caller."""

import json
import logging

import pytest
from django.http import QueryDict
from django.test import Client, RequestFactory
from rest_framework.exceptions import Throttled
from rest_framework.views import APIView

from common.problems import CONTENT_TYPE

MEMBERS = ["type", "title", "status", "detail", "errors"]


def answer_of(error: Exception, path: str = "/api/v1/x/"):
    class Broken(APIView):
        def get(self, request):
            raise error

    return Broken.as_view()(RequestFactory().get(path))


def document_of(response):
    assert response["Content-Type"] == CONTENT_TYPE
    document = json.loads(response.content)
    assert list(document)[:5] == MEMBERS
    assert document["status"] == response.status_code
    for error in document["errors"]:
        assert list(error) == ["field", "code", "message"]
    return document


def test_an_error_nobody_expected_is_a_500_that_tells_nothing_of_it(caplog):
    with caplog.at_level(logging.ERROR, logger="django.request"):
        response = answer_of(RuntimeError("password=hunter2"))
    document = document_of(response)
    assert document["status"] == 500
    assert "hunter2" not in response.content.decode()
    assert "hunter2" in caplog.text  # the log has all of it


def test_waiting_time_comes_as_a_header():
    response = answer_of(Throttled(wait=7.2))
    assert document_of(response)["status"] == 429
    assert response["Retry-After"] == "8"  # whole seconds, never too few


def test_more_parameters_than_django_reads_are_a_bad_request_not_a_crash():
    class Reads(APIView):
        def get(self, request):
            return request.query_params

    many = "&".join(f"p{number}=1" for number in range(1001))
    assert document_of(Reads.as_view()(RequestFactory().get(f"/api/v1/x/?{many}")))["status"] == 400


@pytest.mark.parametrize(
    "path",
    [
        "/api/nothing/",
        "/api/v1/nothing",
        "/api/v1/nothing/",
        "/api/v1/gpus/%00/",
        "/api/v1/gpus/a%0Ab/",
        "/api/v1/",
        "/api/",
    ],
)
@pytest.mark.parametrize("method", ["get", "head", "post", "delete", "options"])
def test_an_address_that_leads_nowhere_is_a_404_document_for_every_method(method, path):
    response = getattr(Client(), method)(path)
    assert response.status_code == 404
    assert response["Content-Type"] == CONTENT_TYPE
    if method != "head":
        assert document_of(response)["errors"][0]["code"] == "not_found"


def test_a_get_that_only_lacks_its_last_slash_is_sent_on_with_its_parameters():
    response = Client().get("/api/v1/gpus?limit=3")
    assert (response.status_code, response["Location"]) == (301, "/api/v1/gpus/?limit=3")
    assert Client().post("/api/v1/gpus").status_code == 404


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete", "options"])
def test_a_method_a_call_does_not_have_is_a_405_that_says_which_it_has(method):
    response = getattr(Client(), method)("/api/v1/gpus/")
    assert document_of(response)["status"] == 405
    assert response["Allow"] == "GET, HEAD"


def test_a_format_nobody_makes_is_a_406_document():
    assert document_of(Client().get("/api/v1/prices/", headers={"accept": "image/png"}))["status"] == 406


@pytest.mark.parametrize("path", ["/api/v1/schema/"])
def test_every_thing_wrong_with_a_request_is_told_at_once(path):
    document = document_of(Client().get(f"{path}?one=1&two=2"))
    assert {(error["field"], error["code"]) for error in document["errors"]} == {
        ("one", "unknown_parameter"),
        ("two", "unknown_parameter"),
    }
    assert document["detail"] == "2 things are wrong with this request; see errors."


def test_one_thing_wrong_is_told_in_the_detail_with_its_field():
    document = document_of(Client().get("/api/v1/schema/?one=1"))
    assert document["detail"] == "one: There is no parameter of this name."


def test_a_name_given_without_a_value_counts_as_given():
    assert QueryDict("one")["one"] == ""
    assert document_of(Client().get("/api/v1/schema/?one"))["errors"][0]["field"] == "one"
