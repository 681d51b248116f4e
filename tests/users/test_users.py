"""People sign in by e-mail address."""

import pytest
from django.db import IntegrityError

from users.models import User

pytestmark = pytest.mark.django_db


def test_the_e_mail_address_is_the_login_name():
    user = User.objects.create_user("ana@example.org", "a long password")
    assert User.USERNAME_FIELD == "email"
    assert User.objects.get_by_natural_key("ana@example.org") == user
    assert user.check_password("a long password")
    assert not user.is_staff


def test_an_address_is_unique_whatever_its_letter_case():
    User.objects.create_user("ana@example.org", "a long password")
    with pytest.raises(IntegrityError):
        User.objects.create_user("Ana@example.org", "a long password")


def test_a_user_without_an_address_is_refused():
    with pytest.raises(ValueError, match="e-mail"):
        User.objects.create_user("")


def test_an_operator_may_do_everything():
    assert User.objects.create_superuser("bo@example.org", "a long password").has_perm("users.change_user")
