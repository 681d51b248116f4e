"""Every address, every method, everyone who may ask: what they get, what they see, and what stays as it was.

What may be answered stands in `tests/config/routes.py`, a line per address; an address without a line fails here.
All requests are about objects of one organisation. To each of them:

- the status is one that the line allows (a stranger finds no object, a viewer changes nothing, a key needs its scope);
- nobody from outside reads a name or a number of that organisation;
- reading writes nothing, and nothing that an outsider sends changes a row of it.

PostgreSQL itself counts what is written, functions and triggers included.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest
from django.apps import apps
from django.core.cache import cache
from django.db import connection, transaction
from django.http import HttpResponseBase
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.urls.converters import get_converters

from billing.models import Dispute, GatewayEvent, Refund
from billing.tax.record import decide_for
from marketplace.orders.place import place_order
from tests.billing.conftest import paid_top_up, wallet_of
from tests.catalog.alert_rows import make_alert
from tests.config.routes import KEYS, ROUTES, Actor, Route, route_of
from tests.factories import make_cloud, make_gpu, make_live_offer, make_member, make_operator, make_organisation
from tests.marketplace.conftest import make_running_rental, order_for
from users.api_keys import issue_key, scopes_open_to
from users.audit import record
from users.models import ApiKey, EventType, Invitation, Organisation, Role, Scope, User
from users.webhooks.endpoints import add_endpoint
from users.webhooks.replay import send_test

PAGE_METHODS = ("GET", "POST", "DELETE")
CALL_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
READING = ("GET", "HEAD", "OPTIONS")
# Written by whatever is asked: a session's own rows; when a key was last used.
NOTED_OF_SESSIONS = {"django_session", "usersessions_usersession"}
NOTED_OF_KEYS = {"users_apikey"}


@dataclass(frozen=True, kw_only=True)
class Address:
    """One URL pattern: its name (or its pattern where it has none), an address filled with arguments, and its view."""

    name: str
    pattern: str
    parameters: tuple[str, ...]
    view: Any


def addresses() -> Iterator[Address]:
    """Return all URL patterns of the site."""

    def walk(patterns: list[Any], prefix: str, spaces: tuple[str, ...]) -> Iterator[Address]:
        for each in patterns:
            whole = prefix + str(each.pattern)
            if isinstance(each, URLResolver):
                yield from walk(each.url_patterns, whole, (*spaces, *filter(None, [each.namespace])))
            elif isinstance(each, URLPattern):
                yield Address(
                    name=":".join([*spaces, each.name or whole]),
                    pattern=whole,
                    parameters=tuple(each.pattern.regex.groupindex),
                    view=getattr(each.callback, "cls", None),
                )

    yield from walk(get_resolver().url_patterns, "", ())


ADDRESSES = list(addresses())


@dataclass(frozen=True, kw_only=True)
class Theirs:
    """An organisation with something of everything; `arguments` fill addresses, `secrets` nobody else may read."""

    organisation: Organisation
    viewer: User
    keys: Mapping[Scope, str]
    arguments: Mapping[str, str]
    secrets: tuple[str, ...]


NOW = datetime(2026, 11, 30, 14, 2, tzinfo=UTC)
NAME = "Zirkonia Werke GmbH"


@pytest.fixture
def theirs(db) -> Theirs:
    gpu = make_gpu()
    make_live_offer(gpu=gpu, price="2.19")
    organisation = make_organisation(name=NAME, city="Zirkstadt", register_number="HRB 771177")
    owner = make_member(organisation=organisation, email="owner@zirkonia.example")
    viewer = make_member(organisation=organisation, email="viewer@zirkonia.example", role=Role.VIEWER)
    trader = make_member(organisation=organisation, email="trader@zirkonia.example", role=Role.TRADER)
    keys = {scope: make_key(organisation, owner, [scope]) for scope in scopes_open_to(organisation.kind)}
    invitation = Invitation.objects.create(
        organisation=organisation,
        email="invited@zirkonia.example",
        role=Role.TRADER,
        token_sha256="a" * 64,
        invited_at=NOW,
        expires_at=NOW + timedelta(days=700),
    )
    record(at=NOW, action="organisation.unfrozen", organisation=organisation, reason="zirkonia was cleared")
    decide_for(organisation=organisation, now=NOW - timedelta(days=1))
    top_up = paid_top_up(wallet_of(NAME, currency="USD"), micros=98_765_430_000)
    rental = make_running_rental(renter=organisation, gpu=gpu, filled_at=NOW - timedelta(minutes=2), ready_at=NOW)
    order = place_order(organisation_id=organisation.pk, instruction=order_for(gpu), now=NOW)
    alert = make_alert(gpu=gpu, by=owner)
    event = make_event()
    Refund.objects.create(top_up=top_up, amount_micros=5_000_000, origin="customer", gateway_key="r", requested_at=NOW)
    Dispute.objects.create(
        top_up=top_up, gateway_dispute_id="dp_1", currency="USD", amount_micros=1, loss_micros=1, opened_at=NOW
    )
    webhook = add_endpoint(
        organisation=organisation,
        url="https://zirkonia.example/hook",
        types=[EventType.ORDER_FILLED],
        created_by=owner,
        now=NOW,
    ).endpoint
    message = send_test(organisation=organisation, endpoint_id=webhook.pk, now=NOW)
    return Theirs(
        organisation=organisation,
        viewer=viewer,
        keys=keys,
        arguments={
            "slug": "h100-sxm",
            "cloud_slug": make_cloud().slug,
            "guide_slug": "choosing-a-training-gpu",
            "made_up": "3f-made-up",
            "number": "1",
            "app": "users",
            "key_id": str(ApiKey.objects.filter(organisation=organisation)[0].pk),
            "membership_id": str(trader.membership.pk),
            "invitation_id": str(invitation.pk),
            "top_up_id": str(top_up.pk),
            "order_id": str(order.order_id),
            "alert_id": str(alert.pk),
            "rental_id": str(rental.pk),
            "event_pk": str(event.pk),
            "endpoint_id": str(webhook.pk),
            "message_id": str(message.pk),
        },
        secrets=(
            "irkonia",
            "Zirkstadt",
            "HRB 771177",
            "98,765",
            "98765.43",
            *map(str, (top_up.pk, order.order_id, rental.pk)),
        ),
    )


def make_event() -> GatewayEvent:
    return GatewayEvent.objects.create(
        event_id="evt_zirkonia",
        type="charge.dispute.created",
        payload={},
        is_live=False,
        received_at=NOW,
        next_attempt_at=NOW,
    )


def make_key(organisation: Organisation, owner: User, scopes: list[Scope]) -> str:
    return issue_key(
        organisation=organisation,
        name="zirkonia laptop",
        scopes=scopes,
        created_by=owner,
        expires_at=None,
        now=datetime.now(UTC),
    ).secret


@dataclass(frozen=True, kw_only=True)
class Asker:
    """Someone at the door: how they are signed in, and whether they belong to the organisation."""

    client: Client
    cookies: Mapping[str, str]
    secret_for: Callable[[Any, str], str | None]
    is_inside: bool

    def ask(self, method: str, path: str, view: Any) -> HttpResponseBase:
        """Send an empty request, as if it were the first."""
        self.client.cookies.clear()
        for name, value in self.cookies.items():
            self.client.cookies[name] = value
        secret = self.secret_for(view, method)
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        content_type = "application/json" if view else "application/x-www-form-urlencoded"
        body = "{}" if view and method in ("POST", "PUT", "PATCH") else ""
        return self.client.generic(method, path, body, content_type=content_type, headers=headers)


def asker(actor: Actor, theirs: Theirs) -> Asker:
    """Return the actor. People have just given their password again, so that nothing hides behind that question."""
    stranger = make_organisation(name="Pim & Co")
    if actor in KEYS:
        strangers = make_key(stranger, make_member(organisation=stranger), list(scopes_open_to("renter")))
        lacking = theirs.keys

        def secret_for(view: Any, method: str) -> str | None:
            needed = view.scopes.get("GET" if method == "HEAD" else method)
            other = next(scope for scope in lacking if scope != needed)
            return strangers if actor == Actor.STRANGERS_KEY else lacking[other]

        return Asker(client=_client(), cookies={}, secret_for=secret_for, is_inside=False)
    people: dict[Actor, Callable[[], User]] = {
        Actor.STRANGER: lambda: make_member(organisation=stranger),
        Actor.VIEWER: lambda: theirs.viewer,
        Actor.OPERATOR: make_operator,
    }
    cookies: dict[str, str] = {}
    if actor in people:
        client = Client()
        client.force_login(people[actor]())
        client.post("/account/confirm/", {"password": "long-enough-1"})
        cookies = {name: morsel.value for name, morsel in client.cookies.items()}
    return Asker(
        client=_client(), cookies=cookies, secret_for=lambda view, method: None, is_inside=actor == Actor.VIEWER
    )


def _client() -> Client:
    """Return a client that shows a fault of the site as its visitors see it: status 500."""
    return Client(raise_request_exception=False)


def test_every_address_has_its_line_and_every_line_its_address():
    names = {address.name for address in ADDRESSES}
    assert [name for name in sorted(names) if route_of(name) is None] == [], "write a line in tests/config/routes.py"
    assert sorted(set(ROUTES) - names) == [], "these lines have no address any more"


@pytest.fixture
def few_words(settings) -> Iterator[None]:
    """Nothing logged: most of the answers are refusals. Nothing remembered: counts of attempts begin at nothing."""
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "walk"}}
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
    cache.clear()


@pytest.mark.usefixtures("few_words")
@pytest.mark.parametrize("actor", Actor, ids=lambda actor: actor.name.lower())
def test_everyone_gets_what_is_theirs_from_every_address(theirs, actor):
    """All addresses for one actor: the list of what is wrong is empty. Each request is undone before the next."""
    who, before, counts = asker(actor, theirs), rows_of(theirs), written()
    noted = NOTED_OF_KEYS if actor in KEYS else NOTED_OF_SESSIONS
    wrong: list[str] = []
    asked = 0
    for address, route in lines_for(actor):
        path = path_of(address, route, theirs)
        view = address.view if path.startswith("/api/") else None
        for method in methods_of(address, actor):
            asked += 1
            with transaction.atomic():
                response = who.ask(method, path, view)
                faults = [*status_faults(response, method, actor, route)]
                if not who.is_inside and not (route.is_operators and actor == Actor.OPERATOR):
                    faults += leaks(response, theirs)
                counts, tables = changed_since(counts)
                if not (route.may_leave and who.is_inside):
                    faults += writes(method, tables - noted, theirs, before, actor)
                transaction.set_rollback(True)
            wrong += [f"{method} {path} ({address.name}) as {actor.value}: {fault}" for fault in faults]
    assert asked > (30 if actor in KEYS else 300)
    assert not wrong, "\n".join(wrong)


def lines_for(actor: Actor) -> Iterator[tuple[Address, Route]]:
    """Return the addresses that this actor is sent to."""
    for address in ADDRESSES:
        route = route_of(address.name)
        if route is not None and actor in route.get:
            yield address, route


def methods_of(address: Address, actor: Actor) -> tuple[str, ...]:
    """Return what is sent to an address; the admin's two hundred hang on one guard, which knows staff and others."""
    if address.name.startswith("admin:"):
        return ("GET", "POST") if actor in (Actor.STRANGER, Actor.OPERATOR) else ("GET",)
    return CALL_METHODS if address.pattern.startswith("api/") else PAGE_METHODS


def path_of(address: Address, route: Route, theirs: Theirs) -> str:
    """Return the address with its arguments."""
    path = address.pattern.replace("^", "").replace("$", "")
    for name in address.parameters:
        value = quote(theirs.arguments[route.arguments.get(name, name)])
        for kind in get_converters():
            path = path.replace(f"<{kind}:{name}>", value)
        start = path.find(f"(?P<{name}>")
        if start >= 0:
            path = path[:start] + value + path[path.index(")", start) + 1 :]
    return f"/{path}"


def status_faults(response: HttpResponseBase, method: str, actor: Actor, route: Route) -> Iterator[str]:
    """Return what is wrong with the status of an answer."""
    by_method = {"GET": route.get[actor], "HEAD": route.get[actor], "POST": route.post[actor]}
    allowed = by_method.get(method, (*route.get[actor], *route.post[actor], 405, 429))
    if response.status_code not in allowed:
        yield f"answered {response.status_code}, may be {sorted(set(allowed))}"


def leaks(response: Any, theirs: Theirs) -> Iterator[str]:
    """Return what an answer tells of the organisation, its own address aside."""
    body = b"".join(response.streaming_content) if response.streaming else response.content
    text = body.decode(errors="replace")  # a picture is no text
    told = f"{response.headers} {text}".replace(response.request["PATH_INFO"], "")
    yield from (f"tells {secret!r}" for secret in theirs.secrets if secret in told)


def writes(method: str, tables: set[str], theirs: Theirs, before: Any, actor: Actor) -> Iterator[str]:
    """Return what was written that should not have been: anything by reading, theirs by an outsider or a viewer."""
    if method in READING and tables:
        yield f"wrote to {sorted(tables)}"
    elif tables and actor != Actor.OPERATOR and rows_of(theirs) != before:
        yield f"changed rows of the organisation, writing to {sorted(tables)}"


def changed_since(counts: dict[str, int]) -> tuple[dict[str, int], set[str]]:
    """Return the counts of rows written by now, and the tables where they differ."""
    now_written = written()
    return now_written, {table for table, count in now_written.items() if count != counts.get(table)}


def written() -> dict[str, int]:
    """Return how many rows this transaction has written so far, by table; what was undone counts too."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname, n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_xact_user_tables")
        return {table: count for table, count in cursor.fetchall() if count}


def rows_of(theirs: Theirs) -> dict[str, list[Any]]:
    """Return every row that belongs to the organisation, by model."""
    found: dict[str, list[Any]] = {
        "organisation": list(Organisation.objects.filter(pk=theirs.organisation.pk).values())
    }
    for model in apps.get_models():
        for field in model._meta.get_fields():
            if field.is_relation and field.many_to_one and field.related_model is Organisation:
                rows = model._default_manager.filter(**{field.name: theirs.organisation}).order_by("pk")
                found[f"{model._meta.label}.{field.name}"] = list(rows.values())
    return found
