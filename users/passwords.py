"""A limit for passwords that Django has none for."""

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from users.models import User


class MaximumLengthValidator:
    """Refuses what would only keep the hash busy. Set in `AUTH_PASSWORD_VALIDATORS`; `max_length` in characters."""

    def __init__(self, max_length: int) -> None:
        self.max_length = max_length

    def validate(self, password: str, user: User | None = None) -> None:
        """Raise ValidationError for a password that is too long."""
        if len(password) > self.max_length:
            raise ValidationError(self.get_help_text(), code="password_too_long")

    def get_help_text(self) -> str:
        """Say the limit."""
        return _("At most %(max_length)d characters.") % {"max_length": self.max_length}
