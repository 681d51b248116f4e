"""What the exchange refuses and how orders end, in words for pages."""

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from billing.books import BooksStopped
from marketplace.orders.instruction import InstructionRefused
from marketplace.orders.place import NotARenter, NotEnoughMoney, OrganisationFrozen, ReceivableOpen, TooManyOrders
from marketplace.rates import FxTooOld
from marketplace.tax import NotSold

# What a page can say about an order that was refused whole; each sentence ends with what happened to the money.
REFUSALS: dict[type[Exception], str | Promise] = {
    NotEnoughMoney: gettext_lazy("The wallet has too little available for this order. Nothing was held."),
    FxTooOld: gettext_lazy(
        "The last exchange rate is too old to order in this currency. Pay from a USD wallet. Nothing was held."
    ),
    NotSold: gettext_lazy("How you are taxed has not been decided yet, so nothing can be ordered. Nothing was held."),
    OrganisationFrozen: gettext_lazy(
        "Your organisation is frozen and places no orders until we release it. Nothing was held."
    ),
    ReceivableOpen: gettext_lazy(
        "There is an open amount that you owe us. A top-up pays it first; then you can order. Nothing was held."
    ),
    NotARenter: gettext_lazy("Only renters order; your organisation sells. Nothing was held."),
    TooManyOrders: gettext_lazy(
        "You have as many open orders as one may have. Cancel one, or let one fill. Nothing was held."
    ),
    BooksStopped: gettext_lazy(
        "New orders wait while the books are being checked. Running rentals go on. Nothing was held."
    ),
}
OBSTACLES: dict[str, type[Exception]] = {
    "organisation_frozen": OrganisationFrozen,
    "receivable_open": ReceivableOpen,
    "books_stopped": BooksStopped,
}
CLOSE_REASONS: dict[str, str | Promise] = {
    "cancelled": gettext_lazy("Cancelled by you."),
    "expired": gettext_lazy("Its time was over."),
    "frozen": gettext_lazy("Cancelled because your organisation was frozen."),
    "receivable_open": gettext_lazy("Cancelled because there was an open amount that you owed us."),
    "nothing_fits": gettext_lazy("Nothing fitted at that moment, so nothing was rented and nothing was held."),
    "no_more_fits": gettext_lazy("No more servers fitted at that moment; the rest was dropped."),
}
FAR_ABOVE = "price_far_above_reference"  # the one refusal that a second word lifts
# The ticket's field for each field of an instruction that may be refused.
FIELDS = {"limit_price_usd_per_gpu_hour": "price", "expires_at": "valid"}


def refused_field(refused: InstructionRefused) -> tuple[str, str]:
    """Return the ticket's field and what is wrong with it."""
    field = FIELDS.get(refused.field, refused.field)
    if refused.code == "too_fine":
        return field, _("At most four decimals.")
    return field, _("This is out of range.")
