"""What the exchange refuses, as problem documents."""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from rest_framework.exceptions import ErrorDetail, NotFound, ValidationError

from billing.books import BooksStopped
from common.money import from_micros
from common.problems import Problem
from marketplace.orders.close import OrderUnknown
from marketplace.orders.instruction import InstructionRefused
from marketplace.orders.place import (
    NotARenter,
    NotEnoughMoney,
    OrganisationFrozen,
    QuoteExpired,
    ReceivableOpen,
    TooManyOrders,
)
from marketplace.rates import FxTooOld
from marketplace.tax import NotSold


@contextmanager
def market_problems() -> Iterator[None]:
    """Turn a refusal of the exchange into its problem document."""
    try:
        yield
    except InstructionRefused as refused:
        raise ValidationError({refused.field: [ErrorDetail(str(refused), code=refused.code)]}) from refused
    except NotEnoughMoney as refused:
        raise Problem(
            status=HTTPStatus.PAYMENT_REQUIRED,
            code="not_enough_money",
            detail=_("The wallet has too little available for this order. Nothing was held."),
            needed=str(from_micros(refused.needed_micros)),
            available=str(from_micros(refused.available_micros)),
        ) from refused
    except NotARenter as refused:
        detail = _("Only renters order. A provider's organisation sells.")
        raise Problem(status=HTTPStatus.FORBIDDEN, code="not_a_renter", detail=detail) from refused
    except OrderUnknown as refused:
        raise NotFound from refused
    except BooksStopped as refused:
        detail = _("New orders wait while the books are being checked. Nothing was placed.")
        raise Problem(status=HTTPStatus.SERVICE_UNAVAILABLE, code="books_stopped", detail=detail) from refused
    except tuple(_CONFLICTS) as refused:
        code, words = _CONFLICTS[type(refused)]
        raise Problem(status=HTTPStatus.CONFLICT, code=code, detail=str(words)) from refused


_CONFLICTS: dict[type[Exception], tuple[str, Promise]] = {
    FxTooOld: (
        "fx_too_old",
        gettext_lazy("The last exchange rate is too old to order in this currency. A USD wallet can order."),
    ),
    QuoteExpired: ("quote_expired", gettext_lazy("This quote has expired. Ask for a new one.")),
    OrganisationFrozen: (
        "organisation_frozen",
        gettext_lazy("This organisation is frozen. It places no orders until it is released."),
    ),
    ReceivableOpen: (
        "receivable_open",
        gettext_lazy("There is an open amount owed to us. A top-up pays it first; then orders go on."),
    ),
    TooManyOrders: (
        "too_many_orders",
        gettext_lazy("This organisation has as many open orders as one may have. Cancel one, or let one fill."),
    ),
    NotSold: (
        "tax_not_decided",
        gettext_lazy("How this organisation is taxed waits for a person. Nothing is sold until then."),
    ),
}
