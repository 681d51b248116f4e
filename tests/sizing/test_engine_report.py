"""The accuracy that the site promises, on the published rows, and that nothing but stated facts decides an answer."""

import csv
import json

import pytest
from django.core.management import CommandError, call_command

from sizing.engine.request import RequestError, read_request
from sizing.facts import MEASURED, TRACKED, presets, read_rows
from sizing.report import answer_row, make_report, stated_card_gib
from sizing.stated_facts import NotAnswerable

ROW_FIELDS = ("answered", "allocated_gib", "reserved_gib", "nvidia_smi_gib", "high_gib", "smallest_card_gb")


@pytest.fixture(scope="module")
def report():
    return make_report(measured=MEASURED, tracked=TRACKED)


def test_measured_rows_are_met_within_the_promised_errors(report):
    found = report["summary"]["measured"]
    assert found["answered_share"] >= 0.85
    assert found["median_error"] <= 0.05
    assert found["p90_error"] <= 0.15
    assert found["danger_share"] <= 0.03
    assert found["bigger_card_share"] <= 0.30
    assert found["oom_called_fits"] * 8 <= found["oom_rows"]


def test_tracked_decoder_steps_are_met_within_the_promised_errors(report):
    found = report["summary"]["tracked"]
    assert found["rows"] >= 240
    assert found["median_error"] <= 0.01
    assert found["p90_error"] <= 0.03


def test_every_row_of_the_report_has_the_fields_of_the_contract(report):
    assert set(report) == {"method_version", "rows", "summary"}
    for row in report["rows"]:
        assert {"id", *ROW_FIELDS} <= set(row)
        assert row["answered"] == (row["allocated_gib"] is not None)
        assert row["answered"] or row["reason"]


def test_the_report_goes_by_task_and_framework(report):
    found = report["summary"]["measured"]
    assert {"full", "lora", "qlora", "inference"} <= set(found["by_task"])
    assert {"torchtune", "litgpt", "hf_trainer", "torchtitan"} <= set(found["by_framework"])
    assert sum(group["rows"] for group in found["by_task"].values()) == found["rows"]


def test_ids_names_and_addresses_steer_nothing():
    checked = 0
    for row in read_rows(MEASURED):
        try:
            answer = answer_row(row)
        except NotAnswerable:
            continue
        other = answer_row(
            {**row, "id": "x", "source_url": "https://example.org/", "source_kind": "", "model_name": ""}
        )
        assert (other.allocated_gib, other.high_gib) == (answer.allocated_gib, answer.high_gib), row["id"]
        checked += 1
    assert checked > 200


def test_what_was_measured_steers_nothing():
    row = next(row for row in read_rows(MEASURED) if row["measured_gib"])
    changed = {**row, "measured_gib": "1", "measured_allocated_gib": "1", "value_as_stated": "1", "tokens_per_s": "1"}
    assert answer_row(changed).allocated_gib == answer_row(row).allocated_gib


def test_the_sites_own_rows_are_the_reference_rows(shared_data):
    own = {row["id"]: row for row in read_rows(MEASURED)}
    for row in read_rows(shared_data / "sizing_measured.csv"):
        assert {name: own[row["id"]][name] for name in row} == row
    report = make_report(measured=shared_data / "sizing_measured.csv", tracked=shared_data / "sizing_tracked.csv")
    assert report["summary"] == make_report(measured=MEASURED, tracked=TRACKED)["summary"]


def test_a_row_of_another_page_is_answered(tmp_path):
    row = {
        **dict.fromkeys(read_rows(MEASURED)[0], ""), "id": "new", "task": "lora", "hf_id": "some/new-llama",
        "params_b": "8.03", "layers": "32", "hidden": "4096", "heads": "32", "kv_heads": "8", "vocab": "128256",
        "intermediate": "14336", "seq_len": "2048", "micro_batch": "1", "precision": "bf16", "n_gpus": "1",
        "trainable": "lora r=16 all linear", "activation_checkpointing": "full", "parallelism": "none",
        "measured_gib": "20", "what_was_measured": "peak allocated", "outcome": "ok", "quality": "A",
    }  # fmt: skip
    path = tmp_path / "rows.csv"
    with path.open("w", newline="") as lines:
        writer = csv.DictWriter(lines, list(row))
        writer.writeheader()
        writer.writerow(row)
    (answer,) = make_report(measured=path, tracked=None)["rows"]
    assert answer["allocated_gib"] == pytest.approx(19.4, abs=0.3)
    assert answer["smallest_card_gb"] == 24


def test_the_card_that_a_row_names_has_its_real_memory():
    assert stated_card_gib({"gpu": "A10G 24GB"}) == 22.07
    assert stated_card_gib({"gpu": "A100 40GB"}) == 39.4


def test_the_command_prints_a_table_and_json(capsys):
    call_command("sizing_report")
    table = capsys.readouterr().out
    assert "all of quality A and B" in table
    call_command("sizing_report", "--json")
    assert json.loads(capsys.readouterr().out)["summary"]["measured"]["rows"] > 200


def test_a_file_that_is_no_table_of_rows_is_an_error_and_not_a_crash(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(CommandError, match="could not be read"):
        call_command("sizing_report", "--measured", str(path))


def test_a_request_reads_as_the_api_does():
    request = read_request({"model": "Qwen/Qwen3-8B", "task": "inference", "batch": 4}, presets=presets())
    assert request.job.framework == "vllm"
    with pytest.raises(RequestError, match="batch"):
        read_request({"model": "qwen3-8b", "batch": 0}, presets=presets())
