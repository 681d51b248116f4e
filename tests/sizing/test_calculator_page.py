"""`/sizing/`: what it says equals the API's answer and the engine's; every wrong answer is named at its question."""

import html
import json
import math
import re
from decimal import Decimal
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from django.utils import translation

from catalog.models import Gpu
from common import formats
from sizing.facts import presets
from tests.factories import make_best_ask, make_gpu, make_list_offer, make_live_offer
from tests.sizing.on_calculator import LLAMA, PATH, error_at, page, part, plain, rows_of, tenths, text_of

pytestmark = pytest.mark.django_db

# --- The figures ------------------------------------------------------------------------------------------------

QUERIES = [
    {},
    {"model": "qwen3-8b", "task": "qlora", "seq_len": "4096", "tokens": "500M"},
    {"model": "meta-llama/Llama-3.3-70B-Instruct", "task": "inference", "quantization": "fp8"},
    {"params_b": "13", "task": "lora", "batch": "4", "checkpointing": "none", "gpu_counts": "1 2 16"},
    {"config": json.dumps(LLAMA), "framework": "torchtune", "optimizer": "adamw_8bit"},
]


@pytest.mark.parametrize("language", ["en", "nl", "pl"])
@pytest.mark.parametrize("query", QUERIES)
def test_every_figure_of_the_page_is_the_one_of_the_api(client, site_data, query, language):
    h100 = Gpu.objects.get(slug="h100-sxm")
    make_live_offer(gpu=h100, price="2.88")
    make_live_offer(gpu=h100, price="1.20", market="spot")
    prefix = "" if language == "en" else f"/{language}"
    markup = client.get(f"{prefix}{PATH}?{urlencode({**query, 'show': 'all'})}").content.decode()
    asked = json.loads(html.unescape(re.findall(r'id="api-body">(.*?)</pre>', markup, re.DOTALL)[0]))
    said = client.post("/api/v1/sizing/estimate/", data=json.dumps(asked), content_type="application/json").json()

    memory = part(markup, "memory")
    totals = {row["gpu_count"]: row for row in said["per_gpu"]}
    heads = re.findall(r'id="n(\d+)">.*?≈ (\S+) GiB', markup, re.DOTALL)
    assert [(int(count), shown) for count, shown in heads] == [
        (count, tenths(row["nvidia_smi_gib"], language)) for count, row in totals.items()
    ]
    shown_total = text_of(memory.split("<tfoot>")[1]).split()[-2]
    row = next(row for row in totals.values() if tenths(row["nvidia_smi_gib"], language) == shown_total)
    parts = [line[1] for line in rows_of(memory)]
    assert parts[:-2] == [tenths(row["parts"][name], language) for name in shown_parts(row)]
    assert tenths(row["low_gib"], language) in text_of(memory)
    assert tenths(row["high_gib"], language) in text_of(memory)

    names = {gpu.label: gpu.slug for gpu in Gpu.objects.all()}
    fits = {(fit["gpu"], fit["gpu_count"]): fit for fit in said["fits"]}
    lines = rows_of(part(markup, "verdicts", "</table>"))
    assert len(lines) >= 3
    for line in lines:
        label = line[0].rsplit(" ", 2)[0]
        taken = line[1 + len(totals)].removesuffix(" ×")
        fit = fits[names[label], int(taken)]
        assert line[2 + len(totals)] == plain(formats.whole(Decimal(repr(fit["tokens_per_s"])), language=language))
        assert line[-1].startswith(plain(formats.amount(Decimal(fit["cost_usd"]), language=language)) + " ")
        for count, cell in zip(totals, line[1:], strict=False):
            headroom = abs(Decimal(repr(fits[names[label], count]["headroom_gib"])))
            assert plain(formats.whole(headroom, language=language)) in cell


def shown_parts(row) -> list[str]:
    order = ["weights", "optimizer", "gradients", "buffers", "kv_cache", "activations", "loss", "step"]
    return [name for name in order if row["parts"].get(name, 0) >= 0.005]


def test_the_first_answer_needs_no_question(client, site_data):
    markup = page(client)
    says = text_of(re.findall(r'<p class="answer".*?</p>', markup, re.DOTALL)[0])
    assert re.fullmatch(
        r"It takes [\d.]+ GiB on (one GPU|each of \d GPUs)\. \d × .+ does it in .+ for [\d.,]+ USD\.", says
    )
    assert 'value="llama-3.1-8b"' in markup
    for words in ("Framework HF Trainer", "Optimiser AdamW", "Checkpointing Every block", "Precision BF16"):
        assert words in text_of(part(markup, "assumed"))


def test_the_cheapest_comes_first_and_only_a_live_price_is_marked(client, site_data):
    markup = page(client, show="all", task="lora")
    lines = rows_of(part(markup, "verdicts", "</table>"))
    costs = [(is_tight(line), Decimal(line[-1].split()[0].replace(",", ""))) for line in lines]
    assert costs == sorted(costs), "those that are tight come last"
    assert "<mark" not in markup, "list prices are never marked"
    make_live_offer(gpu=Gpu.objects.get(slug="h100-sxm"), price="0.05")
    assert re.search(r"<mark class=\"mark\">[\d.]+</mark>", page(client, show="all", task="lora"))


def is_tight(line: list[str]) -> bool:
    return line[1 + ["1 ×", "2 ×", "4 ×", "8 ×"].index(line[5])].startswith("tight")


def test_the_best_ask_leads_to_a_ticket_filled_in_and_another_price_to_the_offers(client, site_data):
    make_best_ask(gpu=Gpu.objects.get(slug="h100-sxm"), price="0.10")
    markup = page(client, task="lora", tokens="1B", gpu_counts="4")
    (href,) = re.findall(r'<a class="btn" href="(.*?)">', markup)
    target = urlsplit(html.unescape(href))
    assert (target.path, target.fragment) == ("/market/h100-sxm/", "ticket")
    ticket = parse_qs(target.query)
    said = text_of(re.findall(r'<a class="btn" href=.*?</a>', markup, re.DOTALL)[0])
    assert ticket["kind"] == ["best"]
    assert said == f"Rent {ticket['gpu_count'][0]} × H100 SXM for {ticket['hours'][0]} hours"
    row = next(line for line in rows_of(part(markup, "verdicts", "</table>")) if line[0].startswith("H100 SXM"))
    assert int(ticket["hours"][0]) == math.ceil(Decimal(row[4])), "begun hours are full ones"
    form = client.get(html.unescape(href)).content.decode()
    assert f'name="hours" value="{ticket["hours"][0]}"' in form
    assert 'name="gpu_count" value="4"' in form
    assert "/gpus/a100-sxm-80gb/#offers" in markup


def test_a_job_longer_than_an_order_leads_to_the_longest_order_and_says_so(client, site_data):
    make_best_ask(gpu=Gpu.objects.get(slug="h100-sxm"), price="0.01")
    markup = page(client, task="full", tokens="500B", gpu_counts="2")
    assert "Rent 2 × H100 SXM for 720 hours" in text_of(markup)
    assert "One order lasts at most 720 hours, so it takes several in a row." in text_of(markup)


def test_more_gpus_than_are_free_here_are_not_what_is_offered(client):
    gpu = make_gpu(label="H100 SXM", nvlink_gb_s=900)
    make_best_ask(gpu=gpu, price="2.00", devices=2)
    rows = rows_of(part(page(client, task="lora"), "verdicts", "</table>"))
    assert rows[0][5] == "2 ×"
    larger = page(client, task="full", gpu_counts="4 8")
    assert "Place an order" in text_of(part(larger, "verdicts", "</table>"))
    assert "/market/h100-sxm/?kind=limit&amp;gpu_count=8&amp;hours=" in larger


def test_a_list_price_says_its_date_and_a_live_one_its_age(client):
    make_list_offer(gpu=make_gpu(label="H100 SXM"), price="2.88")
    make_live_offer(gpu=make_gpu(slug="h200-sxm", label="H200", memory_gb=141), price="3.50", cloud="nebius")
    words = text_of(part(page(client, task="lora"), "verdicts", "</table>"))
    assert "list price, 7 May 2026" in words
    assert "Nebius on-demand, 12 min ago" in words


def test_costs_are_shown_in_the_chosen_currency_or_stay_in_usd_with_the_reason(client, site_data):
    assert "there is no rate for it. They are in USD" in page(client, currency="EUR")


def test_spot_shows_its_waste_and_where_it_stops_paying(client):
    gpu = make_gpu(label="H100 SXM")
    make_live_offer(gpu=gpu, price="3.00")
    make_live_offer(gpu=gpu, price="1.50", market="spot")
    query = {
        "task": "lora",
        "gpu_counts": "1",
        "interruption_hours": "6",
        "save_seconds": "60",
        "restart_seconds": "300",
    }
    (line,) = rows_of(part(page(client, **query), "spot"))
    assert line[1:3] == ["1.50", "8.8"]
    usual, spot = Decimal(line[4]), Decimal(line[3])
    assert spot == pytest.approx(usual / 2 / Decimal("0.9116"), rel=Decimal("0.001"))
    assert "spot is below 2.73" in line[5]
    rare = rows_of(part(page(client, **{**query, "interruption_hours": "1"}), "spot"))
    assert Decimal(rare[0][2]) > 25
    assert Decimal(rare[0][3]) > spot


# --- Remedies ---------------------------------------------------------------------------------------------------


def test_each_remedy_leads_to_the_page_that_has_its_figure(client, site_data):
    query = {"model": "llama-3.1-8b", "task": "full", "batch": "4", "checkpointing": "none", "gpu_counts": "1"}
    section = part(page(client, **query), "help")
    rows = rows_of(section)
    links = [html.unescape(href) for href in re.findall(r'<th scope="row"><a href="(.*?)"', section)]
    assert rows[0][0] == "As asked for"
    for words in ("Checkpoint every block", "Half the batch", "AdamW in 8 bits", "A loss fused with the head"):
        assert any(line[0] == words for line in rows)
    assert len(links) == len(rows) - 1
    for line, link in zip(rows[1:], links, strict=True):
        shown = page(client, **{name: values[0] for name, values in parse_qs(urlsplit(link).query).items()})
        (total,) = re.findall(r'id="n\d+">.*?≈ (\S+) GiB', shown, re.DOTALL) or [
            text_of(part(shown, "memory").split("<tfoot>")[1]).split()[-2]
        ]
        assert total == line[1], (line, link)


def test_what_no_gpu_holds_says_so_and_what_would_help(client, site_data):
    markup = page(client, model="llama-3.1-405b", task="full", gpu_counts="1")
    assert "holds it" in text_of(re.findall(r'<p class="answer".*?</p>', markup, re.DOTALL)[0])
    assert "QLoRA on a 4-bit base" in text_of(part(markup, "help"))


def test_without_a_catalogue_memory_is_answered_all_the_same(client):
    markup = page(client, params_b="8", task="qlora")
    assert "It takes" in text_of(markup)
    assert "The catalogue is empty" in text_of(markup)


# --- Wrong answers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "field", "words"),
    [
        ({"model": "no-such-model"}, "model", "not among the models known here"),
        ({"model": "<script>alert(1)</script>"}, "model", "not among the models known here"),
        ({"model": "x" * 5000}, "model", "at most 200 characters"),
        ({"params_b": "NaN"}, "params_b", "between 0.001 and 100,000"),
        ({"params_b": "inf"}, "params_b", "between 0.001 and 100,000"),
        ({"params_b": "-7"}, "params_b", "between 0.001 and 100,000"),
        ({"params_b": "1000000"}, "params_b", "between 0.001 and 100,000"),
        ({"model": "qwen3-8b", "params_b": "8"}, "model", "not two of them"),
        ({"tokens": "0"}, "tokens", "above 0"),
        ({"tokens": "NaN"}, "tokens", "above 0"),
        ({"tokens": "-5M"}, "tokens", "above 0"),
        ({"tokens": "9" * 30}, "tokens", "at most 20 characters"),
        ({"tokens": "99999999999999T"}, "tokens", "above 0"),
        ({"task": "sing"}, "task", "not one of the available choices"),
        ({"seq_len": "0"}, "seq_len", "greater than or equal to 1"),
        ({"seq_len": "1e3"}, "seq_len", "whole number"),
        ({"seq_len": "99999999999"}, "seq_len", "less than or equal to"),
        ({"batch": "\x00"}, "batch", "whole number"),
        ({"gpu_counts": "1,2,3,4,5"}, "gpu_counts", "four whole numbers"),
        ({"gpu_counts": "0"}, "gpu_counts", "four whole numbers"),
        ({"gpu_counts": "two"}, "gpu_counts", "four whole numbers"),
        ({"gpu_counts": "99999"}, "gpu_counts", "No more than 16,384"),
        ({"quantization": "nf4", "task": "full"}, "quantization", "exclude each other"),
        ({"framework": "vllm", "task": "full"}, "framework", "does not train"),
        ({"loss": "NaN"}, "loss", "not one of the available choices"),
        ({"interruption_hours": "0"}, "interruption_hours", "greater than or equal to 1"),
        ({"config": "{"}, "config", "not JSON"),
        ({"config": "[]"}, "config", "one JSON object"),
        ({"config": '{"hidden_size": NaN}'}, "config", "not JSON"),
        ({"config": "[" * 2400}, "config", "not JSON"),
        ({"config": "{}"}, "config", "has no num_hidden_layers"),
        ({"config": '{"hidden_size":' + "9" * 2400 + "}"}, "config", ""),
        ({"config": json.dumps({**LLAMA, "hidden_size": -1})}, "config", "hidden_size must lie between 1 and"),
        ({"config": json.dumps({**LLAMA, "hidden_size": "4096"})}, "config", "hidden_size must be a whole number"),
        ({"config": json.dumps({**LLAMA, "sliding_window": 9, "layer_types": {"sliding_attention": 10**9}})}, "config", "layer_types cannot be right"),
        ({"config": "x" * 3000}, "config", "at most 2500 characters"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_said_at_its_field_and_nothing_is_answered(client, site_data, query, field, words):
    markup = page(client, **query)
    assert words in error_at(markup, field)
    assert "<script>alert" not in markup
    assert "No answer yet." in markup
    assert "api-body" not in markup


@pytest.mark.parametrize("language", ["nl", "pl"])
def test_the_page_answers_in_every_language(client, site_data, language):
    markup = client.get(f"/{language}{PATH}").content.decode()
    assert f'<html lang="{language}">' in markup
    assert 'id="api-body"' in markup
    with translation.override(language):
        assert translation.gettext("Clouds") in markup


@pytest.mark.parametrize("query", [{}, {"task": "inference"}, {"model": "llama-3.1-405b"}])
def test_a_calculation_takes_few_queries(client, site_data, django_assert_max_num_queries, query):
    with django_assert_max_num_queries(12):
        page(client, **query)


def test_every_model_of_the_list_is_answered(client, site_data):
    for name in presets():
        assert 'id="api-body"' in page(client, model=name, task="lora")


def test_the_masthead_leads_here(client, site_data):
    assert '<a href="/sizing/">Sizing</a>' in client.get("/").content.decode()
    assert '<a href="/sizing/" aria-current="page">Sizing</a>' in page(client)
