"""People, their organisations, keys, and the record of what was decided."""

from users.models.audit import AuditRecord
from users.models.keys import ApiKey, IdempotencyKey, Scope
from users.models.organisations import Invitation, Membership, Organisation, Role
from users.models.people import User
from users.models.webhooks import EventType, WebhookAttempt, WebhookDelivery, WebhookEndpoint, WebhookEvent

__all__ = [
    "ApiKey",
    "AuditRecord",
    "EventType",
    "IdempotencyKey",
    "Invitation",
    "Membership",
    "Organisation",
    "Role",
    "Scope",
    "User",
    "WebhookAttempt",
    "WebhookDelivery",
    "WebhookEndpoint",
    "WebhookEvent",
]
