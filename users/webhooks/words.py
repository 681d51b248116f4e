"""What refusals and faults are called, for pages and calls alike."""

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from users.webhooks.sending import Fault

URL_REFUSALS: dict[str, Promise] = {
    "too_long": _("At most 500 characters."),
    "not_a_url": _(
        "Write the whole address, such as https://example.com/hook, without spaces or signs of other scripts."
    ),
    "has_credentials": _("Leave out user name and password: verify our signature instead."),
    "has_fragment": _("Leave out what follows #: it is never sent."),
    "not_https": _("Only https: messages go over no other way."),
    "other_port": _("Only port 443, which https has without naming one."),
    "local_name": _("This name is not one of the public internet."),
    "not_a_name": _("Give a host name such as example.com: certificates are made out to names, not to numbers."),
}
FAULTS: dict[Fault, Promise] = {
    Fault.ADDRESS_REFUSED: _("The name leads to an address that is not public, so nothing was sent."),
    Fault.UNKNOWN_HOST: _("The name leads nowhere."),
    Fault.TIMEOUT: _("No answer within 5 seconds."),
    Fault.TLS: _("No certificate that we trust for this name."),
    Fault.CONNECTION: _("The connection failed or broke off."),
    Fault.NOT_HTTP: _("What came back is not HTTP."),
    Fault.SECRET_LOST: _("We can no longer read the secret. Replace it."),
    Fault.OURS: _("A fault on our side. It has been logged."),
}
