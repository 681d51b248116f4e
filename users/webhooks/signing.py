"""What a message looks like and how it is signed, after the Standard Webhooks: HMAC-SHA256 over id, time and body.

A signature needs the secret itself, so a hash of it would not do: it is stored encrypted.
"""

import json
import secrets
from base64 import b64encode
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from cryptography.fernet import InvalidToken
from standardwebhooks import Webhook

from users.encryption import cipher_for
from users.models import WebhookEndpoint, WebhookEvent

_PURPOSE = "users.webhooks.secret"
_SECRET_BYTES = 32


class SecretLost(Exception):
    """The site's own key was replaced without keeping the old one: the endpoint needs a new secret."""


def new_secret() -> str:
    """Return a secret as receivers' libraries take it: `whsec_` and base64."""
    return f"whsec_{b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()}"


def encrypted(secret: str) -> str:
    """Return a secret as it is stored."""
    return cipher_for(_PURPOSE).encrypt(secret.encode()).decode()


def secrets_of(endpoint: WebhookEndpoint, *, now: datetime) -> list[str]:
    """Return the secrets that sign now: the present one, and the one before while both hold. Raises SecretLost."""
    stored = [endpoint.encrypted_secret]
    if endpoint.previous_secret_until is not None and endpoint.previous_secret_until > now:
        stored.append(endpoint.encrypted_previous_secret)
    try:
        return [cipher_for(_PURPOSE).decrypt(text.encode()).decode() for text in stored]
    except InvalidToken:
        raise SecretLost from None


def message_of(event: WebhookEvent) -> dict[str, Any]:
    """Return the message: what happened, when, and to what."""
    return {"type": event.type, "timestamp": rfc3339(event.occurred_at), "data": event.data}


def body_of(event: WebhookEvent) -> str:
    """Return the message as it is sent: the same text at every try."""
    return json.dumps(message_of(event), separators=(",", ":"))


def headers_of(event: WebhookEvent, *, body: str, signed_with: Sequence[str], now: datetime) -> dict[str, str]:
    """Return the headers of one try; `webhook-id` stays the same for the event, time and signatures are of this try."""
    message_id, sent_at = str(event.pk), now.replace(microsecond=0)
    return {
        "content-type": "application/json",
        "user-agent": "GPU-Bourse-Webhooks/1",
        "accept-encoding": "identity",
        "webhook-id": message_id,
        "webhook-timestamp": str(int(sent_at.timestamp())),
        "webhook-signature": " ".join(Webhook(secret).sign(message_id, sent_at, body) for secret in signed_with),
    }


def rfc3339(at: datetime) -> str:
    """Return a time as the API writes it: with `Z`."""
    return at.isoformat().replace("+00:00", "Z")
