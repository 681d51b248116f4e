"""People, organisations and the record of decisions in the operator's view. What may be changed is recorded."""

from datetime import UTC, datetime
from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django import forms
from django.contrib import admin
from django.db import transaction
from django.http import HttpRequest

from users.access import person_of
from users.audit import ip_address_of, record
from users.models import (
    ApiKey,
    AuditRecord,
    Invitation,
    Membership,
    Organisation,
    User,
    WebhookAttempt,
    WebhookDelivery,
    WebhookEndpoint,
)

# What guards an account is its owner's affair alone: no operator reads a secret or confirms an address.
for guard in (Authenticator, EmailAddress, UserSession):
    admin.site.unregister(guard)

RIGHTS = ("email", "is_active", "is_staff", "is_superuser")


class ReadOnly(admin.ModelAdmin[Any]):
    """To look up; whatever changes it is a page of its own."""

    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nothing is added here."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nothing is changed here."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nothing is deleted here."""
        return False


@admin.register(User)
class UserAdmin(admin.ModelAdmin[User]):
    """Who signed up, and who is an operator. Passwords are neither shown nor set here; people sign up by themselves."""

    list_display = ["email", "is_staff", "is_active", "joined_at"]
    list_filter = ["is_staff", "is_active"]
    search_fields = ["email"]
    readonly_fields = ["email", "joined_at", "last_login"]
    exclude = ["password", "groups", "user_permissions"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody is added here."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whoever decided something stays on record."""
        return False

    def save_model(self, request: HttpRequest, obj: User, form: forms.ModelForm[User], change: bool) -> None:
        """Store the change together with who made it."""
        before = User.objects.values(*RIGHTS).get(pk=obj.pk)
        with transaction.atomic():
            super().save_model(request, obj, form, change)
            record(
                at=datetime.now(UTC),
                action="person.changed",
                actor=person_of(request),
                subject_type="person",
                subject_id=obj.pk,
                before=before,
                after={name: getattr(obj, name) for name in RIGHTS},
                ip_address=ip_address_of(request),
            )


class MembershipInline(admin.TabularInline[Membership, Organisation]):
    """Who acts for an organisation."""

    model = Membership
    extra = 0
    can_delete = False
    fields = ("user", "role", "joined_at")
    readonly_fields = fields

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Members are invited by an owner."""
        return False


@admin.register(Organisation)
class OrganisationAdmin(ReadOnly):
    """Renters and providers with their people."""

    list_display = ["name", "kind", "type", "country", "frozen_at", "created_at"]
    list_filter = ["kind", "type", ("frozen_at", admin.EmptyFieldListFilter)]
    search_fields = ["name", "memberships__user__email"]
    inlines = [MembershipInline]


@admin.register(Invitation)
class InvitationAdmin(ReadOnly):
    """Who was asked to join what. The link's token is not known here."""

    list_display = ["email", "organisation", "role", "invited_at", "expires_at", "accepted_at", "withdrawn_at"]
    list_select_related = ["organisation"]
    search_fields = ["email"]
    exclude = ["token_sha256"]


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnly):
    """Keys by the part that names them. Nothing here opens anything."""

    list_display = [
        "prefix",
        "name",
        "organisation",
        "scopes",
        "created_at",
        "last_used_at",
        "expires_at",
        "revoked_at",
    ]
    list_select_related = ["organisation"]
    search_fields = ["prefix", "name"]
    exclude = ["key_sha256"]


@admin.register(WebhookEndpoint)
class WebhookEndpointAdmin(ReadOnly):
    """Where organisations want to be told. Their secrets are neither shown nor known here."""

    list_display = ["url", "organisation", "types", "created_at", "delivered_at", "failing_since", "switched_off_at"]
    list_filter = [("switched_off_at", admin.EmptyFieldListFilter), ("failing_since", admin.EmptyFieldListFilter)]
    list_select_related = ["organisation"]
    search_fields = ["url", "organisation__name"]
    exclude = ["encrypted_secret", "encrypted_previous_secret"]


class WebhookAttemptInline(admin.TabularInline[WebhookAttempt, WebhookDelivery]):
    """Each try, and what came back."""

    model = WebhookAttempt
    extra = 0
    can_delete = False
    fields = ("at", "status", "fault", "took_ms", "answer")
    readonly_fields = fields

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nothing is added here."""
        return False


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(ReadOnly):
    """What was sent or waits to be, newest first."""

    list_display = ["event", "endpoint", "state", "tries", "next_attempt_at", "delivered_at"]
    list_filter = ["state"]
    list_select_related = ["event", "endpoint"]
    search_fields = ["=event__id", "endpoint__url"]
    ordering = ["-pk"]
    inlines = [WebhookAttemptInline]


@admin.register(AuditRecord)
class AuditRecordAdmin(ReadOnly):
    """Who decided what, newest first. The database refuses to change any of it."""

    list_display = ["at", "action", "actor", "organisation", "subject_type", "subject_id", "reason", "ip_address"]
    list_filter = ["action"]
    list_select_related = ["actor", "organisation"]
    search_fields = ["subject_id", "actor__email", "organisation__name"]
    ordering = ["-at", "-pk"]
    date_hierarchy = "at"
