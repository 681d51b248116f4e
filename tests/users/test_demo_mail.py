"""The demo's mail: written to files, read on a page, and only there."""

import os

import pytest
from django.core.mail import EmailMessage, get_connection, send_mail
from django.test import Client
from django.urls import NoReverseMatch, reverse

from tests.users.signing_in import text_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_limits")]
FORM = {"kind": "renter", "type": "consumer", "name": "Ana", "country": "NL", "password1": "a rather long one"}


@pytest.fixture
def folder(settings, tmp_path):
    """The demo's settings about mail, and its addresses."""
    settings.IS_DEMO = True
    settings.ROOT_URLCONF = "tests.users.demo_urls"
    settings.EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    settings.EMAIL_FILE_PATH = tmp_path / "mail"
    return settings.EMAIL_FILE_PATH


def sent(subject: str, text: str = "Hello.", *, at: int = 0) -> None:
    """Send a mail; `at` is the file's time, in seconds."""
    send_mail(subject, text, None, ["ana@example.com"])
    if at:
        newest = max(folder_of_mail().glob("*.log"), key=lambda path: path.stat().st_mtime_ns)
        os.utime(newest, (at, at))


def folder_of_mail():
    from django.conf import settings

    return settings.EMAIL_FILE_PATH


def test_outside_the_demo_there_is_no_such_page(client):
    with pytest.raises(NoReverseMatch):
        reverse("demo-mails")
    assert client.get("/demo/mail/").status_code == 404
    assert "demo" not in text_of(client.get("/account/sign-up/")).lower()


def test_before_the_first_mail_the_page_says_so(client, folder):
    assert "No mail yet." in text_of(client.get("/demo/mail/"))


def test_mails_are_listed_newest_first(client, folder):
    sent("The first", at=1_700_000_000)
    sent("The second", at=1_700_000_100)
    page = text_of(client.get("/demo/mail/"))
    assert page.index("The second") < page.index("The first")
    assert "ana@example.com" in page


def test_several_mails_of_one_connection_are_several_mails(client, folder):
    mails = [EmailMessage(f"Number {number}", f"Text {number}", to=["a@example.com"]) for number in (1, 2)]
    get_connection().send_messages(mails)
    page = client.get("/demo/mail/").content.decode()
    assert page.index("Number 2") < page.index("Number 1")
    names = [part.split('"')[0] for part in page.split('href="/demo/mail/')[1:]]
    texts = {text_of(client.get(f"/demo/mail/{name}")) for name in names if name}
    assert len(texts) == 2


def test_signing_up_leads_to_the_mail_and_its_link_is_clickable(client, folder):
    answer = client.post("/account/sign-up/", {**FORM, "email": "ana@example.com"}, follow=True)
    assert 'href="/demo/mail/"' in answer.content.decode()
    listed = client.get("/demo/mail/").content.decode()
    path = listed.split('<th scope="row"><a href="')[1].split('"')[0]
    mail = client.get(path)
    link = mail.content.decode().split('<a href="http://testserver/account/email/')[1].split('"')[0]
    answer = client.post(f"/account/email/{link}", follow=True)
    assert "ana@example.com acts for Ana, as owner." in text_of(answer)


def test_what_a_mail_says_is_text_not_markup(client, folder):
    sent("A <b>bold</b> subject ąęł", "<script>alert(1)</script> https://example.com/?a=1&b=2")
    listed = client.get("/demo/mail/").content.decode()
    assert "<b>bold</b>" not in listed
    assert "A &lt;b&gt;bold&lt;/b&gt; subject ąęł" in listed
    path = listed.split('<th scope="row"><a href="')[1].split('"')[0]
    page = client.get(path).content.decode()
    assert "<script>alert" not in page
    assert 'href="https://example.com/?a=1&amp;b=2"' in page


@pytest.mark.parametrize("name", ["..", "20261130-120000-1-0", "x.log", "%2e%2e%2fsecret_key", "20261130-120000-1-9"])
def test_another_name_is_no_mail(client, folder, name):
    folder.mkdir(exist_ok=True)
    (folder.parent / "secret_key").write_text("secret")
    (folder / "20261130-120000-1.log").write_bytes(b"")
    answer = client.get(f"/demo/mail/{name}/")
    assert answer.status_code == 404


def test_mail_is_kept_by_no_cache_and_listed_nowhere(folder):
    answer = Client().get("/demo/mail/")
    assert "no-store" in answer["Cache-Control"]
    assert answer["X-Robots-Tag"] == "noindex"
