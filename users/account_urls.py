"""Signing up and in, and what guards an account: the library's views at the site's addresses.

Its names have no namespace because the library looks them up by themselves. What it can do besides (user names,
phones, other sites' accounts, codes by mail) has no address here. Its overviews are one page here: `/account/`.
"""

from allauth.account import views as account
from allauth.mfa.base import views as mfa
from allauth.mfa.recovery_codes import views as recovery_codes
from allauth.mfa.totp import views as totp
from allauth.mfa.webauthn import views as webauthn
from allauth.usersessions import views as sessions
from django.urls import path, re_path

from users.private import private
from users.second_factor import ends_other_sessions
from users.views.account import show_account
from users.views.sign_up import sign_up

urlpatterns = [
    path("sign-up/", private(sign_up), name="account_signup"),
    path("login/", private(account.login), name="account_login"),
    path("logout/", private(account.logout), name="account_logout"),
    path("inactive/", private(account.account_inactive), name="account_inactive"),
    path("confirm/", private(account.reauthenticate), name="account_reauthenticate"),
    path("email/", private(account.email), name="account_email"),
    path("email/sent/", private(account.email_verification_sent), name="account_email_verification_sent"),
    re_path(r"^email/(?P<key>[-:\w]+)/$", private(account.confirm_email), name="account_confirm_email"),
    path("password/", private(ends_other_sessions(account.password_change)), name="account_change_password"),
    path("password/first/", private(ends_other_sessions(account.password_set)), name="account_set_password"),
    path("password/reset/", private(account.password_reset), name="account_reset_password"),
    path("password/reset/sent/", private(account.password_reset_done), name="account_reset_password_done"),
    path(
        "password/reset/done/",
        private(account.password_reset_from_key_done),
        name="account_reset_password_from_key_done",
    ),
    re_path(
        r"^password/reset/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>.+)/$",
        private(account.password_reset_from_key),
        name="account_reset_password_from_key",
    ),
    path("", private(show_account), name="mfa_index"),
    path("second-step/", private(mfa.authenticate), name="mfa_authenticate"),
    path("second-step/confirm/", private(mfa.reauthenticate), name="mfa_reauthenticate"),
    path("app/", private(ends_other_sessions(totp.activate_totp)), name="mfa_activate_totp"),
    path("app/remove/", private(ends_other_sessions(totp.deactivate_totp)), name="mfa_deactivate_totp"),
    path("recovery-codes/", private(recovery_codes.view_recovery_codes), name="mfa_view_recovery_codes"),
    path("recovery-codes/new/", private(recovery_codes.generate_recovery_codes), name="mfa_generate_recovery_codes"),
    path("recovery-codes/file/", private(recovery_codes.download_recovery_codes), name="mfa_download_recovery_codes"),
    path("", private(show_account), name="mfa_list_webauthn"),
    path("passkeys/add/", private(ends_other_sessions(webauthn.add_webauthn)), name="mfa_add_webauthn"),
    path("passkeys/login/", private(webauthn.login_webauthn), name="mfa_login_webauthn"),
    path("passkeys/confirm/", private(webauthn.reauthenticate_webauthn), name="mfa_reauthenticate_webauthn"),
    path("passkeys/<int:pk>/rename/", private(webauthn.edit_webauthn), name="mfa_edit_webauthn"),
    path(
        "passkeys/<int:pk>/remove/", private(ends_other_sessions(webauthn.remove_webauthn)), name="mfa_remove_webauthn"
    ),
    path("sessions/", private(sessions.list_usersessions), name="usersessions_list"),
]
