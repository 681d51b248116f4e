"""The record of decisions: it only grows, says what it knows, and believes no made-up address."""

import ast
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import RequestFactory

from tests.factories import NOW, make_member, make_operator, make_organisation
from users.audit import ip_address_of, record
from users.audit_words import ACTIONS
from users.models import AuditRecord, Role
from users.views.audit import PER_PAGE, details_of

pytestmark = pytest.mark.django_db
PROJECT = Path(__file__).resolve().parent.parent.parent
APPS = ("users", "billing", "marketplace", "catalog", "config")


def note(organisation=None, **values) -> AuditRecord:
    record(**{"at": NOW, "action": "member.removed", "organisation": organisation, **values})
    return AuditRecord.objects.latest("pk")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE users_auditrecord SET reason = 'it was somebody else'",
        "UPDATE users_auditrecord SET reason = 'x' WHERE false",
        "DELETE FROM users_auditrecord",
        "TRUNCATE users_auditrecord",
    ],
)
def test_raw_sql_cannot_change_the_record(statement):
    line = note(reason="as it was")
    connection.cursor().execute("SET CONSTRAINTS ALL IMMEDIATE")  # or TRUNCATE stumbles over the row's own checks
    with pytest.raises(DatabaseError, match="users_auditrecord only grows"), transaction.atomic():
        connection.cursor().execute(statement)
    line.refresh_from_db()
    assert line.reason == "as it was"


def test_the_orm_cannot_either():
    line = note()
    for change in (line.delete, lambda: line.save(update_fields=["reason"])):
        with pytest.raises(DatabaseError, match="only grows"), transaction.atomic():
            change()


def test_a_record_is_rolled_back_with_its_decision():
    with transaction.atomic():
        note()
        transaction.set_rollback(True)
    assert not AuditRecord.objects.exists()


def test_a_record_keeps_what_it_was_told():
    owner = make_member()
    line = note(
        owner.membership.organisation,
        actor=owner,
        subject_type="person",
        subject_id=7,
        before={"role": "viewer"},
        after={"role": "trader"},
        ip_address="2001:db8::1",
    )
    line.refresh_from_db()
    assert (line.actor, line.subject_id, line.before, line.after) == (
        owner,
        "7",
        {"role": "viewer"},
        {"role": "trader"},
    )
    assert line.ip_address == "2001:db8::1"


@pytest.mark.parametrize(
    ("proxies", "forwarded", "expected"),
    [
        (0, "203.0.113.9", "192.0.2.1"),
        (1, "203.0.113.9", "203.0.113.9"),
        (1, "198.51.100.66, 203.0.113.9", "203.0.113.9"),
        (1, None, "192.0.2.1"),
        (1, "nonsense", None),
    ],
)
def test_an_address_is_believed_only_from_our_own_proxy(settings, proxies, forwarded, expected):
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = proxies
    headers = {"x-forwarded-for": forwarded} if forwarded else {}
    assert ip_address_of(RequestFactory(REMOTE_ADDR="192.0.2.1").get("/", headers=headers)) == expected


def test_a_socket_without_an_address_is_no_error():
    assert ip_address_of(RequestFactory(REMOTE_ADDR="").get("/")) is None


def test_the_history_shows_the_organisation_s_records_newest_first(client):
    owner = make_member(email="owner@example.com")
    organisation = owner.membership.organisation
    note(organisation, action="invitation.sent", after={"email": "first@example.com"})
    note(organisation, action="invitation.sent", at=NOW + timedelta(hours=1), after={"email": "second@example.com"})
    note(make_organisation(name="Other B.V."), after={"email": "foreign@example.com"})
    note(None, after={"email": "nobody@example.com"})
    client.force_login(owner)
    answer = client.get("/account/history/")
    page = answer.content.decode()
    assert page.index("second@example.com") < page.index("first@example.com")
    assert "foreign@example.com" not in page
    assert "nobody@example.com" not in page
    assert "no-store" in answer["Cache-Control"]
    assert '<meta name="robots" content="noindex">' in page


def test_the_history_names_members_and_keeps_operators_nameless(client):
    owner, colleague = make_member(), make_member(email="colleague@example.com")
    organisation = owner.membership.organisation
    note(organisation, actor=owner)
    note(organisation, actor=colleague)
    note(organisation, actor=make_operator(email="real.name@bourse.example"), reason="Paid in full")
    note(organisation)
    client.force_login(owner)
    page = client.get("/account/history/").content.decode()
    for words in ("by you", "by colleague@example.com", "by an operator", "by the site", "Paid in full"):
        assert words in page
    assert "real.name@bourse.example" not in page


def test_only_owners_see_where_a_request_came_from(client):
    owner, viewer = make_member(), make_member(role=Role.VIEWER)
    note(owner.membership.organisation, ip_address="203.0.113.9")
    for user, expected in ((owner, True), (viewer, False)):
        client.force_login(user)
        assert ("203.0.113.9" in client.get("/account/history/").content.decode()) is expected


def test_the_history_is_cut_into_pages_with_few_queries(client, django_assert_max_num_queries):
    owner = make_member()
    for number in range(PER_PAGE + 1):
        note(owner.membership.organisation, at=NOW + timedelta(minutes=number), reason=f"line {number:03}")
    client.force_login(owner)
    with django_assert_max_num_queries(12):
        first = client.get("/account/history/").content.decode()
    second = client.get("/account/history/?page=2").content.decode()
    assert f"line {PER_PAGE:03}" in first
    assert "line 000" not in first
    assert "line 000" in second
    for page in ("3", "0", "-1", "x", "9" * 50):
        assert client.get(f"/account/history/?page={page}").status_code == 404


def test_the_history_is_read_only_and_for_members(client):
    assert client.get("/account/history/").url.startswith("/account/login/")
    client.force_login(make_operator())
    assert client.get("/account/history/").status_code == 403
    client.force_login(make_member())
    assert client.post("/account/history/").status_code == 405


def test_an_empty_history_says_so(client):
    client.force_login(make_member())
    assert "Nothing has been decided yet." in client.get("/account/history/").content.decode()


def test_a_detail_that_changed_shows_both_values_and_another_one():
    email, role = details_of({"role": "viewer", "email": "a@example.com"}, {"role": "trader", "email": "a@example.com"})
    assert (role.before, role.after) == ("viewer", "trader")
    assert (email.before, email.after) == (None, "a@example.com")
    (name,) = details_of({"name": "backup"}, {})
    assert (name.before, name.after) == (None, "backup")
    (end,) = details_of({"expires_at": "2026-12-01"}, {"expires_at": None})
    assert (end.before, end.after) == ("2026-12-01", "none")
    (amount,) = details_of({}, {"amount_micros": 12_500_000})
    assert (str(amount.label), amount.after) == ("Amount", "12.5")


def recorded_actions() -> set[str]:
    """Every action that any code of the site records, as far as it stands there as a text."""
    found = set()
    for app in APPS:
        for path in (PROJECT / app).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.keyword) and node.arg == "action":
                    texts = [leaf.value for leaf in ast.walk(node.value) if isinstance(leaf, ast.Constant)]
                    found |= {text for text in texts if isinstance(text, str) and "." in text}
    return found


def test_every_recorded_action_has_words():
    assert recorded_actions() >= {"member.removed", "invitation.sent", "organisation.frozen"}
    assert recorded_actions() - set(ACTIONS) == set()
