"""POST sizing/estimate/: the contract, and every way to ask for nonsense."""

import json

import pytest

pytestmark = [pytest.mark.django_db, pytest.mark.urls("sizing.api_urls")]
ADDRESS = "/sizing/estimate/"
LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
}


@pytest.fixture
def ask(client):
    def post(body, **extra):
        text = body if isinstance(body, bytes | str) else json.dumps(body)
        return client.post(ADDRESS, data=text, content_type="application/json", **extra)

    return post


def problem_of(response, *, status=400):
    assert response.status_code == status, response.content[:500]
    assert response["Content-Type"] == "application/problem+json"
    return response.json()


def field_of(response):
    return problem_of(response)["errors"][0]["field"]


def test_an_answer_has_the_parts_of_the_contract_and_no_prices_where_there_are_none(ask, site_data):
    answer = ask({"model": "llama-3.1-8b", "task": "full", "tokens": 10**9, "gpu_counts": [1, 8]}).json()
    assert set(answer) == {"parameters", "per_gpu", "fits", "assumptions", "method_version"}
    assert answer["parameters"] == 8_030_261_248
    for row in answer["per_gpu"]:
        assert sum(row["parts"].values()) == pytest.approx(row["allocated_gib"], abs=0.01)
        assert row["low_gib"] < row["allocated_gib"] < row["reserved_gib"] < row["nvidia_smi_gib"]
    h100 = next(fit for fit in answer["fits"] if fit["gpu"] == "h100-sxm" and fit["gpu_count"] == 8)
    assert h100["verdict"] == "fits"
    assert h100["hours"] > 0
    unpriced = [fit for fit in answer["fits"] if fit["price_usd_per_gpu_hour"] is None]
    assert unpriced
    assert all(fit["cost_usd"] is None and fit["price_kind"] is None for fit in unpriced)


def test_a_price_of_the_catalogue_makes_a_cost(ask, site_data):
    answer = ask({"model": "llama-3.1-8b", "task": "lora", "tokens": 10**9, "gpu_counts": [1]}).json()
    priced = [fit for fit in answer["fits"] if fit["cost_usd"]]
    for fit in priced:
        cost = float(fit["price_usd_per_gpu_hour"]) * fit["hours"] * fit["gpu_count"]
        assert float(fit["cost_usd"]) == pytest.approx(cost, rel=0.01, abs=0.02)


def test_without_a_catalogue_memory_is_answered_all_the_same(ask):
    answer = ask({"params_b": 8, "task": "qlora"}).json()
    assert answer["fits"] == []
    assert answer["per_gpu"][0]["allocated_gib"] > 4


def test_what_is_left_out_is_told(ask):
    assumptions = " ".join(ask({"config": LLAMA, "task": "lora"}).json()["assumptions"])
    for field in ("framework", "seq_len", "micro_batch", "precision", "optimizer", "checkpointing", "lora_rank"):
        assert f"{field}: " in assumptions


def test_a_config_that_says_it_is_quantised_is_believed(ask):
    body = {"config": LLAMA, "task": "inference", "gpu_counts": [1]}
    plain = ask(body).json()["per_gpu"][0]["parts"]["weights"]
    body["config"] = LLAMA | {"quantization_config": {"quant_method": "fp8"}}
    assert ask(body).json()["per_gpu"][0]["parts"]["weights"] < 0.6 * plain


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "model"),
        ({"model": "llama-3.1-8b", "params_b": 8}, "params_b"),
        ({"model": "no-such-model"}, "model"),
        ({"model": 7}, "model"),
        ({"model": "llama-3.1-8b", "colour": "red"}, "colour"),
        ({"model": "llama-3.1-8b", "\ud800": 1}, "\\ud800"),
        ({"model": "llama-3.1-8b", "task": "sing"}, "task"),
        ({"model": "llama-3.1-8b", "seq_len": -1}, "seq_len"),
        ({"model": "llama-3.1-8b", "seq_len": "2048"}, "seq_len"),
        ({"model": "llama-3.1-8b", "seq_len": True}, "seq_len"),
        ({"model": "llama-3.1-8b", "seq_len": 10**3000}, "seq_len"),
        ({"model": "llama-3.1-8b", "micro_batch": 1.5}, "micro_batch"),
        ({"model": "llama-3.1-8b", "gpu_counts": []}, "gpu_counts"),
        ({"model": "llama-3.1-8b", "gpu_counts": [0]}, "gpu_counts"),
        ({"model": "llama-3.1-8b", "gpu_counts": [1] * 17}, "gpu_counts"),
        ({"model": "llama-3.1-8b", "lora_targets": ["tail"]}, "lora_targets"),
        ({"model": "llama-3.1-8b", "task": "full", "quantization": "nf4"}, "quantization"),
        ({"model": "llama-3.1-8b", "task": "qlora", "quantization": "none"}, "quantization"),
        ({"model": "llama-3.1-8b", "task": "lora", "framework": "vllm"}, "framework"),
        ({"params_b": 0}, "params_b"),
        ({"params_b": 10**400}, "params_b"),
        ({"params_b": "8"}, "params_b"),
        ({"config": []}, "config"),
        ({"config": {}}, "config.num_hidden_layers"),
        ({"config": LLAMA | {"num_hidden_layers": -3}}, "config.num_hidden_layers"),
        ({"config": LLAMA | {"num_hidden_layers": 10**30}}, "config.num_hidden_layers"),
        ({"config": LLAMA | {"vocab_size": "many"}}, "config.vocab_size"),
        ({"config": LLAMA | {"hidden_size": {"a": {"b": []}}}}, "config.hidden_size"),
        ({"config": LLAMA | {"num_key_value_heads": 7}}, "config.num_key_value_heads"),
        ({"config": LLAMA | {"n_layer": 31}}, "config.n_layer"),
        ({"config": LLAMA | {"model_type": ["llama"]}}, "config.model_type"),
        ({"config": LLAMA | {"tie_word_embeddings": "yes"}}, "config.tie_word_embeddings"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named(ask, body, field):
    assert field_of(ask(body)) == field


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"text"',
        b"null",
        b"\xff\xfe",
        b'{"params_b": NaN}',
        b'{"params_b": Infinity}',
        b'{"params_b": 8, "params_b": 9}',
        b'{"config": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"config": ' + b'{"a":' * 60 + b"1" + b"}" * 60 + b"}",
        b'{"seq_len": ' + b"9" * 5_000 + b"}",
    ],
)
def test_a_body_that_is_no_request_is_refused(ask, body):
    assert problem_of(ask(body))["errors"]


def test_a_body_of_ten_megabytes_is_refused_unread(ask):
    problem = problem_of(ask(b'{"config": "' + b"x" * 10_000_000 + b'"}'), status=413)
    assert "512 KB" in problem["detail"]


def test_other_methods_media_types_and_query_parameters_are_refused(client, ask):
    problem_of(client.get(ADDRESS), status=405)
    problem_of(client.post(ADDRESS, data="a=b", content_type="text/plain"), status=415)
    response = client.post(f"{ADDRESS}?verbose=1", data="{}", content_type="application/json")
    assert field_of(response) == "verbose"
