"""`gpus/resolve/`: a card, several candidates, or nothing; never a guess."""

import json

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db


def resolve(**parameters: str):
    response = Client().get("/api/v1/gpus/resolve/", parameters)
    return response.status_code, json.loads(response.content)


def test_a_clear_name_gives_its_card_and_how_it_was_found():
    status, found = resolve(name="nvidia-h100-sxm5-80gb")
    assert (status, found["slug"]) == (200, "h100-sxm")
    assert found["matched_by"] in ("alias", "rule", "normalised")


def test_a_name_of_several_cards_is_a_409_with_all_of_them():
    status, problem = resolve(name="H100")
    assert (status, problem["errors"][0]["code"]) == (409, "ambiguous_name")
    assert {"h100-sxm", "h100-pcie"} <= set(problem["candidates"])


def test_hints_settle_what_the_name_leaves_open():
    assert resolve(name="H100", form_factor="PCIe")[1]["slug"] == "h100-pcie"
    assert resolve(name="A100", memory_gb="80", form_factor="SXM")[1]["slug"] == "a100-sxm-80gb"


@pytest.mark.parametrize("name", ["RTX 4090 Laptop GPU", "toaster", "x" * 200, "'; DROP TABLE", "\u0661\u0662"])
def test_a_name_nobody_knows_is_a_404_not_a_near_miss(name):
    status, problem = resolve(name=name)
    assert (status, problem["errors"][0]["code"], problem["candidates"]) == (404, "unknown_name", [])


@pytest.mark.parametrize(
    ("parameters", "field", "code"),
    [
        ({}, "name", "required"),
        ({"name": ""}, "name", "blank"),
        ({"name": "   "}, "name", "blank"),
        ({"name": "x" * 201}, "name", "max_length"),
        ({"name": "H100\x00"}, "name", "null_characters_not_allowed"),
        ({"name": "H100", "memory_gb": "80GB"}, "memory_gb", "invalid"),
        ({"name": "H100", "gpu": "x"}, "gpu", "unknown_parameter"),
    ],
)
def test_bad_parameters_are_refused_by_name(parameters, field, code):
    status, problem = resolve(**parameters)
    assert status == 400
    assert [(error["field"], error["code"]) for error in problem["errors"]] == [(field, code)]
