"""What recorded actions and their details are called on a page.

A new action gets its line here; a test walks the code and finds the ones without.
"""

from django.utils.translation import gettext_lazy as _

ACTIONS = {
    "gateway_event.retried": _("Took up a message of the payment provider again"),
    "gateway.closed": _("Compared the books with the payment provider's balance"),
    "invitation.accepted": _("Accepted an invitation"),
    "invitation.sent": _("Invited a person"),
    "invitation.withdrawn": _("Withdrew an invitation"),
    "key.issued": _("Made an API key"),
    "key.revoked": _("Revoked an API key"),
    "member.left": _("Left the organisation"),
    "member.removed": _("Removed a member"),
    "member.role_changed": _("Changed a member's role"),
    "organisation.address_changed": _("Changed name or address"),
    "organisation.frozen": _("Froze the organisation"),
    "organisation.opened": _("Opened the organisation"),
    "organisation.unfrozen": _("Lifted the freeze"),
    "person.changed": _("Changed a person's rights"),
    "tax.area_ruled": _("Ruled on a special tax area"),
    "tax.details_changed": _("Changed tax details"),
    "top_up.quarantined": _("Set a payment aside that differs from its top-up"),
}
DETAILS = {
    "address": _("Street and number"),
    "amount_micros": _("Amount"),
    "area_ruling": _("Ruling on the area"),
    "attempts": _("Attempts"),
    "books_micros": _("In the books"),
    "city": _("Town"),
    "country": _("Country"),
    "currency": _("Currency"),
    "email": _("E-mail address"),
    "expires_at": _("Valid until"),
    "frozen": _("Frozen"),
    "gateway_micros": _("At the payment provider"),
    "is_active": _("Active"),
    "is_staff": _("Operator"),
    "kind": _("Kind"),
    "last_error": _("Last error"),
    "name": _("Name"),
    "payment": _("Payment"),
    "postcode": _("Postcode"),
    "prefix": _("Key"),
    "register_number": _("Business number"),
    "revoked_keys": _("Keys revoked"),
    "role": _("Role"),
    "scopes": _("Scopes"),
    "state": _("State"),
    "type": _("Type"),
    "vat_id": _("VAT number"),
}
