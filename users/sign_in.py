"""How a person signs in: what the account page shows of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator

from users.models import User


@dataclass(frozen=True, kw_only=True)
class Passkey:
    """A passkey; `last_used_at` None: never used."""

    id: int
    name: str
    added_at: datetime
    last_used_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class SignIn:
    """The address, one that waits to replace it ("": none), and the means of the second step."""

    email: str
    is_confirmed: bool
    new_email: str
    passkeys: Sequence[Passkey]
    has_app: bool
    recovery_codes_left: int | None

    @property
    def has_second_step(self) -> bool:
        """Whether a password alone does not open the account."""
        return self.has_app or bool(self.passkeys)


def sign_in_of(user: User) -> SignIn:
    """Return how this person signs in (two queries)."""
    addresses = {row.email: row.verified for row in EmailAddress.objects.filter(user=user)}
    means = list(Authenticator.objects.filter(user=user).order_by("created_at"))
    codes = [row for row in means if row.type == Authenticator.Type.RECOVERY_CODES]
    return SignIn(
        email=user.email,
        is_confirmed=addresses.get(user.email, False),
        new_email=next((email for email in addresses if email != user.email), ""),
        passkeys=[_passkey(row) for row in means if row.type == Authenticator.Type.WEBAUTHN],
        has_app=any(row.type == Authenticator.Type.TOTP for row in means),
        recovery_codes_left=len(codes[0].wrap().get_unused_codes()) if codes else None,
    )


def _passkey(row: Authenticator) -> Passkey:
    return Passkey(id=row.pk, name=row.wrap().name, added_at=row.created_at, last_used_at=row.last_used_at)
