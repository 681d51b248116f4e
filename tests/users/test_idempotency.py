"""`Idempotency-Key`: one request, one run, one answer, in a row and at once."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from http import HTTPStatus
from threading import Barrier, Event, Thread

import pytest
from django.db import OperationalError, connection
from django.test import RequestFactory
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response

from common.problems import Problem
from tests.factories import make_organisation
from users import idempotency, tasks
from users.api.body import Amount, StrictSerializer, Text
from users.api.idempotent import idempotent
from users.api.view import OrganisationView
from users.api_keys import issue_key
from users.idempotency import KeptAnswer, OtherRequest, StillRunning, keep, once, thin_idempotency_keys
from users.models import AuditRecord, IdempotencyKey, Scope

NOW = datetime(2026, 11, 30, 14, 2, tzinfo=UTC)


class NoteBody(StrictSerializer):
    """A note with its price."""

    text = Text(max_length=20)
    amount = Amount()


class Notes(OrganisationView):
    """A call that leaves a row at each run. `before` is called within it, when the row is not yet written."""

    scopes = {"POST": Scope.BILLING}
    before: Callable[[], object] = staticmethod(lambda: None)

    @idempotent
    def post(self, request: Request) -> Response:
        body = NoteBody.read(request.data)
        type(self).before()
        written, _ = AuditRecord.objects.get_or_create(
            subject_id=str(self.object_id), defaults={"at": NOW, "action": "note.written", "reason": body["text"]}
        )
        return Response({"z": body["amount"], "id": str(written.subject_id), "a": 1}, status=HTTPStatus.CREATED)


@pytest.fixture(autouse=True)
def nothing_before():
    yield
    Notes.before = staticmethod(lambda: None)


@pytest.fixture
def secret(db) -> str:
    return make_secret()


@pytest.fixture
def shared_secret(transactional_db) -> str:
    """A secret that other connections see."""
    return make_secret()


def make_secret(*, organisation=None) -> str:
    issued = issue_key(
        organisation=organisation or make_organisation(),
        name="laptop",
        scopes=["billing"],
        created_by=None,
        expires_at=None,
        now=NOW,
    )
    return issued.secret


BODY = {"text": "hello", "amount": "25.00"}


def send(secret: str, *, key: str | None = "k-1", body: object = BODY, path: str = "/api/v1/notes/"):
    content = body if isinstance(body, str) else json.dumps(body)
    headers = {"Authorization": f"Bearer {secret}", **({"Idempotency-Key": key} if key is not None else {})}
    response = Notes.as_view()(RequestFactory().post(path, content, content_type="application/json", headers=headers))
    return response.render() if hasattr(response, "render") else response


def code_of(response) -> tuple[int, str | None, str]:
    [error] = json.loads(response.content)["errors"]
    return response.status_code, error["field"], error["code"]


def runs() -> int:
    return AuditRecord.objects.filter(action="note.written").count()


def refuse_with(status: HTTPStatus) -> Callable[[], None]:
    def refuse() -> None:
        raise Problem(status=status, code="refused", detail="No.")

    return refuse


def test_the_same_request_again_gets_the_same_answer_to_the_byte_and_does_not_run(secret):
    first, second = send(secret), send(secret)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.content == second.content
    assert second["Idempotency-Replayed"] == "true"
    assert not first.has_header("Idempotency-Replayed")
    assert runs() == 1


def test_spaces_and_the_order_of_names_make_no_other_body(secret):
    first = send(secret)
    assert send(secret, body='{ "amount":"25.00",\n"text":"hello" }').content == first.content


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({**BODY, "amount": "25.0"}, "/api/v1/notes/"),
        ({**BODY, "text": "hello "}, "/api/v1/notes/"),
        ({**BODY, "more": 1}, "/api/v1/notes/"),
        ([], "/api/v1/notes/"),
        (BODY, "/api/v1/notes/7/"),
    ],
)
def test_another_body_or_address_under_the_same_key_is_refused(secret, body, path):
    first = send(secret)
    assert code_of(send(secret, body=body, path=path)) == (422, None, "idempotency_key_reused")
    assert send(secret).content == first.content
    assert runs() == 1


def test_another_organisation_may_use_the_same_key(secret):
    send(secret)
    assert send(make_secret(organisation=make_organisation(name="Pim & Co"))).status_code == 201
    assert runs() == 2


@pytest.mark.parametrize(
    ("key", "code"),
    [(None, "required"), ("", "invalid"), ("a b", "invalid"), ("k" * 201, "invalid"), ("schlüssel", "invalid")],
)
def test_a_request_needs_a_key_of_a_certain_form(secret, key, code):
    assert code_of(send(secret, key=key)) == (400, "Idempotency-Key", code)
    assert not IdempotencyKey.objects.exists()


def test_the_longest_key_fits(secret):
    assert send(secret, key="~" * 200).status_code == 201


@pytest.mark.parametrize("status", [400, 402, 403, 404, 409])
def test_a_refusal_is_not_kept_and_frees_the_key(secret, status):
    Notes.before = staticmethod(refuse_with(HTTPStatus(status)))
    assert send(secret).status_code == status
    assert not IdempotencyKey.objects.exists()
    Notes.before = staticmethod(lambda: None)
    assert send(secret, body={**BODY, "amount": "5.00"}).status_code == 201


def test_a_body_that_is_wrong_frees_the_key(secret):
    assert code_of(send(secret, body={**BODY, "more": 1})) == (400, "more", "unknown_field")
    assert send(secret).status_code == 201


@pytest.mark.parametrize(
    "failure", [APIException(), Problem(status=HTTPStatus.SERVICE_UNAVAILABLE, code="x", detail="x")]
)
def test_after_a_failure_the_next_try_runs_again_for_the_same_object(secret, failure):
    seen = []

    def fail() -> None:
        seen.append(IdempotencyKey.objects.get().pk)
        raise failure

    Notes.before = staticmethod(fail)
    assert send(secret).status_code >= 500
    assert send(secret).status_code >= 500
    assert code_of(send(secret, body={**BODY, "text": "other"})) == (422, None, "idempotency_key_reused")
    Notes.before = staticmethod(lambda: None)
    first = send(secret)
    assert first.status_code == 201
    assert len(set(seen)) == 1
    assert send(secret).content == first.content


def test_an_error_nobody_expected_leaves_the_key_with_its_body(secret):
    def fail() -> None:
        raise RuntimeError

    Notes.before = staticmethod(fail)
    assert send(secret).status_code == 500
    assert IdempotencyKey.objects.get().status is None


@pytest.mark.django_db
def test_an_answer_is_kept_for_24_hours():
    mine = partial(once, organisation=make_organisation(), key="k")
    with mine(request_sha256="1", now=NOW) as claim:
        keep(claim, KeptAnswer(status=201, body="{}"))
    with mine(request_sha256="1", now=NOW + timedelta(hours=24, microseconds=-1)) as again:
        assert again.answer == KeptAnswer(status=201, body="{}")
    with mine(request_sha256="2", now=NOW + timedelta(hours=24)) as later:
        assert later.answer is None
        assert later.object_id != claim.object_id


@pytest.mark.django_db
def test_an_answer_once_kept_is_not_replaced():
    with once(organisation=make_organisation(), key="k", request_sha256="1", now=NOW) as claim:
        keep(claim, KeptAnswer(status=201, body="first"))
        keep(claim, KeptAnswer(status=201, body="second"))
        idempotency.forget(claim)
    assert IdempotencyKey.objects.get().answer == "first"


@pytest.mark.django_db
def test_the_id_for_what_is_made_is_of_version_7_and_of_its_time():
    with once(organisation=make_organisation(), key="k", request_sha256="1", now=NOW) as claim:
        assert claim.object_id.version == 7
        assert claim.object_id.int >> 80 == int(NOW.timestamp() * 1000)


@pytest.mark.django_db
def test_keys_older_than_24_hours_are_thinned_out(monkeypatch):
    organisation = make_organisation()
    for hours in (0, 23, 24, 48):
        with once(organisation=organisation, key=str(hours), request_sha256="1", now=NOW - timedelta(hours=hours)):
            pass
    assert thin_idempotency_keys(now=NOW) == 2
    assert thin_idempotency_keys(now=NOW) == 0
    assert set(IdempotencyKey.objects.values_list("key", flat=True)) == {"0", "23"}
    tasks.thin_idempotency_keys()
    assert not IdempotencyKey.objects.filter(created_at__lt=NOW - timedelta(hours=24)).exists()


def in_threads(*calls: Callable[[], object]) -> list:
    """Run the calls at once, each on a connection of its own; return what each returned or raised."""
    results: list = [None] * len(calls)
    start = Barrier(len(calls))

    def run(index: int) -> None:
        try:
            start.wait()
            results[index] = calls[index]()
        except Exception as problem:
            results[index] = problem
        finally:
            connection.close()

    threads = [Thread(target=run, args=[index]) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_requests_at_once_with_one_key_run_once_and_get_one_answer(shared_secret):
    answers = in_threads(*[lambda: send(shared_secret)] * 6)
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.content for answer in answers}) == 1
    assert sum(answer.has_header("Idempotency-Replayed") for answer in answers) == 5
    assert runs() == 1


def test_of_two_bodies_at_once_one_runs_and_the_other_is_refused(shared_secret):
    answers = in_threads(lambda: send(shared_secret), lambda: send(shared_secret, body={**BODY, "text": "other"}))
    assert sorted(answer.status_code for answer in answers) == [201, 422]
    assert runs() == 1


def test_other_keys_and_other_organisations_do_not_wait(shared_secret):
    other = make_secret(organisation=make_organisation(name="Pim & Co"))
    meeting = Barrier(3, timeout=20)
    Notes.before = staticmethod(meeting.wait)
    answers = in_threads(lambda: send(shared_secret), lambda: send(shared_secret, key="k-2"), lambda: send(other))
    assert [answer.status_code for answer in answers] == [201, 201, 201], "all three ran at the same time"


def test_who_waits_too_long_is_told_to_come_back(shared_secret, monkeypatch):
    running, ended = Event(), Event()

    def stay() -> None:
        running.set()
        assert ended.wait(timeout=20)

    Notes.before = staticmethod(stay)
    monkeypatch.setattr("users.api.idempotent.once", lambda **values: once(**values, wait_seconds=0.05))

    def come_second():
        running.wait(timeout=20)
        try:
            return send(shared_secret)
        finally:
            ended.set()

    first, second = in_threads(lambda: send(shared_secret), come_second)
    assert first.status_code == 201
    assert code_of(second) == (409, None, "still_running")
    assert second["Retry-After"] == "5"
    assert send(shared_secret).content == first.content


def test_who_is_killed_frees_the_key_at_once_and_the_next_finds_what_it_made(shared_secret):
    """The first writes its row and dies before its answer is kept; its connection is cut by the database."""
    pids: list[int] = []

    def write_and_die() -> None:
        if not pids:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                pids.append(cursor.fetchone()[0])
            claimed = IdempotencyKey.objects.get()
            made = idempotency._object_id(claimed)
            AuditRecord.objects.create(at=NOW, action="note.written", subject_id=str(made))
            with connection.cursor() as cursor, pytest.raises(OperationalError):
                cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
            raise OperationalError("cut off")

    Notes.before = staticmethod(write_and_die)
    [cut_off] = in_threads(lambda: send(shared_secret))
    assert cut_off.status_code == 500
    second = send(shared_secret)
    assert second.status_code == 201
    assert runs() == 1, "the second try found the first one's row under the same id"


def test_the_lock_is_given_back_whatever_happens(shared_secret):
    organisation = make_organisation()

    def fail() -> None:
        with once(organisation=organisation, key="k", request_sha256="1", now=NOW):
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with pytest.raises(OtherRequest), once(organisation=organisation, key="k", request_sha256="2", now=NOW):
        pass
    [found] = in_threads(lambda: _enter(organisation, wait_seconds=0.05))
    assert found is None


def test_the_wait_for_the_lock_is_bounded_and_leaves_the_session_as_it_was(shared_secret):
    organisation = make_organisation()
    with once(organisation=organisation, key="k", request_sha256="1", now=NOW):
        [found] = in_threads(lambda: _enter(organisation, wait_seconds=0.05))
        assert isinstance(found, StillRunning)
        with connection.cursor() as cursor:
            cursor.execute("SHOW lock_timeout")
            assert cursor.fetchone() == ("0",)


def _enter(organisation, *, wait_seconds: float) -> None:
    with once(organisation=organisation, key="k", request_sha256="1", now=NOW, wait_seconds=wait_seconds):
        return
