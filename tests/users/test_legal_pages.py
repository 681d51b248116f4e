"""The pages of law: public, complete, and with figures that come from the rules."""

import re
from datetime import date
from pathlib import Path

import pytest
from django.conf import settings as site_settings
from django.template.base import Lexer, TokenType

from fx.queries import WALLET_CURRENCIES
from tests.factories import make_member
from users import terms
from users.invitations import VALID_FOR

pytestmark = pytest.mark.django_db
PROJECT = Path(__file__).resolve().parent.parent.parent
PAGES = ("/terms-of-use/", "/privacy/", "/refunds/", "/imprint/")
TEMPLATES = sorted((PROJECT / "templates" / "legal").glob("*.html"))


def text_of(client, path: str) -> str:
    """Return a page's words, without tags."""
    answer = client.get(path)
    assert answer.status_code == 200
    main = answer.content.decode().partition("<main")[2].partition("</main>")[0]
    return " ".join(re.sub(r"<[^>]*>", " ", main).replace("&nbsp;", " ").split())


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("language", ["", "/nl", "/pl"])
def test_a_page_is_public_in_every_language_and_linked_from_every_page(client, path, language):
    assert client.get(f"{language}{path}").status_code == 200
    assert f'href="{language}{path}"' in client.get(f"{language}/imprint/").content.decode()


@pytest.mark.parametrize("path", PAGES)
def test_a_page_needs_no_database_and_sets_no_cookie(client, path, django_assert_num_queries):
    with django_assert_num_queries(0):
        answer = client.get(path)
    assert not answer.cookies


def test_the_sitemap_lists_them(client):
    listed = client.get("/sitemap.xml").content.decode()
    assert all(f"http://testserver{path}</loc>" in listed for path in PAGES)


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_no_figure_is_typed_into_a_text(template):
    source = template.read_text()
    words = [
        token.contents
        for token in Lexer(source).tokenize()
        if token.token_type == TokenType.TEXT or token.contents.startswith("trans ")
    ]
    assert words
    typed = re.findall(r"\S*\d\S*", re.sub(r"<[^>]*>", " ", " ".join(words)))
    assert typed == []


def test_the_terms_print_the_figures_that_the_rules_use(client, monkeypatch):
    monkeypatch.setattr(terms, "READY_WITHIN_MINUTES", 11)
    monkeypatch.setattr(terms, "GAP_AFTER_SECONDS", 61)
    monkeypatch.setattr(terms, "INTERRUPTED_AFTER_MINUTES", 6)
    monkeypatch.setattr(terms, "NOTICE_DAYS", 16)
    monkeypatch.setattr(terms, "LOW_BALANCE_ALERT_SECONDS", (90_000, 7200))
    monkeypatch.setattr(terms, "VERSION", "7")
    monkeypatch.setattr(terms, "IN_FORCE_FROM", date(2027, 3, 1))
    page = text_of(client, "/terms-of-use/")
    for words in (
        "within 11 minutes has failed to start",
        "more than 61 seconds without a report",
        "After more than 6 minutes the rental is interrupted",
        "at least 16 days before they take effect",
        "25 hours, 2 hours",
        "Version 7, in force from 1 Mar 2027.",
        f"({', '.join(WALLET_CURRENCIES)})",
    ):
        assert words in page


@pytest.mark.parametrize(
    "words",
    [
        "The balance is gross money",
        "Tax is added when hours are used",
        "It pays for what we sell on this site and for nothing else. It cannot be passed on to anybody",
        "only its billed seconds are charged",
        "Of an interrupted rental, the hour of the last report is not billed",
        "never more than was charged",
        "before they list a server",
        "If the bank decides for us, the amount is put back.",
        "we are the seller",
    ],
)
def test_the_terms_say_what_the_product_does(client, words):
    assert words in text_of(client, "/terms-of-use/")


def test_no_page_promises_what_is_not_sold(client):
    everything = " ".join(text_of(client, path) for path in PAGES).lower()
    for promise in ("fixed term", "guaranteed", "uptime", "sla", "best price"):
        assert not re.search(rf"\b{promise}\b", everything), promise


def test_the_refunds_page_says_where_money_goes(client):
    page = text_of(client, "/refunds/")
    assert "Unspent money goes back to the payment it came from." in page
    assert "The oldest top-up that is not spent comes first" in page
    assert "A refund of unspent money therefore carries none" in page


@pytest.mark.parametrize("is_open", [True, False])
def test_private_persons_read_about_withdrawal_where_they_may_buy(client, settings, is_open):
    settings.B2C_ENABLED = is_open
    assert (f"within {terms.WITHDRAWAL_DAYS} days" in text_of(client, "/refunds/")) is is_open
    assert ("We sell to businesses only for now." in text_of(client, "/terms-of-use/")) is not is_open


def test_the_privacy_page_names_exactly_the_cookies_that_the_site_sets(client, settings):
    user = make_member()
    client.get("/account/login/")
    client.post("/account/login/", {"login": user.email, "password": "long-enough-1"})
    assert set(client.cookies) == {settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME}
    page = text_of(client, "/privacy/")
    for name in client.cookies:
        assert f"{name} :" in page
    session_days = settings.SESSION_COOKIE_AGE // 86_400
    assert f"knows you while you are signed in; {session_days} days at most" in page
    assert f"The link works for {VALID_FOR.days} days" in page
    assert f"for {terms.TAX_RECORD_YEARS} years from the end of the year" in page


def test_the_imprint_names_the_operator_of_the_settings(client, settings):
    settings.OPERATOR_NAME = "Orla & Sons <B.V.>"
    settings.OPERATOR_ADDRESS = "Long Lane 7, Utrecht"
    settings.SELLER_VAT_ID = "NL123456789B01"
    page = client.get("/imprint/").content.decode()
    for words in ("Orla &amp; Sons &lt;B.V.&gt;", "Long Lane 7, Utrecht", "NL123456789B01", "Netherlands"):
        assert words in page
    assert "This imprint is not complete." not in page


def test_the_imprint_says_what_is_missing(client, settings):
    for name in ("OPERATOR_NAME", "OPERATOR_ADDRESS", "OPERATOR_EMAIL", "SELLER_COUNTRY", "SELLER_VAT_ID"):
        setattr(settings, name, "")
    page = text_of(client, "/imprint/")
    assert "This imprint is not complete." in page
    assert page.count("missing") == 4 + 1, "each line, and the sentence that leads there"
    for path in PAGES:
        assert client.get(path).status_code == 200
    assert "mailto:" not in client.get("/terms-of-use/").content.decode()
    assert "the operator that the imprint names" in text_of(client, "/terms-of-use/")


def test_a_demo_says_that_nothing_binds(client, settings):
    assert "sample" in site_settings.OPERATOR_NAME
    settings.IS_DEMO = True
    for path in PAGES:
        assert "This is a demo." in text_of(client, path)
    settings.IS_DEMO = False
    assert "This is a demo." not in text_of(client, "/terms-of-use/")


@pytest.mark.parametrize("path", PAGES)
def test_every_mark_of_the_table_of_contents_exists(client, path):
    page = client.get(path).content.decode()
    targets = re.findall(r'href="#([\w-]+)"', page.partition("<main")[2])
    assert [target for target in targets if f'id="{target}"' not in page] == []
