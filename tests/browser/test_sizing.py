"""The calculator in a browser: answers follow the questions, an address is a whole state, a config goes in, a ticket comes out."""

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from catalog.models import Gpu
from tests.marketplace.on_pages import on_offer

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
URL = "/sizing/"
CONFIG = {
    "model_type": "qwen2",
    "hidden_size": 3584,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "intermediate_size": 18944,
    "vocab_size": 152064,
    "architectures": ["Qwen2ForCausalLM"],
}


def query(page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def waits_for_query(page, **values) -> None:
    page.wait_for_function(
        "wanted => Object.entries(wanted).every(([n, v]) => new URLSearchParams(location.search).get(n) === v)",
        arg=values,
        timeout=10_000,
    )


def test_the_answer_and_the_address_follow_the_questions_without_a_new_page(open_page):
    visit = open_page(URL)
    page = visit.page
    before = page.inner_text("#says")
    page.evaluate("window.stays = true")
    page.select_option("#id_task", "qlora")
    waits_for_query(page, task="qlora", model="llama-3.1-8b")
    assert page.inner_text("#says") != before
    page.fill("#id_params_b", "70")
    waits_for_query(page, params_b="70")
    assert "model" not in query(page), "the number took the place of the name"
    assert page.input_value("#id_model") == ""
    assert page.evaluate("window.stays"), "no page was loaded"
    assert visit.complaints == []
    said = page.inner_text("main")
    page.reload()
    assert page.inner_text("main") == said, "the address says all of it"
    assert page.input_value("#id_params_b") == "70"


def test_a_wrong_answer_is_said_at_its_field_while_one_types_and_goes_when_corrected(open_page):
    page = open_page(URL).page
    page.fill("#id_tokens", "0")
    page.wait_for_selector("#id_tokens_error", timeout=10_000)
    assert page.get_attribute("#id_tokens", "aria-invalid") == "true"
    assert page.inner_text("#answer .answer") == "No answer yet."
    page.fill("#id_tokens", "2B")
    page.wait_for_selector("#id_tokens_error", state="detached", timeout=10_000)
    assert page.get_attribute("#id_tokens", "aria-invalid") is None
    assert "GiB" in page.inner_text("#says")
    page.fill("#id_tokens", "3B")
    waits_for_query(page, tokens="3B")
    assert "GiB" in page.inner_text("#says")


@pytest.mark.parametrize("javascript", [True, False])
def test_the_button_leads_to_an_address_that_opens_the_same_page_elsewhere(open_page, javascript):
    page = open_page(URL, width=360, javascript=javascript).page
    page.fill("#id_model", "qwen3-8b")
    page.select_option("#id_task", "lora")
    page.fill("#id_tokens", "500M")
    page.click("#questions button[type=submit]")
    page.wait_for_url("**/sizing/?*")
    assert query(page) == {"model": "qwen3-8b", "task": "lora", "seq_len": "2048", "batch": "1", "tokens": "500M"}
    said = page.inner_text("main")
    elsewhere = open_page(f"{URL}?{urlsplit(page.url).query}", width=360).page
    assert elsewhere.inner_text("main") == said


@pytest.mark.parametrize("javascript", [True, False])
def test_an_uploaded_config_is_answered_and_stays_while_other_questions_change(open_page, tmp_path, javascript):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(CONFIG))
    visit = open_page(f"{URL}?task=inference&seq_len=8192", javascript=javascript)
    page = visit.page
    page.click("text=or paste or upload a config.json")
    page.set_input_files("#id_config_file", str(file))
    page.click("#questions button[type=submit]")
    page.wait_for_url("**config=*")
    assert "From your config.json: qwen2, 28 layers, 3584 wide." in page.inner_text("#questions")
    assert json.loads(query(page)["config"]) == {k: v for k, v in CONFIG.items() if k != "architectures"}
    assert query(page)["task"] == "inference"
    says = page.inner_text("#says")
    page.fill("#id_seq_len", "32768")
    if javascript:
        waits_for_query(page, seq_len="32768")
    else:
        page.click("#questions button[type=submit]")
        page.wait_for_url("**seq_len=32768*")
    assert "config" in query(page)
    assert page.inner_text("#says") != says
    page.click("text=Take it away")
    page.wait_for_url(lambda url: "config" not in url)
    assert page.input_value("#id_model") == "llama-3.1-8b"
    assert visit.complaints == []


def test_a_pasted_config_that_is_none_is_said_at_its_field_and_the_rest_stays(open_page):
    page = open_page(URL, javascript=False).page
    page.fill("#id_seq_len", "4096")
    page.click("text=or paste or upload a config.json")
    page.fill("#id_config", "my config")
    page.click("#questions button[type=submit]")
    assert "This is not JSON" in page.inner_text("#id_config_error")
    assert page.is_visible("#id_config"), "the fold with the fault stands open"
    assert page.input_value("#id_seq_len") == "4096"


def test_the_best_offer_of_the_answer_is_a_ticket_filled_in(open_page, site_data):
    on_offer(Gpu.objects.get(slug="h100-sxm"), price="0.10")
    page = open_page(f"{URL}?model=llama-3.1-8b&task=lora&tokens=5B&gpu_counts=4").page
    button = page.inner_text("#answer a.btn")
    assert button.startswith("Rent 4 × H100 SXM for ")
    hours = button.removeprefix("Rent 4 × H100 SXM for ").split()[0]
    page.click("#answer a.btn")
    page.wait_for_url("**/market/h100-sxm/?*")
    assert page.input_value("#id_gpu_count") == "4"
    assert page.input_value("#id_hours") == hours
    assert page.is_checked("[name=kind][value=best]")


def test_a_remedy_is_one_click_and_answers_with_its_figure(open_page):
    page = open_page(f"{URL}?model=llama-3.1-8b&task=full&gpu_counts=1").page
    row = page.locator(".remedies tr", has_text="AdamW in 8 bits")
    promised = row.locator("td").first.inner_text()
    row.locator("a").click()
    page.wait_for_url("**optimizer=adamw_8bit*")
    assert page.inner_text("#memory ~ .parts tfoot td >> nth=0") == promised
    assert page.evaluate("document.querySelector('#details').open"), "what was changed is in sight"


def test_it_prints_the_answer_without_buttons(open_page):
    page = open_page(URL).page
    page.emulate_media(media="print")
    assert page.is_visible("#says")
    assert page.is_visible(".parts svg.stack")
    assert not page.is_visible("#questions button[type=submit]")
    assert page.input_value("#id_model") == "llama-3.1-8b"
