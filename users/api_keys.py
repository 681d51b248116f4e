"""API keys: issued once, known by a hash, refused the moment they are revoked.

A key reads `bourse_<environment>_<8 naming it>_<32 random>_<6 checksum>`. Only the eight characters and the SHA-256
of the whole are stored. The checksum lets a typing error, or a key of another environment, be refused without asking
the database. No answer about a key is kept anywhere, so a revoked key is refused from the next request on.
"""

import hashlib
import re
import secrets
import string
import zlib
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from uuid6 import uuid7

from users.audit import record
from users.models import ApiKey, Organisation, Scope, User
from users.queries import lock_organisation

MOST_LIVE_KEYS = 50
_USE_NOTED_EVERY = timedelta(minutes=1)
_ALPHABET = string.digits + string.ascii_letters
_KEY = re.compile(r"(bourse_([a-z]+)_([0-9A-Za-z]{8})_[0-9A-Za-z]{32})_([0-9A-Za-z]{6})", re.ASCII)
_SCOPES_OF_KIND = {
    Organisation.Kind.RENTER.value: (Scope.READ, Scope.TRADE, Scope.BILLING),
    Organisation.Kind.PROVIDER.value: (Scope.READ, Scope.BILLING, Scope.PROVIDER),
}


class KeyRefused(Exception):
    """This key cannot be issued."""


class NoScope(KeyRefused):
    """A key must be good for something."""


class ScopeNotOpen(KeyRefused):
    """This kind of organisation has no use for the scope: a renter lists no servers, a provider rents none."""


class NotAMember(KeyRefused):
    """Who asks does not belong to the organisation any more."""


class AlreadyExpired(KeyRefused):
    """The key would end before it began."""


class TooManyKeys(KeyRefused):
    """The organisation has `MOST_LIVE_KEYS` keys that work."""


class KeyAlreadyIssued(KeyRefused):
    """A key of this id was issued before. Its secret was shown then, and nobody knows it now."""


class KeyNotAccepted(Exception):
    """This secret opens nothing."""


class UnknownKey(KeyNotAccepted):
    """No key of ours: mistyped, of another environment, or made up."""


class KeyExpired(KeyNotAccepted):
    """It was a key until its end."""


class KeyRevoked(KeyNotAccepted):
    """It was a key until it was revoked."""


@dataclass(frozen=True, kw_only=True)
class IssuedKey:
    """A new key, and the only copy of its secret that will ever be."""

    key: ApiKey
    secret: str = field(repr=False)


def issue_key(
    *,
    organisation: Organisation,
    name: str,
    scopes: Collection[str],
    created_by: User | None,
    expires_at: datetime | None,
    now: datetime,
    key_id: UUID | None = None,
    ip_address: str | None = None,
) -> IssuedKey:
    """Store a new key of the organisation and return it with its secret.

    1. Lock the organisation: two at once cannot pass the limit together, nor may someone who is being removed.
    2. Check: scopes of its kind, an end in the future, a member who asks (None: the site itself), not too many keys.
    3. Write the key and the audit record.

    With `key_id` a second run raises KeyAlreadyIssued; without it, each run issues another key. Raises KeyRefused.
    """
    wanted = [scope.value for scope in Scope if scope in scopes]
    secret = _new_secret()
    with transaction.atomic():
        locked = lock_organisation(organisation.pk)
        _check_wanted(locked, scopes=scopes, expires_at=expires_at, now=now)
        _check_room(locked, key_id=key_id, created_by=created_by, now=now)
        key = ApiKey.objects.create(
            id=key_id or uuid7(),
            organisation=locked,
            name=name,
            prefix=prefix_of(secret),
            key_sha256=_sha256(secret),
            scopes=wanted,
            created_by=created_by,
            created_at=now,
            expires_at=expires_at,
        )
        record(
            at=now,
            action="key.issued",
            actor=created_by,
            organisation=locked,
            subject_type="api_key",
            subject_id=str(key.pk),
            after={"name": name, "prefix": key.prefix, "scopes": wanted, "expires_at": _as_text(expires_at)},
            ip_address=ip_address,
        )
    return IssuedKey(key=key, secret=secret)


def _check_wanted(
    organisation: Organisation, *, scopes: Collection[str], expires_at: datetime | None, now: datetime
) -> None:
    if not scopes:
        raise NoScope
    if not set(scopes) <= set(scopes_open_to(organisation.kind)):
        raise ScopeNotOpen
    if expires_at is not None and expires_at <= now:
        raise AlreadyExpired


def _check_room(organisation: Organisation, *, key_id: UUID | None, created_by: User | None, now: datetime) -> None:
    if created_by is not None and not organisation.memberships.filter(user=created_by).exists():
        raise NotAMember
    if key_id is not None and ApiKey.objects.filter(pk=key_id).exists():
        raise KeyAlreadyIssued
    if organisation.api_keys.filter(_is_live(now)).count() >= MOST_LIVE_KEYS:
        raise TooManyKeys


def _is_live(now: datetime) -> Q:
    return Q(revoked_at__isnull=True) & (Q(expires_at__isnull=True) | Q(expires_at__gt=now))


def live_keys_of(organisation: Organisation, *, now: datetime) -> QuerySet[ApiKey]:
    """Return the keys that work, newest first, with who made them."""
    return organisation.api_keys.filter(_is_live(now)).select_related("created_by").order_by("-pk")


def ended_keys_of(organisation: Organisation, *, now: datetime) -> QuerySet[ApiKey]:
    """Return the keys that worked once, newest first, with who made them."""
    return organisation.api_keys.exclude(_is_live(now)).select_related("created_by").order_by("-pk")


def scopes_open_to(kind: str) -> tuple[Scope, ...]:
    """Return the scopes that keys of this kind of organisation may have."""
    return _SCOPES_OF_KIND[kind]


def revoke_key(
    *,
    organisation: Organisation,
    key_id: UUID,
    now: datetime,
    revoked_by: User | None = None,
    ip_address: str | None = None,
) -> bool:
    """End a key at once; return whether this call did it. A second run changes nothing.

    Raises ApiKey.DoesNotExist where the organisation has no such key.
    """
    with transaction.atomic():
        key = ApiKey.objects.get(pk=key_id, organisation=organisation)
        if not ApiKey.objects.filter(pk=key_id, revoked_at__isnull=True).update(revoked_at=now):
            return False
        record(
            at=now,
            action="key.revoked",
            actor=revoked_by,
            organisation=organisation,
            subject_type="api_key",
            subject_id=str(key.pk),
            before={"name": key.name, "prefix": key.prefix, "scopes": key.scopes},
            ip_address=ip_address,
        )
    return True


def key_of(secret: str, *, now: datetime) -> ApiKey:
    """Return the key that this secret is, with its organisation. One query, none for a mistyped one.

    Raises UnknownKey, KeyExpired or KeyRevoked.
    """
    if not is_well_formed(secret):
        raise UnknownKey
    key = ApiKey.objects.select_related("organisation").filter(prefix=prefix_of(secret)).first()
    if key is None or not secrets.compare_digest(key.key_sha256, _sha256(secret)):
        raise UnknownKey
    if key.revoked_at is not None:
        raise KeyRevoked
    if key.expires_at is not None and key.expires_at <= now:
        raise KeyExpired
    return key


def note_use(key: ApiKey, *, now: datetime) -> None:
    """Remember when the key was last used, to the minute: most calls write nothing."""
    before = now - _USE_NOTED_EVERY
    if key.last_used_at is None or key.last_used_at <= before:
        ApiKey.objects.filter(Q(last_used_at__isnull=True) | Q(last_used_at__lte=before), pk=key.pk).update(
            last_used_at=now
        )


def is_well_formed(secret: str) -> bool:
    """Whether this is a key of this environment, as far as its letters tell."""
    found = _KEY.fullmatch(secret)
    return found is not None and found[2] == _environment() and found[4] == _checksum(found[1])


def prefix_of(secret: str) -> str:
    """Return the eight characters that name a key."""
    return secret.split("_")[2]


def _new_secret() -> str:
    named = f"bourse_{_environment()}_{_letters(8)}_{_letters(32)}"
    return f"{named}_{_checksum(named)}"


def _environment() -> str:
    return {"production": "live"}.get(settings.ENVIRONMENT, settings.ENVIRONMENT)


def _letters(count: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(count))


def _checksum(text: str) -> str:
    """Return the CRC-32 in six digits of base 62."""
    rest, digits = zlib.crc32(text.encode()), ""
    for _ in range(6):
        rest, digit = divmod(rest, len(_ALPHABET))
        digits = _ALPHABET[digit] + digits
    return digits


def _sha256(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _as_text(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
