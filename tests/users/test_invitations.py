"""Invitations: sent once, kept as a hash, accepted once by the invited address alone."""

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from allauth.account.models import EmailAddress
from django.core import mail
from django.db import connection
from django.utils import translation
from hypothesis import given
from hypothesis import strategies as st

from tests.factories import NOW, make_member, make_organisation
from users.invitations import (
    MOST_PER_DAY,
    VALID_FOR,
    AlreadyInvited,
    AlreadyMember,
    HasOrganisation,
    InvitationExpired,
    InvitationUsed,
    InvitationWithdrawn,
    OtherAddress,
    TooManyInvitations,
    UnknownInvitation,
    accept,
    invitation_of,
    invite,
    withdraw,
)
from users.models import AuditRecord, Invitation, Membership, Role, User

pytestmark = pytest.mark.django_db
ADDRESS = "new.person@example.com"


@pytest.fixture
def owner():
    return make_member(email="owner@example.com")


def person(email: str = ADDRESS, *, is_verified: bool = True) -> User:
    """Return a person without an organisation."""
    user = User.objects.create_user(email=email, password="long-enough-1")
    EmailAddress.objects.create(user=user, email=email, verified=is_verified, primary=True)
    return user


def sent(owner: User, *, email: str = ADDRESS, role: Role = Role.TRADER, now=NOW) -> str:
    """Invite somebody and return the token of the link."""
    tokens = []

    def link(token: str) -> str:
        tokens.append(token)
        return f"https://bourse.example/account/invitation/{token}/"

    organisation = owner.membership.organisation
    invite(organisation=organisation, email=email, role=role, invited_by=owner, now=now, link=link)
    return tokens[0]


def actions() -> list[str]:
    return list(AuditRecord.objects.order_by("pk").values_list("action", flat=True))


def test_the_database_knows_the_hash_of_the_token_and_the_mail_knows_the_token(
    owner, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        token = sent(owner)
    invitation = Invitation.objects.get()
    assert invitation.token_sha256 == hashlib.sha256(token.encode()).hexdigest()
    stored = Invitation.objects.values_list().get()
    assert not [value for value in (*stored, *AuditRecord.objects.values_list()) if token in str(value)]
    assert len(token) >= 43, "256 bits"
    assert invitation.expires_at == NOW + VALID_FOR
    (message,) = mail.outbox
    assert message.to == [ADDRESS]
    assert token in message.body
    assert "Orla Labs B.V." in message.subject
    assert "owner@example.com" in message.body
    assert "trader" in message.body


def test_the_mail_leaves_after_the_commit_and_never_for_what_was_rolled_back(owner, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks() as waiting:
        sent(owner)
    assert len(waiting) == 1
    assert mail.outbox == []
    with django_capture_on_commit_callbacks(execute=True), pytest.raises(AlreadyInvited):
        sent(owner)
    assert mail.outbox == []


def test_the_mail_speaks_the_language_of_the_page(owner, django_capture_on_commit_callbacks):
    owner.membership.organisation.name = "Orla & Co"
    owner.membership.organisation.save()
    with translation.override("pl"), django_capture_on_commit_callbacks(execute=True):
        sent(owner)
    assert "7 grudnia 2026" in mail.outbox[0].body
    assert "Orla & Co" in mail.outbox[0].subject, "plain text is not escaped"


def test_a_name_cannot_add_lines_to_the_head_of_the_mail(owner, django_capture_on_commit_callbacks):
    owner.membership.organisation.name = "Orla\nBcc: x@example.com"
    owner.membership.organisation.save()
    with django_capture_on_commit_callbacks(execute=True):
        sent(owner)
    assert mail.outbox[0].recipients() == [ADDRESS]
    assert "\n" not in mail.outbox[0].subject


def test_the_invited_person_joins_in_the_role_and_nobody_joins_twice(owner):
    token = sent(owner, role=Role.BILLING)
    user = person()
    membership = accept(token=token, user=user, now=NOW)
    assert (membership.organisation, membership.role) == (owner.membership.organisation, Role.BILLING)
    assert Invitation.objects.get().accepted_at == NOW
    assert accept(token=token, user=user, now=NOW + timedelta(hours=1)) == membership, "a second run is the same"
    with pytest.raises(InvitationUsed):
        invitation_of(token, NOW)
    assert actions() == ["invitation.sent", "invitation.accepted"]


def test_the_letter_case_of_an_address_does_not_matter(owner):
    token = sent(owner, email=" New.Person@Example.COM ")
    assert accept(token=token, user=person(), now=NOW).role == Role.TRADER


@pytest.mark.parametrize(
    ("email", "is_verified"), [("somebody.else@example.com", True), (ADDRESS, False), ("new.person@example.co", True)]
)
def test_whoever_has_not_confirmed_the_invited_address_does_not_join(owner, email, is_verified):
    token = sent(owner)
    with pytest.raises(OtherAddress):
        accept(token=token, user=person(email, is_verified=is_verified), now=NOW)
    assert Membership.objects.count() == 1
    assert invitation_of(token, NOW).email == ADDRESS, "it is still open for the right one"


def test_a_member_of_another_organisation_is_refused_and_the_invitation_stays_open(owner):
    token = sent(owner)
    other = make_member(organisation=make_organisation(name="Other B.V."), email=ADDRESS)
    with pytest.raises(HasOrganisation, match=r"Other B\.V\."):
        accept(token=token, user=other, now=NOW)
    assert other.membership.organisation.name == "Other B.V."
    assert invitation_of(token, NOW).email == ADDRESS


def test_an_invitation_works_until_its_last_instant(owner):
    token = sent(owner)
    end = NOW + VALID_FOR
    assert invitation_of(token, end - timedelta(microseconds=1)).email == ADDRESS
    with pytest.raises(InvitationExpired):
        invitation_of(token, end)
    with pytest.raises(InvitationExpired):
        accept(token=token, user=person(), now=end)


def test_a_withdrawn_invitation_opens_nothing(owner):
    token = sent(owner)
    organisation, pk = owner.membership.organisation, Invitation.objects.get().pk
    for _ in range(2):
        withdraw(organisation=organisation, invitation_id=pk, withdrawn_by=owner, now=NOW)
    with pytest.raises(InvitationWithdrawn):
        accept(token=token, user=person(), now=NOW)
    assert actions() == ["invitation.sent", "invitation.withdrawn"], "the second time is not a decision"


def test_only_its_own_organisation_withdraws_an_invitation(owner):
    token = sent(owner)
    stranger = make_member(organisation=make_organisation(name="Other B.V."))
    with pytest.raises(UnknownInvitation):
        withdraw(
            organisation=stranger.membership.organisation,
            invitation_id=Invitation.objects.get().pk,
            withdrawn_by=stranger,
            now=NOW,
        )
    assert invitation_of(token, NOW).email == ADDRESS


def test_what_was_accepted_cannot_be_withdrawn(owner):
    accept(token=sent(owner), user=person(), now=NOW)
    with pytest.raises(InvitationUsed):
        withdraw(
            organisation=owner.membership.organisation,
            invitation_id=Invitation.objects.get().pk,
            withdrawn_by=owner,
            now=NOW,
        )


def test_a_member_is_not_invited_again(owner):
    with pytest.raises(AlreadyMember):
        sent(owner, email="OWNER@example.com")


def test_an_open_invitation_is_not_sent_twice_but_an_expired_or_withdrawn_one_is(owner):
    first = sent(owner)
    with pytest.raises(AlreadyInvited):
        sent(owner, email=ADDRESS.upper())
    second = sent(owner, now=NOW + VALID_FOR)
    with pytest.raises(InvitationWithdrawn):
        invitation_of(first, NOW)
    assert invitation_of(second, NOW + VALID_FOR).email == ADDRESS


def test_an_organisation_sends_only_so_many_in_a_day_whatever_it_withdraws(owner):
    for number in range(MOST_PER_DAY):
        sent(owner, email=f"p{number}@example.com")
    Invitation.objects.update(withdrawn_at=NOW)
    with pytest.raises(TooManyInvitations):
        sent(owner, now=NOW + timedelta(hours=23, minutes=59))
    assert sent(owner, now=NOW + timedelta(days=1))


@given(token=st.text(max_size=80))
def test_no_other_text_is_a_token(token):
    with pytest.raises(UnknownInvitation):
        invitation_of(token, NOW)


@pytest.mark.django_db(transaction=True)
def test_of_two_invitations_accepted_at_once_one_wins():
    """A person invited by two organisations says yes to both in the same moment."""
    owners = [make_member(organisation=make_organisation(name=name)) for name in ("One B.V.", "Two B.V.")]
    tokens = [sent(owner) for owner in owners]
    user = person()
    barrier = threading.Barrier(2)

    def say_yes(token: str) -> str:
        try:
            barrier.wait(10)
            return accept(token=token, user=user, now=NOW).organisation.name
        except HasOrganisation:
            return "refused"
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(say_yes, tokens))
    assert answers.count("refused") == 1
    assert Membership.objects.get(user=user).organisation.name in answers
    assert Invitation.objects.filter(accepted_at=None).count() == 1, "the refused one is still open"


@pytest.mark.django_db(transaction=True)
def test_two_owners_who_invite_the_same_person_at_once_send_one_invitation():
    first, second = make_member(), make_member()
    barrier = threading.Barrier(2)

    def ask(owner: User) -> str:
        try:
            barrier.wait(10)
            return sent(owner)
        except AlreadyInvited:
            return ""
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(ask, [first, second]))
    assert sorted(map(bool, answers)) == [False, True]
    assert Invitation.objects.count() == len(mail.outbox) == 1
