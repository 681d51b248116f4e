"""What a line of a statement is called, where its entry does not say it better. No queries."""

from django.utils.functional import Promise
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

REVERSAL = ":reversal"
# Which kinds of entry a reader means by one word. What is none of them is still in the statement as a whole.
GROUPS: dict[str, tuple[Promise, tuple[str, ...]]] = {
    "top-ups": (_("Top-ups"), ("topup", f"topup{REVERSAL}")),
    "usage": (_("GPU-hours"), ("rental_hour", f"rental_hour{REVERSAL}")),
    "refunds": (_("Refunds"), ("refund", "refund_failed")),
    "disputes": (_("Disputes and what is owed"), ("dispute", "dispute_won", "receivable_paid")),
}
_TITLES: dict[str, Promise] = {
    "topup": _("Top-up"),
    "rental_hour": _("GPU-hours"),
    "refund": _("Refund to the payment it came from"),
    "refund_failed": _("Refund failed, money is back"),
    "dispute": _("Payment disputed by the payer’s bank"),
    "dispute_won": _("Dispute won, money is back"),
    "receivable_paid": _("Paid what was owed"),
    "credit": _("Credit"),
}


def title_of(kind: str) -> str | Promise:
    """Return the words for a kind of entry; a kind without words stands for itself.

    >>> str(title_of("topup")), str(title_of("rental_hour:reversal")), title_of("payout_run")
    ('Top-up', 'GPU-hours, taken back', 'payout run')
    """
    plain = kind.removesuffix(REVERSAL)
    title = _TITLES.get(plain, plain.replace("_", " "))
    return format_lazy(_("{what}, taken back"), what=title) if kind.endswith(REVERSAL) else title
