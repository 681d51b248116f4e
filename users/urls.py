"""Pages about people, their organisation and its keys."""

from django.urls import path

from users.private import private
from users.views.account import show_account
from users.views.audit import show_history
from users.views.keys import revoke, show_keys
from users.views.legal import show_imprint, show_privacy, show_refunds, show_terms
from users.views.members import (
    leave,
    remove_member,
    set_role,
    show_invitation,
    show_members,
    withdraw_invitation,
)

app_name = "users"

urlpatterns = [
    path("account/", private(show_account), name="account"),
    path("account/members/", show_members, name="members"),
    path("account/members/leave/", leave, name="leave"),
    path("account/members/<int:membership_id>/role/", set_role, name="set-role"),
    path("account/members/<int:membership_id>/remove/", remove_member, name="remove-member"),
    path("account/members/invitations/<int:invitation_id>/withdraw/", withdraw_invitation, name="withdraw-invitation"),
    path("account/invitation/<str:token>/", private(show_invitation), name="invitation"),
    path("account/history/", show_history, name="history"),
    path("keys/", show_keys, name="keys"),
    path("keys/<uuid:key_id>/revoke/", revoke, name="revoke-key"),
    path("terms-of-use/", show_terms, name="terms"),
    path("privacy/", show_privacy, name="privacy"),
    path("refunds/", show_refunds, name="refunds"),
    path("imprint/", show_imprint, name="imprint"),
]
