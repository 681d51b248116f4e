"""Price alerts: told once a fall, by mail and webhook, ended with one click; the row decides who tells."""

import re
import threading
from datetime import timedelta
from decimal import Decimal

import pytest
from django.core import mail
from django.db import IntegrityError, connection, transaction
from hypothesis import given
from hypothesis import strategies as st

from catalog.alerts.ask import AlreadyAsked, TooManyAlerts
from catalog.alerts.crossing import CLEARLY_ABOVE, Step, next_step
from catalog.alerts.end import end_alert, sha256_of
from catalog.alerts.tell import tell_alerts
from catalog.models import AlertMessage, PriceAlert
from catalog.queries import price_table
from catalog.tasks import tell_alerts as tell_alerts_task
from tests.catalog.alert_rows import SITE, make_alert, price_is, state_of, told
from tests.factories import NOW, make_best_ask, make_gpu, make_list_offer, make_member, make_offer, make_organisation
from tests.users.webhook_rows import make_endpoint
from users.models import EventType, Membership, WebhookEvent

HOUR = timedelta(hours=1)
prices = st.decimals(min_value="0.01", max_value="99", places=4)


@given(limit=prices, price=prices)
def test_whatever_the_price_it_is_told_only_at_or_under_the_limit_and_waits_again_only_clearly_above(limit, price):
    assert (next_step(limit, is_met=False, price=price) is Step.TELL) == (price <= limit)
    assert (next_step(limit, is_met=True, price=price) is Step.WAIT_AGAIN) == (price > limit * CLEARLY_ABOVE)


@given(limit=prices, course=st.lists(st.none() | prices, max_size=30))
def test_between_two_messages_the_price_was_always_clearly_above_the_limit(limit, course):
    is_met, risen_since = False, True
    for price in course:
        risen_since = risen_since or (price is not None and price > limit * CLEARLY_ABOVE)
        step = next_step(limit, is_met=is_met, price=price)
        if step is Step.TELL:
            assert risen_since
            risen_since = False
        is_met = step is Step.TELL or (is_met and step is not Step.WAIT_AGAIN)


@pytest.mark.django_db
def test_a_price_that_falls_to_the_limit_is_told_once_and_again_after_it_rose(django_capture_on_commit_callbacks):
    gpu = make_gpu(label="H100 SXM")
    make_offer(gpu=gpu, price="2.40")
    alert = make_alert(price="2.00")
    assert told(django_capture_on_commit_callbacks) == []
    price_is("2.00")
    assert told(django_capture_on_commit_callbacks) == ["H100 SXM now costs 2.00 USD per GPU-hour"]
    assert state_of(alert) == (True, NOW)
    price_is("1.80")
    assert told(django_capture_on_commit_callbacks) == []
    price_is("2.01")  # not clearly above: it hovers
    assert told(django_capture_on_commit_callbacks) == []
    price_is("1.99")
    assert told(django_capture_on_commit_callbacks) == []
    price_is("2.50", at=NOW + HOUR)
    assert told(django_capture_on_commit_callbacks, at=NOW + HOUR) == []
    assert state_of(alert) == (False, NOW)
    price_is("1.95", at=NOW + 2 * HOUR)
    assert len(told(django_capture_on_commit_callbacks, at=NOW + 2 * HOUR)) == 1
    assert AlertMessage.objects.filter(alert=alert).count() == 2


@pytest.mark.django_db
def test_the_mail_says_whose_price_it_is_when_it_was_read_and_how_to_end_the_alert(django_capture_on_commit_callbacks):
    make_offer(gpu=make_gpu(label="H100 SXM"), price="1.9312", cloud="lambda")
    person = make_member(email="ana@example.com")
    make_alert(price="2", by=person)
    told(django_capture_on_commit_callbacks)
    [message] = mail.outbox
    assert message.to == ["ana@example.com"]
    assert "costs 2.00 USD or less" in message.body
    assert "1.9312 USD at Lambda, read by 30 Nov 2026, 13:50 UTC" in message.body
    assert f"{SITE}/gpus/h100-sxm/" in message.body
    link = re.search(rf"{SITE}(/alerts/link/[\w-]+/)", str(message.body))
    assert link
    assert message.extra_headers == {
        "List-Unsubscribe": f"<{link[0]}>",
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
    }
    token = link[1].split("/")[-2]
    assert AlertMessage.objects.get().token_sha256 == sha256_of(token)
    assert token not in str(AlertMessage.objects.values().get())


@pytest.mark.django_db
def test_a_mail_speaks_the_language_of_the_page_and_leads_back_to_it(django_capture_on_commit_callbacks):
    make_offer(gpu=make_gpu(), price="1.90")
    make_alert(language="nl")
    told(django_capture_on_commit_callbacks)
    assert f"{SITE}/nl/gpus/h100-sxm/" in mail.outbox[0].body
    assert f"{SITE}/nl/alerts/link/" in mail.outbox[0].body


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("place", "ask", "offer", "said"),
    [
        ("exchange", "1.90", "1.50", "The best offer here, on our exchange, was 1.90 USD"),
        ("exchange", "2.10", "1.50", None),
        ("elsewhere", "1.50", "1.90", "1.90 USD at Lambda"),
        ("elsewhere", "1.50", "2.10", None),
        ("either", "1.90", "1.80", "1.80 USD at Lambda"),
        ("either", "1.80", "1.90", "The best offer here, on our exchange, was 1.80 USD"),
        ("either", "1.80", "1.80", "The best offer here, on our exchange, was 1.80 USD"),
    ],
)
def test_an_alert_looks_where_it_was_told_to(place, ask, offer, said, django_capture_on_commit_callbacks):
    gpu = make_gpu()
    make_best_ask(gpu=gpu, price=ask)
    make_offer(gpu=gpu, price=offer)
    make_alert(place=place)
    assert bool(told(django_capture_on_commit_callbacks)) == (said is not None)
    assert said is None or said in mail.outbox[0].body


@pytest.mark.django_db
def test_dated_stale_and_spot_prices_start_nothing(django_capture_on_commit_callbacks):
    gpu = make_gpu()
    make_list_offer(gpu=gpu, price="1.00")
    make_offer(gpu=gpu, price="1.00", observed_at=NOW - timedelta(hours=13), cloud="old")
    make_offer(gpu=gpu, price="1.00", market="spot", cloud="spot")
    make_best_ask(gpu=gpu, price="1.00", observed_at=NOW - timedelta(hours=13))
    make_alert()
    assert told(django_capture_on_commit_callbacks) == []


@pytest.mark.django_db
def test_a_gap_without_live_prices_is_no_rise(django_capture_on_commit_callbacks):
    make_offer(gpu=make_gpu(), price="1.90")
    alert = make_alert()
    assert len(told(django_capture_on_commit_callbacks)) == 1
    assert told(django_capture_on_commit_callbacks, at=NOW + timedelta(days=1)) == []
    assert state_of(alert) == (True, NOW)
    price_is("1.90", at=NOW + timedelta(days=2))
    assert told(django_capture_on_commit_callbacks, at=NOW + timedelta(days=2)) == []


@pytest.mark.django_db
def test_programs_of_the_organisation_are_told_the_same_in_plain_figures(django_capture_on_commit_callbacks):
    make_offer(gpu=make_gpu(), price="1.93125", cloud="lambda")
    make_endpoint(types=[EventType.PRICE_BELOW])
    make_endpoint("https://other.example.com/", types=[EventType.ORDER_FILLED])
    alert = make_alert(price="2.00")
    told(django_capture_on_commit_callbacks)
    event = WebhookEvent.objects.get()
    assert (event.type, event.occurred_at) == ("price.below", NOW)
    assert event.data == {
        "alert": str(alert.pk),
        "gpu": "h100-sxm",
        "at_most_usd_per_gpu_hour": "2.0000",
        "price_usd_per_gpu_hour": "1.931250",
        "place": "elsewhere",
        "cloud": "lambda",
        "observed_at": "2026-11-30T13:50:00Z",
    }
    assert event.deliveries.count() == 1


@pytest.mark.django_db
def test_what_is_rolled_back_is_not_told(django_capture_on_commit_callbacks, monkeypatch):
    make_offer(gpu=make_gpu(), price="1.90")
    make_endpoint(types=[EventType.PRICE_BELOW])
    alert = make_alert()

    def fails(**_):
        raise IntegrityError

    with monkeypatch.context() as broken:
        broken.setattr("catalog.alerts.tell.mail_after_commit", fails)
        assert told(django_capture_on_commit_callbacks) == []
    assert state_of(alert) == (False, None)
    assert not WebhookEvent.objects.exists()
    assert len(told(django_capture_on_commit_callbacks)) == 1


@pytest.mark.django_db
def test_somebody_who_left_the_organisation_or_is_switched_off_is_not_told(django_capture_on_commit_callbacks):
    make_offer(gpu=make_gpu(), price="1.90")
    left, off, stays = make_member(), make_member(), make_member(email="stays@example.com")
    for person in (left, off, stays):
        make_alert(by=person)
    Membership.objects.filter(user=left).update(organisation=make_organisation(name="Elsewhere B.V."))
    off.is_active = False
    off.save()
    told(django_capture_on_commit_callbacks)
    assert [message.to for message in mail.outbox] == [["stays@example.com"]]


@pytest.mark.django_db
def test_an_ended_alert_tells_nothing_and_ending_twice_changes_nothing(django_capture_on_commit_callbacks):
    make_offer(gpu=make_gpu(), price="1.90")
    alert = make_alert()
    assert end_alert(alert_id=alert.pk, now=NOW)
    assert not end_alert(alert_id=alert.pk, now=NOW + HOUR)
    assert told(django_capture_on_commit_callbacks) == []
    alert.refresh_from_db()
    assert alert.ended_at == NOW


@pytest.mark.django_db
def test_many_alerts_are_looked_at_in_few_queries(django_assert_num_queries):
    for slug in ("h100-sxm", "h200-sxm", "b200"):
        gpu = make_gpu(slug=slug)
        make_offer(gpu=gpu, price="9.00")
        for _ in range(3):
            make_alert(gpu=gpu)
    with django_assert_num_queries(5):
        assert tell_alerts(now=NOW) == 0


@pytest.mark.django_db
def test_without_an_alert_no_price_is_read(django_assert_num_queries):
    with django_assert_num_queries(1):
        tell_alerts_task()


@pytest.mark.django_db
def test_the_same_wish_twice_is_refused_and_may_be_asked_again_once_it_ended():
    make_gpu()
    person = make_member()
    alert = make_alert(by=person)
    with pytest.raises(AlreadyAsked):
        make_alert(by=person)
    make_alert(by=make_member())
    end_alert(alert_id=alert.pk, now=NOW)
    make_alert(by=person)


@pytest.mark.django_db
def test_an_organisation_has_a_limit_of_open_alerts(settings):
    settings.PRICE_ALERTS_PER_ORGANISATION = 2
    make_gpu()
    person = make_member()
    first = make_alert(price="1", by=person)
    make_alert(price="2", by=make_member())
    with pytest.raises(TooManyAlerts):
        make_alert(price="3", by=person)
    end_alert(alert_id=first.pk, now=NOW)
    make_alert(price="3", by=person)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "values",
    [
        {"at_most_usd_per_gpu_hour": Decimal(0)},
        {"place": "moon"},
        {"met_since": NOW, "told_at": NOW - HOUR},
        {"ended_at": NOW - timedelta(days=9)},
    ],
)
def test_the_database_refuses_an_alert_that_cannot_be(values):
    make_gpu()
    alert = make_alert()
    with pytest.raises(IntegrityError), transaction.atomic():
        PriceAlert.objects.filter(pk=alert.pk).update(**values)


@pytest.mark.django_db(transaction=True)
def test_two_workers_that_both_saw_it_waiting_tell_it_once(monkeypatch):
    make_offer(gpu=make_gpu(), price="1.90")
    make_endpoint(types=[EventType.PRICE_BELOW])
    make_alert()
    mail.outbox.clear()
    barrier = threading.Barrier(2)
    counted: list[int] = []

    def both_have_read(*args, **kwargs):
        found = price_table(*args, **kwargs)
        barrier.wait(timeout=30)
        return found

    def work(now):
        try:
            counted.append(tell_alerts(now=now))
        finally:
            connection.close()

    monkeypatch.setattr("catalog.alerts.tell.price_table", both_have_read)
    workers = [threading.Thread(target=work, args=[NOW + number * HOUR / 60]) for number in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(counted) == [0, 1]
    assert len(mail.outbox) == AlertMessage.objects.count() == WebhookEvent.objects.count() == 1
