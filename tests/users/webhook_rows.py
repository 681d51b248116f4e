"""Webhooks for tests: endpoints, events, and receivers that answer as told without a network."""

from tests.factories import NOW, make_organisation
from users.models import EventType
from users.webhooks import deliver
from users.webhooks.endpoints import ShownSecret, add_endpoint
from users.webhooks.events import emit
from users.webhooks.sending import Answer

DATA = {"id": "0193", "state": "filled"}


def make_endpoint(url: str = "https://hooks.example.com/", *, types=(EventType.ORDER_FILLED,), **values) -> ShownSecret:
    """Return a new endpoint with its secret."""
    defaults = {"organisation": make_organisation(), "created_by": None, "now": NOW}
    return add_endpoint(url=url, types=types, **{**defaults, **values})


def tell(*, subject: str = "0193", now=NOW, **values) -> bool:
    """Write an event down; return whether any endpoint will be told."""
    defaults = {"organisation_id": make_organisation().pk, "type": EventType.ORDER_FILLED, "data": DATA}
    return emit(subject_id=subject, now=now, **{**defaults, **values})


def answering(monkeypatch, *answers: Answer) -> list[str]:
    """Let each request get the next of the answers, the last one for ever; return the hosts that were asked."""
    asked: list[str] = []

    def post(target, **_):
        asked.append(target.host)
        return answers[min(len(asked), len(answers)) - 1]

    monkeypatch.setattr(deliver, "post", post)
    return asked


def status(code: int) -> Answer:
    """Return an answer of this status."""
    return Answer(status=code, took_ms=12, text="said so")
