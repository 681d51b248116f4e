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
from users.views.webhooks import (
    remove_webhook,
    replace_webhook_secret,
    send_delivery_again,
    show_delivery,
    show_webhook,
    show_webhooks,
    switch_webhook_on,
    test_webhook,
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
    path("account/webhooks/", show_webhooks, name="webhooks"),
    path("account/webhooks/<uuid:endpoint_id>/", show_webhook, name="webhook"),
    path("account/webhooks/<uuid:endpoint_id>/secret/", replace_webhook_secret, name="webhook-secret"),
    path("account/webhooks/<uuid:endpoint_id>/test/", test_webhook, name="webhook-test"),
    path("account/webhooks/<uuid:endpoint_id>/on/", switch_webhook_on, name="webhook-on"),
    path("account/webhooks/<uuid:endpoint_id>/remove/", remove_webhook, name="remove-webhook"),
    path("account/webhooks/<uuid:endpoint_id>/<uuid:event_id>/", show_delivery, name="webhook-delivery"),
    path("account/webhooks/<uuid:endpoint_id>/<uuid:event_id>/again/", send_delivery_again, name="webhook-again"),
    path("keys/", show_keys, name="keys"),
    path("keys/<uuid:key_id>/revoke/", revoke, name="revoke-key"),
    path("terms-of-use/", show_terms, name="terms"),
    path("privacy/", show_privacy, name="privacy"),
    path("refunds/", show_refunds, name="refunds"),
    path("imprint/", show_imprint, name="imprint"),
]
