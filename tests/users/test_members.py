"""Members: roles, removal, and the owner who must remain. Pages and flows."""

import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core import mail
from django.core.exceptions import PermissionDenied
from django.db import connection, transaction
from django.test import Client, RequestFactory

from tests.factories import NOW, make_member, make_operator, make_organisation
from tests.users.test_invitations import ADDRESS, person, sent
from users.access import membership_of
from users.api_keys import KeyRevoked, issue_key, key_of
from users.members import LastOwner, UnknownMember, change_role, remove
from users.models import AuditRecord, Invitation, Membership, Role, Scope, User
from users.queries import other_owners_of

pytestmark = pytest.mark.django_db
PAGE = "/account/members/"


@pytest.fixture
def owner():
    return make_member(email="owner@example.com")


@pytest.fixture
def viewer(owner):
    return make_member(role=Role.VIEWER, email="viewer@example.com")


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def set_role(member: User, role: Role, *, by: User) -> None:
    change_role(
        organisation=by.membership.organisation,
        membership_id=member.membership.pk,
        role=role,
        changed_by=by,
        now=NOW,
    )


def take_out(member: User, *, by: User) -> int:
    return remove(organisation=by.membership.organisation, membership_id=member.membership.pk, removed_by=by, now=NOW)


def role_of(user: User) -> str | None:
    return Membership.objects.filter(user=user).values_list("role", flat=True).first()


# --- flows


def test_a_role_is_changed_and_written_down(owner, viewer):
    set_role(viewer, Role.TRADER, by=owner)
    set_role(viewer, Role.TRADER, by=owner)
    assert role_of(viewer) == Role.TRADER
    line = AuditRecord.objects.get()
    assert (line.action, line.actor, line.subject_id) == ("member.role_changed", owner, str(viewer.pk))
    assert (line.before["role"], line.after["role"]) == ("viewer", "trader")


def test_the_last_owner_can_neither_be_demoted_nor_leave(owner, viewer):
    with pytest.raises(LastOwner):
        set_role(owner, Role.VIEWER, by=owner)
    with pytest.raises(LastOwner):
        take_out(owner, by=owner)
    assert role_of(owner) == Role.OWNER
    assert not AuditRecord.objects.exists()


def test_an_owner_who_cannot_sign_in_does_not_count(owner):
    other = make_member()
    User.objects.filter(pk=other.pk).update(is_active=False)
    with pytest.raises(LastOwner):
        take_out(owner, by=owner)


def test_with_a_second_owner_the_first_may_go(owner, viewer):
    set_role(viewer, Role.OWNER, by=owner)
    take_out(owner, by=owner)
    assert role_of(owner) is None
    assert AuditRecord.objects.latest("pk").action == "member.left"


def test_whoever_is_removed_loses_access_with_the_next_request(owner, viewer):
    client = signed_in(viewer)
    assert client.get(PAGE).status_code == 200
    take_out(viewer, by=owner)
    assert client.get(PAGE).status_code == 403
    assert client.get("/account/history/").status_code == 403
    request = RequestFactory().get(PAGE)
    request.user = viewer
    with pytest.raises(PermissionDenied):
        membership_of(request)


def test_the_keys_of_whoever_is_removed_stop_working_and_others_go_on(owner, viewer):
    def key(by: User) -> str:
        organisation = by.membership.organisation
        return issue_key(
            organisation=organisation, name="k", scopes=[Scope.READ], created_by=by, expires_at=None, now=NOW
        ).secret

    gone, kept = key(viewer), key(owner)
    assert take_out(viewer, by=owner) == 1
    with pytest.raises(KeyRevoked):
        key_of(gone, now=NOW)
    assert key_of(kept, now=NOW).created_by == owner
    assert list(AuditRecord.objects.order_by("pk").values_list("action", flat=True)[2:]) == [
        "key.revoked",
        "member.removed",
    ]


def test_a_member_of_another_organisation_cannot_be_touched(owner):
    stranger = make_member(organisation=make_organisation(name="Other B.V."), role=Role.VIEWER)
    with pytest.raises(UnknownMember):
        set_role(stranger, Role.OWNER, by=owner)
    with pytest.raises(UnknownMember):
        take_out(stranger, by=owner)
    assert role_of(stranger) == Role.VIEWER


# --- races


def together(works: list[Callable[[], object]]) -> list[object]:
    """Run each in a thread with a connection of its own and return what it gave back or raised."""

    def run(work: Callable[[], object]) -> object:
        try:
            return work()
        except Exception as problem:
            return problem
        finally:
            connection.close()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(run, works))


def demote_unguarded(owner: User, barrier: threading.Barrier) -> bool:
    """What a careless flow does: look for another owner, decide, then write."""
    with transaction.atomic():
        membership = Membership.objects.get(user=owner)
        is_other_left = other_owners_of(membership).exists()
        barrier.wait(10)
        if is_other_left:
            Membership.objects.filter(pk=membership.pk).update(role=Role.VIEWER)
        return is_other_left


@pytest.mark.django_db(transaction=True)
def test_without_the_lock_two_owners_demote_each_other():
    ana, bo = make_member(), make_member()
    barrier = threading.Barrier(2)
    assert together([lambda: demote_unguarded(bo, barrier), lambda: demote_unguarded(ana, barrier)]) == [True, True]
    assert not Membership.objects.filter(role=Role.OWNER).exists(), "the race is real"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("leave", [False, True])
def test_with_it_one_of_them_stays_owner(leave):
    ana, bo = make_member(), make_member()
    barrier = threading.Barrier(2)

    def act(member: User, by: User) -> None:
        barrier.wait(10)
        if leave:
            take_out(member, by=by)
        else:
            set_role(member, Role.VIEWER, by=by)

    results = together([lambda: act(bo, ana), lambda: act(ana, bo)])
    assert sum(isinstance(result, LastOwner) for result in results) == 1, results
    assert results.count(None) == 1
    assert Membership.objects.filter(role=Role.OWNER).count() == 1


# --- pages


def test_the_page_lists_members_and_offers_changes_to_owners_alone(owner, viewer):
    sent(owner)
    for user, may in ((owner, True), (viewer, False)):
        answer = signed_in(user).get(PAGE)
        page = answer.content.decode()
        for words in ("owner@example.com", "viewer@example.com", ADDRESS, "Invitations without an answer"):
            assert words in page
        assert ("Send the invitation" in page) is may
        assert ("Withdraw" in page) is may
        assert ("Save the role" in page) is may
        assert "no-store" in answer["Cache-Control"]
        assert '<meta name="robots" content="noindex">' in page


def test_the_page_needs_few_queries_whatever_the_number_of_people(owner, django_assert_max_num_queries):
    for number in range(20):
        make_member(role=Role.VIEWER)
        sent(owner, email=f"p{number}@example.com")
    client = signed_in(owner)
    with django_assert_max_num_queries(12):
        client.get(PAGE)


@pytest.mark.django_db(transaction=True)
def test_an_owner_invites_and_the_mailed_link_lets_the_person_in(client):
    owner = make_member(email="owner@example.com")
    answer = signed_in(owner).post(PAGE, {"email": ADDRESS, "role": "trader"}, follow=True)
    assert f"An invitation is on its way to {ADDRESS}." in answer.content.decode()
    link = next(line for line in mail.outbox[0].body.splitlines() if line.startswith("http://testserver/"))
    assert "Create an account with this address" in client.get(link).content.decode()
    invited = signed_in(person())
    page = invited.get(link).content.decode()
    assert "Join Orla Labs B.V." in page
    assert invited.post(link).headers["Location"] == "/account/"
    assert Membership.objects.get(user__email=ADDRESS).role == Role.TRADER
    assert AuditRecord.objects.latest("pk").ip_address == "127.0.0.1"
    assert invited.get(link).status_code == 410
    assert invited.post(link).status_code == 302, "sent again, it changes nothing"


def test_a_newcomer_joins_by_signing_up_from_the_invitation(client, owner):
    link = f"/account/invitation/{sent(owner, role=Role.BILLING)}/"
    sign_up = re.search(r'href="(/account/sign-up/\?next=[^"]*)"', client.get(link).content.decode())
    assert sign_up is not None
    page = client.get(sign_up[1]).content.decode()
    assert ADDRESS in page
    fields = {"email": "somebody.else@example.com", "password1": "long enough for all", "next": link}
    assert client.post("/account/sign-up/", fields).headers["Location"] == "/account/"
    membership = Membership.objects.get(user__email=ADDRESS)
    assert (membership.organisation, membership.role) == (owner.membership.organisation, Role.BILLING)
    assert client.get(PAGE).status_code == 200, "the link has confirmed the address"


@pytest.mark.django_db(transaction=True)
def test_a_mail_that_cannot_be_sent_is_said_and_the_invitation_stays(monkeypatch):
    def down(*args):
        raise ConnectionRefusedError

    monkeypatch.setattr("users.mails.EmailMessage.send", down)
    answer = signed_in(make_member()).post(PAGE, {"email": ADDRESS, "role": "trader"}, follow=True)
    assert "The mail could not be sent." in answer.content.decode()
    assert Invitation.objects.count() == 1


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"email": "", "role": "viewer"}, "This field is required."),
        ({"email": "no address", "role": "viewer"}, "Enter a valid email address."),
        ({"email": ADDRESS, "role": "emperor"}, "Select a valid choice."),
        ({"email": "owner@example.com", "role": "viewer"}, "Somebody with this address is a member already."),
        ({"email": f"{'a' * 250}@example.com", "role": "viewer"}, "at most 254 characters"),
    ],
)
def test_a_faulty_invitation_is_said_at_the_field_and_on_top(owner, fields, words):
    answer = signed_in(owner).post(PAGE, fields)
    page = answer.content.decode()
    assert answer.status_code == 200
    assert page.count(words) >= 2
    assert 'role="alert"' in page
    assert 'aria-invalid="true"' in page
    assert not Invitation.objects.exists()


def test_the_page_changes_a_role_and_removes(owner, viewer):
    client, pk = signed_in(owner), viewer.membership.pk
    assert client.post(f"{PAGE}{pk}/role/", {"role": "billing"}).headers["Location"] == PAGE
    assert role_of(viewer) == Role.BILLING
    assert client.post(f"{PAGE}{pk}/role/", {"role": "emperor"}, follow=True).status_code == 200
    assert role_of(viewer) == Role.BILLING
    answer = client.post(f"{PAGE}{pk}/remove/", follow=True)
    assert "They can no longer see anything" in answer.content.decode()
    assert role_of(viewer) is None
    assert client.post(f"{PAGE}{pk}/remove/").status_code == 404


def test_the_page_refuses_to_lose_the_last_owner_in_words(owner, viewer):
    client, pk = signed_in(owner), owner.membership.pk
    for path, fields in ((f"{PAGE}{pk}/role/", {"role": "viewer"}), (f"{PAGE}{pk}/remove/", {}), (f"{PAGE}leave/", {})):
        page = client.post(path, fields, follow=True).content.decode()
        assert "This is the last owner." in page, path
    assert role_of(owner) == Role.OWNER
    assert "You are the last owner" in client.get(PAGE).content.decode()


def test_every_member_may_leave(viewer):
    client = signed_in(viewer)
    assert client.post(f"{PAGE}leave/").headers["Location"] == "/account/"
    assert role_of(viewer) is None


def test_who_may_do_what(owner, viewer):
    """Each changing address x (stranger to the site, viewer, owner of another organisation, operator)."""
    sent(owner)
    member, invitation = viewer.membership.pk, Invitation.objects.get().pk
    addresses = [
        (PAGE, {"email": "x@example.com", "role": "owner"}),
        (f"{PAGE}{member}/role/", {"role": "owner"}),
        (f"{PAGE}{member}/remove/", {}),
        (f"{PAGE}invitations/{invitation}/withdraw/", {}),
    ]
    foreign_owner = make_member(organisation=make_organisation(name="Other B.V."))
    for path, fields in addresses:
        assert Client().post(path, fields).headers["Location"].startswith("/account/login/"), path
        assert signed_in(viewer).post(path, fields).status_code == 403, path
        assert signed_in(make_operator(email=f"{abs(hash(path))}@example.com")).post(path, fields).status_code == 403
        if path != PAGE:
            assert signed_in(foreign_owner).post(path, fields).status_code == 404, path
            assert signed_in(owner).get(path).status_code == 405, path
    assert role_of(viewer) == Role.VIEWER
    assert Invitation.objects.get().withdrawn_at is None


def test_an_owner_withdraws_an_invitation(owner):
    token = sent(owner)
    path = f"{PAGE}invitations/{Invitation.objects.get().pk}/withdraw/"
    page = signed_in(owner).post(path, follow=True).content.decode()
    assert "its link no longer works" in page
    answer = Client().get(f"/account/invitation/{token}/")
    assert answer.status_code == 410
    assert "This invitation was withdrawn." in answer.content.decode()


@pytest.mark.parametrize("token", ["", "x" * 43, "../../etc/passwd", "%00", "é"])
def test_a_link_that_is_not_one_says_so_and_is_no_error(client, token):
    answer = client.get(f"/account/invitation/{token}/")
    assert answer.status_code == 404


def test_the_invitation_page_says_what_is_in_the_way(owner):
    path = f"/account/invitation/{sent(owner)}/"
    elsewhere = signed_in(make_member(organisation=make_organisation(name="Other B.V."), email=ADDRESS))
    assert "You belong to an organisation already." in elsewhere.get(path).content.decode()
    assert elsewhere.post(path).headers["Location"] == path
    other_address = signed_in(person("somebody.else@example.com"))
    page = other_address.get(path).content.decode()
    assert "This invitation is for another address." in page
    assert ADDRESS not in page, "who holds the link need not learn whose it is"
    assert other_address.post(path).headers["Location"] == path
    assert "Create an account" in Client().post(path).content.decode()
    assert Membership.objects.filter(organisation=owner.membership.organisation).count() == 1


def test_opening_an_invitation_changes_nothing_and_is_not_stored_anywhere(owner):
    answer = signed_in(person()).get(f"/account/invitation/{sent(owner)}/")
    assert Invitation.objects.get().accepted_at is None
    assert "no-store" in answer["Cache-Control"]
