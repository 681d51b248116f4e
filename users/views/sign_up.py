"""`/account/sign-up/`: a person with a new organisation, or one who was invited to an existing one."""

from datetime import UTC, datetime
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from allauth.account.views import SignupView
from django.urls import Resolver404, resolve, reverse

from users.forms import JoinForm, SignUpForm
from users.invitations import InvitationRefused, invitation_of
from users.models import Invitation


class SignUpView(SignupView):  # type: ignore[misc]
    """The library's view, with the form that the visitor needs. Whoever comes from an invitation joins by it."""

    @cached_property
    def token(self) -> str:
        """The token of the invitation from whose page the visitor comes; "" from elsewhere."""
        try:
            page = resolve(urlsplit(self.get_next_url() or "").path)
        except Resolver404:
            return ""
        return str(page.kwargs["token"]) if page.view_name == "users:invitation" else ""

    @cached_property
    def invitation(self) -> Invitation | None:
        """That invitation, while it is open."""
        try:
            return invitation_of(self.token, datetime.now(UTC))
        except InvitationRefused:
            return None

    def get_form_class(self) -> type[SignUpForm | JoinForm]:
        """Ask an invited person for a password alone."""
        return JoinForm if self.invitation else SignUpForm

    def get_form_kwargs(self) -> dict[str, Any]:
        """Add the time, and to an invited person's form the invitation."""
        more = {"invitation": self.invitation, "token": self.token} if self.invitation else {}
        return {**super().get_form_kwargs(), "now": datetime.now(UTC), **more}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Tell the page who invited."""
        return {**super().get_context_data(**kwargs), "invitation": self.invitation}

    def get_success_url(self) -> str | None:
        """Return where to go afterwards; None for the usual place. An invitation is used up by then."""
        return reverse("users:account") if self.invitation else super().get_success_url()


sign_up = SignUpView.as_view()
