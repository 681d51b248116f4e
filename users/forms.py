"""Forms about people: the library's, in the site's own words, and the one that opens an organisation."""

from datetime import datetime
from typing import Any, ClassVar

from allauth.account import forms as account
from allauth.account.adapter import get_adapter
from allauth.mfa.base import forms as mfa
from allauth.mfa.totp import forms as totp
from allauth.mfa.webauthn import forms as webauthn
from django import forms
from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.utils.functional import Promise
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from users.audit import ip_address_of
from users.countries import countries
from users.invitations import accept
from users.models import Invitation, Organisation, User
from users.sign_up import Refusal, consumer_countries, open_organisation, refusal

EMAIL = _("E-mail address")
PASSWORD = _("Password")
PASSWORD_HINT = _("At least 12 characters, of any kind. Pasting from a password manager is welcome.")
REFUSALS = {
    Refusal.PROVIDER_NOT_A_BUSINESS: ("type", _("Only a business can sell GPU-hours here.")),
    Refusal.NO_CONSUMERS: (
        "type",
        _("We sell to businesses only for now: selling to private persons takes rules that we do not meet yet."),
    ),
    Refusal.NO_CONSUMERS_FROM_THERE: (
        "country",
        _("We cannot sell to private persons there: we are not registered for that country's tax."),
    ),
}


class NewPersonForm(account.SignupForm):  # type: ignore[misc]
    """A new person. Takes `now` beside the usual arguments.

    An address that has an account already is answered like any other: a mail tells its owner, nothing is stored.
    """

    account_already_exists: bool

    def __init__(self, *args: Any, now: datetime, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.now = now
        _word(self, email=EMAIL, password1=PASSWORD)
        self.fields["password1"].help_text = PASSWORD_HINT

    def try_save(self, request: HttpRequest) -> tuple[User | None, HttpResponse | None]:
        """Return the person, or the answer to an address that is taken."""
        if self.account_already_exists:
            make_password(self.cleaned_data["password1"])  # takes as long as for a new address
        try:
            return super().try_save(request)  # type: ignore[no-any-return]
        except IntegrityError:  # the same address, sent twice at once
            self.account_already_exists = True
            return super().try_save(request)  # type: ignore[no-any-return]


class SignUpForm(NewPersonForm):
    """A new person with a new organisation."""

    kind = forms.ChoiceField(
        label=_("What do you want to do?"),
        choices=[
            (Organisation.Kind.RENTER.value, _("Rent GPUs")),
            (Organisation.Kind.PROVIDER.value, _("Sell GPU-hours")),
        ],
        initial=Organisation.Kind.RENTER,
        widget=forms.RadioSelect,
        help_text=_("One organisation does one or the other. This cannot be changed later."),
    )
    type = forms.ChoiceField(
        label=_("You sign up as"),
        choices=[
            (Organisation.Type.BUSINESS.value, _("A business")),
            (Organisation.Type.CONSUMER.value, _("A private person")),
        ],
        initial=Organisation.Type.BUSINESS,
        widget=forms.RadioSelect,
    )
    name = forms.CharField(
        label=_("Name of the business, or your own"),
        max_length=120,
        help_text=_("As it shall stand on invoices."),
        widget=forms.TextInput(attrs={"autocomplete": "organization"}),
    )
    country = forms.ChoiceField(
        label=_("Country"),
        help_text=_("Where the business is registered, or where you live. It decides the tax."),
        widget=forms.Select(attrs={"autocomplete": "country"}),
    )
    field_order: ClassVar = ["kind", "type", "name", "country", "email", "password1"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [("", _("Choose a country")), *countries(get_language() or "en")]
        self.fields["country"].choices = choices
        if not settings.B2C_ENABLED:
            self.fields["type"].help_text = REFUSALS[Refusal.NO_CONSUMERS][1]

    def clean(self) -> dict[str, Any]:
        """Refuse what may not be opened, at the field that says so."""
        cleaned: dict[str, Any] = super().clean()
        if not {"kind", "type", "country"} <= cleaned.keys():
            return cleaned
        reason = refusal(
            kind=cleaned["kind"],
            type=cleaned["type"],
            country=cleaned["country"],
            consumer_countries=consumer_countries(),
        )
        if reason is not None:
            self.add_error(*REFUSALS[reason])
        return cleaned

    def save(self, request: HttpRequest) -> User:
        """Store the person, the address and the organisation, all or nothing."""
        fields = {name: self.cleaned_data[name] for name in ("name", "kind", "type", "country")}
        with transaction.atomic():
            user: User = super().save(request)
            open_organisation(user=user, now=self.now, **fields)
        return user


class JoinForm(NewPersonForm):
    """A new person who was invited: the address is the invitation's, which its link has confirmed."""

    def __init__(self, *args: Any, invitation: Invitation, token: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.token = token
        self.fields["email"].initial = invitation.email
        self.fields["email"].disabled = True

    def save(self, request: HttpRequest) -> User:
        """Store the person with a confirmed address and accept the invitation, all or nothing."""
        get_adapter(request).stash_verified_email(request, self.cleaned_data["email"])
        with transaction.atomic():
            user: User = super().save(request)
            accept(token=self.token, user=user, now=self.now, ip_address=ip_address_of(request))
        return user


class LoginForm(account.LoginForm):  # type: ignore[misc]
    """E-mail address and password."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _word(self, login=EMAIL, password=PASSWORD)
        self.fields["login"].widget.attrs["autocomplete"] = "username webauthn"


class ChangeEmailForm(account.AddEmailForm):  # type: ignore[misc]
    """The address that shall replace the present one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _word(self, email=_("New e-mail address"))


class ChangePasswordForm(account.ChangePasswordForm):  # type: ignore[misc]
    """The present password, and a new one once."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _ask_once(self)
        _word(self, oldpassword=_("Present password"))


class SetPasswordForm(account.SetPasswordForm):  # type: ignore[misc]
    """A first password."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _ask_once(self)
        _word(self)


class ResetPasswordForm(account.ResetPasswordForm):  # type: ignore[misc]
    """The address to which the link goes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _word(self, email=EMAIL)


class ResetPasswordKeyForm(account.ResetPasswordKeyForm):  # type: ignore[misc]
    """A new password, by the link."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _ask_once(self)
        _word(self)


class ReauthenticateForm(account.ReauthenticateForm):  # type: ignore[misc]
    """The password once more."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _word(self, password=PASSWORD)


class CodeForm(mfa.AuthenticateForm):  # type: ignore[misc]
    """The second step of signing in: a code of the app, or a recovery code."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _word(self, code=_("Code of the authenticator app, or a recovery code"))


class ReauthenticateByCodeForm(mfa.ReauthenticateForm):  # type: ignore[misc]
    """A code once more."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _word(self, code=_("Code of the authenticator app, or a recovery code"))


class ActivateAppForm(totp.ActivateTOTPForm):  # type: ignore[misc]
    """The first code of a new authenticator app."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _word(self, code=_("Code that the app shows now"))
        self.fields["code"].widget.attrs["inputmode"] = "numeric"


class AddPasskeyForm(webauthn.AddWebAuthnForm):  # type: ignore[misc]
    """A passkey that can sign in by itself; the browser fills `credential`."""

    passwordless = forms.BooleanField(widget=forms.HiddenInput, initial=True)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _word(self, name=_("Name of the passkey"))
        self.fields["name"].max_length = 60
        self.fields["name"].help_text = _("To tell it from others: “phone”, “key in the safe”.")


class RenamePasskeyForm(webauthn.EditWebAuthnForm):  # type: ignore[misc]
    """Another name for a passkey."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _word(self, name=_("Name of the passkey"))


class AddressForm(forms.ModelForm[Organisation]):
    """Where the organisation is, for invoices. What tax and books rest on is not changed here."""

    class Meta:
        model = Organisation
        fields: ClassVar = ["address", "postcode", "city", "register_number"]
        labels: ClassVar = {
            "address": _("Street and number"),
            "postcode": _("Postcode"),
            "city": _("Town"),
            "register_number": _("Register number"),
        }
        widgets: ClassVar = {
            "address": forms.TextInput(attrs={"autocomplete": "street-address"}),
            "postcode": forms.TextInput(attrs={"autocomplete": "postal-code"}),
            "city": forms.TextInput(attrs={"autocomplete": "address-level2"}),
        }


def _word(form: forms.BaseForm, **labels: str | Promise) -> None:
    """Label fields and take away what the library writes inside and below them."""
    for name, label in labels.items():
        field = form.fields[name]
        field.label = label  # type: ignore[assignment]  # a lazy text
        field.help_text = ""
        field.widget.attrs.pop("placeholder", None)


def _ask_once(form: forms.BaseForm) -> None:
    """Ask for a new password once: whoever mistypes it has the way back by mail."""
    del form.fields["password2"]
    _word(form, password1=_("New password"))
    form.fields["password1"].help_text = PASSWORD_HINT
