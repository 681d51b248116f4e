"""Secrets that must be read again are stored encrypted: a copy of the database alone opens nothing."""

from base64 import urlsafe_b64encode

from cryptography.fernet import Fernet, MultiFernet
from django.conf import settings
from django.utils.crypto import salted_hmac


def cipher_for(purpose: str) -> MultiFernet:
    """Return what encrypts for this purpose, with a key that comes from the site's own.

    It also decrypts what was encrypted before the site's key was replaced (SECRET_KEY_FALLBACKS).
    """
    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    digests = (salted_hmac(purpose, "", key, algorithm="sha256").digest() for key in keys)
    return MultiFernet([Fernet(urlsafe_b64encode(digest)) for digest in digests])
