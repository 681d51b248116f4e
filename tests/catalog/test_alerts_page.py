"""`/alerts/`: asking and ending; and the page behind a mail's link, which needs no sign-in."""

import re

import pytest
from django.core import mail
from django.test import Client

from catalog.alerts.end import end_alert
from catalog.models import PriceAlert
from tests.catalog.alert_rows import make_alert, told
from tests.factories import NOW, make_gpu, make_member, make_offer, make_organisation
from users.models import Role

PAGE = "/alerts/"
WANTED = {"gpu": "h100-sxm", "price": "2,05", "place": "elsewhere"}
pytestmark = pytest.mark.django_db


@pytest.fixture
def gpu():
    return make_gpu(label="H100 SXM")


@pytest.fixture
def owner(client, gpu):
    person = make_member(email="ana@example.com")
    client.force_login(person)
    return person


def test_who_is_not_signed_in_is_sent_to_sign_in_and_comes_back(client, gpu):
    answer = client.get(f"{PAGE}?gpu=h100-sxm")
    assert answer.status_code == 302
    assert "next=/alerts/%3Fgpu%3Dh100-sxm" in answer["Location"]


def test_the_page_is_nobody_elses(client, owner):
    answer = client.get(PAGE)
    assert "no-store" in answer["Cache-Control"]
    assert 'content="noindex"' in answer.content.decode()


def test_an_alert_is_asked_for_with_a_comma_and_listed(client, owner):
    answer = client.post(PAGE, WANTED, follow=True)
    text = answer.content.decode()
    assert "The alert is on." in text
    assert "at 2.05 USD or less" in text
    alert = PriceAlert.objects.get()
    assert (alert.asked_by, alert.place, alert.language, alert.site) == (owner, "elsewhere", "en", "http://testserver")


def test_the_gpu_of_the_page_one_comes_from_is_chosen(client, owner):
    assert '<option value="h100-sxm" selected>' in client.get(f"{PAGE}?gpu=h100-sxm").content.decode()
    assert client.get(f"{PAGE}?gpu=%00'").status_code == 200


@pytest.mark.parametrize(
    ("sent", "field", "said"),
    [
        ({"gpu": ""}, "gpu", "Choose a GPU."),
        ({"gpu": "h9000"}, "gpu", "This GPU is not in the catalogue."),
        ({"price": ""}, "price", "Name a price."),
        ({"price": "cheap"}, "price", "Write the price with digits"),
        ({"price": "1e5"}, "price", "Write the price with digits"),
        ({"price": "-2"}, "price", "Write the price with digits"),
        ({"price": "2.00001"}, "price", "Write the price with digits"),
        ({"price": "٣"}, "price", "Write the price with digits"),
        ({"price": "0"}, "price", "Write a price above 0."),
        ({"price": "9" * 30}, "price", "at most 20 characters"),
        ({"place": "moon"}, "place", "not one of the available choices"),
        ({"place": ""}, "place", "This field is required."),
    ],
)
def test_a_mistake_is_told_above_and_at_its_field_and_keeps_nothing(client, owner, sent, field, said):
    page = client.post(PAGE, {**WANTED, **sent}).content.decode()
    assert page.count(said) >= 2
    assert f'id="id_{field}_error"' in page
    assert 'role="alert"' in page
    assert not PriceAlert.objects.exists()


def test_an_empty_form_is_answered_with_its_faults(client, owner):
    page = client.post(PAGE, {}).content.decode()
    assert "3 things to correct" in page


def test_the_same_again_and_too_many_are_said_in_words(client, owner, settings):
    client.post(PAGE, WANTED)
    assert "You wait for this very price already." in client.post(PAGE, WANTED).content.decode()
    settings.PRICE_ALERTS_PER_ORGANISATION = 1
    page = client.post(PAGE, {**WANTED, "price": "1"}).content.decode()
    assert "as many open alerts as it may have" in page
    assert PriceAlert.objects.count() == 1


def test_members_end_their_own_and_an_owner_everybodys(client, owner):
    viewer = make_member(role=Role.VIEWER, email="vic@example.com")
    own, owners = make_alert(by=viewer), make_alert(by=owner)
    browser = Client()
    browser.force_login(viewer)
    assert browser.post(f"{PAGE}{owners.pk}/end/").status_code == 403
    assert browser.post(f"{PAGE}{own.pk}/end/").status_code == 302
    assert client.post(f"{PAGE}{owners.pk}/end/").status_code == 302
    assert not PriceAlert.objects.filter(ended_at=None).exists()
    assert "Ended lately" in client.get(PAGE).content.decode()


def test_alerts_of_another_organisation_are_not_there(client, owner):
    other = make_member(organisation=make_organisation(name="Other B.V."), email="zed@example.com")
    alert = make_alert(by=other)
    assert "zed@example.com" not in client.get(PAGE).content.decode()
    assert client.post(f"{PAGE}{alert.pk}/end/").status_code == 404
    assert PriceAlert.objects.get().ended_at is None


def test_the_list_takes_few_queries_however_long(client, owner, django_assert_max_num_queries):
    for number in range(1, 9):
        make_alert(price=f"{number}.00", by=owner)
    with django_assert_max_num_queries(12):
        client.get(PAGE)


@pytest.fixture
def link(gpu, django_capture_on_commit_callbacks) -> str:
    make_offer(gpu=gpu, price="1.90")
    make_alert(by=make_member(email="bo@example.com"))
    told(django_capture_on_commit_callbacks)
    found = re.search(r"(/alerts/link/[\w-]+/)", str(mail.outbox[0].body))
    assert found
    return found[1]


def test_looking_at_the_link_ends_nothing_and_its_one_button_does(link):
    browser = Client(enforce_csrf_checks=True)
    page = browser.get(link)
    text = page.content.decode()
    assert text.partition("<main")[2].count("<button") == 1
    assert "End this price alert?" in text
    assert "bo@example.com" not in text
    assert "no-store" in page["Cache-Control"]
    assert PriceAlert.objects.get().ended_at is None
    ended = browser.post(link)
    assert ended.status_code == 200
    assert "The alert is ended" in ended.content.decode()
    assert PriceAlert.objects.get().ended_at is not None


def test_a_mail_programs_own_button_works_without_cookie_page_or_redirect(link):
    answer = Client(enforce_csrf_checks=True).post(link, {"List-Unsubscribe": "One-Click"})
    assert answer.status_code == 200
    assert not answer.cookies
    assert PriceAlert.objects.get().ended_at is not None


def test_the_link_of_an_ended_alert_says_so(link):
    end_alert(alert_id=PriceAlert.objects.get().pk, now=NOW)
    assert "The alert is ended" in Client().get(link).content.decode()
    assert Client().post(link).status_code == 200
    assert PriceAlert.objects.get().ended_at == NOW


@pytest.mark.parametrize("token", ["x", "a" * 43, "%00", "%F0%9F%8E%89"])
def test_a_made_up_link_is_not_found(client, token):
    assert client.get(f"/alerts/link/{token}/").status_code == 404
    assert client.post(f"/alerts/link/{token}/").status_code == 404


def test_gpu_and_history_pages_lead_to_the_form(client, gpu):
    for page in ("/gpus/h100-sxm/", "/prices/h100-sxm/"):
        assert "/alerts/?gpu=h100-sxm" in client.get(page).content.decode()
