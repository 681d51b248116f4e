"""What is sent to `/sizing/`: it leads to an address that says the same; a config goes along, and is stored nowhere."""

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from tests.sizing.on_calculator import LLAMA, PATH, error_at, page, part, rows_of, text_of

pytestmark = pytest.mark.django_db


def send(client, before: str = "", **fields):
    return client.post(f"{PATH}{before}", data=fields)


def query_of(answer) -> dict[str, str]:
    assert answer.status_code == 303
    return {name: values[0] for name, values in parse_qs(urlsplit(answer["Location"]).query).items()}


def test_the_form_leads_to_an_address_without_blank_answers(client, site_data):
    answer = send(client, model="qwen3-8b", params_b="", task="lora", seq_len="4096", loss="", gpu_counts=" ", more="x")
    assert answer["Location"].startswith("/sizing/?")
    assert query_of(answer) == {"model": "qwen3-8b", "task": "lora", "seq_len": "4096"}
    assert client.get(answer["Location"]).status_code == 200


def test_it_stays_in_its_language(client, site_data):
    assert client.post("/pl/sizing/", data={"task": "lora"})["Location"].startswith("/pl/sizing/?")


def test_of_two_models_the_one_that_changed_holds(client):
    before = "?model=qwen3-8b"
    assert query_of(send(client, before, model="qwen3-8b", params_b="13")) == {"params_b": "13"}
    assert query_of(send(client, "?params_b=13", model="phi-4", params_b="13")) == {"model": "phi-4"}
    assert query_of(send(client, model="phi-4")) == {"model": "phi-4"}


@pytest.mark.parametrize("way", ["pasted", "uploaded"])
def test_a_config_becomes_part_of_the_address_and_nothing_else_of_it(client, site_data, way):
    text = json.dumps({**LLAMA, "secret": "not for the address", "_name_or_path": "/home/somebody"}, indent=2)
    fields: dict[str, Any] = {"model": "qwen3-8b", "task": "lora", "seq_len": "2048"}
    if way == "pasted":
        fields["config_text"] = text
    else:
        fields["config_file"] = SimpleUploadedFile("config.json", text.encode())
    answer = send(client, "?model=qwen3-8b", **fields)
    query = query_of(answer)
    assert set(query) == {"config", "task", "seq_len"}
    assert json.loads(query["config"]) == {k: v for k, v in LLAMA.items() if k not in ("torch_dtype", "architectures")}
    assert len(answer["Location"]) < 1000
    shown = client.get(answer["Location"]).content.decode()
    assert "From your config.json: llama, 32 layers, 4096 wide." in text_of(shown)
    named = page(client, model="llama-3.1-8b", task="lora", seq_len="2048")
    assert rows_of(part(shown, "memory")) == rows_of(part(named, "memory"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"{" + b" " * 300_000 + b"}", "larger than 256 KB"),
        (b" " * 3_000_000, "larger than 256 KB"),
        (b"not json", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b'"text"', "one JSON object"),
        (b"[" * 100_000, "not JSON"),
        (b'{"model_type": "llama"}', "has no num_hidden_layers"),
        (json.dumps({**LLAMA, "num_attention_heads": 0}).encode(), "num_attention_heads must lie between"),
        (json.dumps({**LLAMA, "vocab_size": 1.5}).encode(), "vocab_size must be a whole number"),
        (json.dumps({**LLAMA, "num_key_value_heads": 5}).encode(), "num_key_value_heads cannot be right"),
    ],
)
def test_a_config_that_cannot_be_used_is_refused_at_its_field_and_the_rest_stays(client, site_data, text, words):
    for fields in (
        {"config_file": SimpleUploadedFile("config.json", text)},
        {"config_text": text.decode("latin-1")},
    ):
        answer = send(client, task="lora", seq_len="4096", **fields)
        assert answer.status_code == 400
        markup = answer.content.decode()
        assert words in error_at(markup, "config")
        if len(text) < 2_000_000:
            assert 'name="seq_len" value="4096"' in markup


def test_an_empty_file_and_an_empty_text_are_no_config(client):
    answer = send(client, task="lora", config_text="  ", config_file=SimpleUploadedFile("config.json", b""))
    assert query_of(answer) == {"task": "lora"}


def test_layers_of_one_kind_are_counted_in_the_address(client, site_data):
    config = {
        **LLAMA,
        "model_type": "gemma3_text",
        "sliding_window": 1024,
        "layer_types": ["sliding_attention"] * 26 + ["full_attention"] * 6,
    }
    query = query_of(send(client, config_text=json.dumps(config), task="inference", seq_len="8192"))
    assert json.loads(query["config"])["layer_types"] == {"sliding_attention": 26, "full_attention": 6}
    assert "api-body" in page(client, **query)


def test_a_visitor_without_a_token_may_ask_and_gets_no_cookie(client):
    client.handler.enforce_csrf_checks = True
    answer = send(client, task="lora")
    assert answer.status_code == 303
    assert not answer.cookies
    assert not client.get(PATH).cookies
