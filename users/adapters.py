"""What the accounts library asks the site: where to go, what to write, how to keep secrets."""

import logging
from smtplib import SMTPException
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.usersessions.models import UserSession
from django.contrib import messages
from django.contrib.auth.base_user import AbstractBaseUser
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from users.encryption import cipher_for

_log = logging.getLogger(__name__)
SITE_NAME = "GPU Bourse"
_PURPOSE = "users.adapters.MFAAdapter"


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """Signing up and in."""

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Send a mail; where the mail server does not take it, say so on the page instead of failing."""
        try:
            super().send_mail(template_prefix, email, {**context, "site_name": SITE_NAME})
        except (SMTPException, OSError):
            _log.exception("Mail %s could not be sent", template_prefix)
            text = _("A mail could not be sent just now. Please ask for it again in a few minutes.")
            messages.error(self.request, text)

    def post_login(self, request: HttpRequest, user: AbstractBaseUser, **how: Any) -> HttpResponse:
        """Greet nobody, but tell the owner of the account by mail when the browser is a new one."""
        agent = self.get_http_user_agent(request)
        before = UserSession.objects.filter(user_id=user.pk)
        is_new = before.exists() and not before.filter(user_agent=agent[:200]).exists()
        response: HttpResponse = super().post_login(request, user, **how)
        if is_new:
            self.send_notification_mail("account/email/new_sign_in", user)
        return response


class MFAAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    """Passkeys, authenticator apps and recovery codes. Secrets are stored encrypted: a copy of the database opens nothing."""

    def encrypt(self, text: str) -> str:
        """Encrypt with a key that comes from the site's own."""
        return cipher_for(_PURPOSE).encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """Decrypt, also what was encrypted before the site's key was replaced (SECRET_KEY_FALLBACKS)."""
        return cipher_for(_PURPOSE).decrypt(encrypted_text.encode()).decode()

    def _get_site_name(self) -> str:
        return SITE_NAME

    def generate_authenticator_name(self, user: AbstractBaseUser, type: Any) -> str:  # noqa: A002
        """Return a name to begin with."""
        return _("Passkey")
