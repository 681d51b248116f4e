"""`estimate` on the command line: the API's fields, the API's answer."""

import json

import pytest
from django.core.management import CommandError, call_command

from sizing.bench import measure

pytestmark = pytest.mark.django_db


def run(capsys, *arguments):
    call_command("estimate", *arguments)
    return capsys.readouterr().out


def test_a_preset_is_answered_as_the_api_answers(capsys):
    answer = json.loads(run(capsys, "--model", "llama-3.1-8b", "--task", "lora", "--gpu-counts", "1,2", "--json"))
    assert [row["gpu_count"] for row in answer["per_gpu"]] == [1, 2]
    assert answer["parameters"] == 8_030_261_248


def test_people_get_a_table_with_assumptions(capsys, site_data):
    text = run(capsys, "--model", "qwen2.5-7b", "--task", "qlora", "--seq-len", "1024")
    assert "7,615,616,512 parameters" in text
    assert "fits (smallest first)" in text
    assert "assumed:" in text


def test_a_config_file_is_read(capsys, tmp_path):
    path = tmp_path / "config.json"
    fields = {
        "model_type": "gpt2",
        "n_embd": 768,
        "n_layer": 12,
        "n_head": 12,
        "vocab_size": 50257,
        "n_positions": 1024,
    }
    path.write_text(json.dumps(fields))
    assert json.loads(run(capsys, "--config", str(path), "--json"))["parameters"] == 124_439_808


@pytest.mark.parametrize("content", ["", "{", "[" * 100_000, "x" * 600_000])
def test_a_config_file_that_is_none_is_an_error(capsys, tmp_path, content):
    path = tmp_path / "config.json"
    path.write_text(content)
    with pytest.raises(CommandError, match="config: "):
        run(capsys, "--config", str(path))


def test_a_wrong_field_is_named(capsys):
    with pytest.raises(CommandError, match="quantization: "):
        run(capsys, "--model", "llama-3.1-8b", "--task", "full", "--quantization", "nf4")
    with pytest.raises(CommandError, match="model: "):
        run(capsys, "--model", "no-such-model")


def test_the_benchmark_reports_estimates_per_second():
    assert measure()["ours"] > 200
