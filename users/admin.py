"""People in the operator's view."""

from django.contrib import admin

from users.models import User


@admin.register(User)
class UserAdmin(admin.ModelAdmin[User]):
    """Who signed up, and who is an operator. Passwords are neither shown nor set here."""

    list_display = ["email", "is_staff", "is_active", "joined_at"]
    list_filter = ["is_staff", "is_active"]
    search_fields = ["email"]
    readonly_fields = ["joined_at", "last_login"]
    exclude = ["password", "groups", "user_permissions"]
