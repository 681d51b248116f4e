"""For tests of pages, which ask the clock themselves: an exchange that is alive at this very moment, and who looks."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html import unescape
from html.parser import HTMLParser

from django.test import Client

from billing.models import Hold
from billing.tax.record import decide_for
from catalog.models import Gpu
from fx.models import Rate
from marketplace.models import Listing, Order
from marketplace.orders.place import Placed, place_order
from tests.billing.conftest import wallet_of
from tests.factories import make_member, make_organisation
from tests.marketplace.conftest import make_listing, order_for
from users.models import Organisation, Role


def just_now() -> datetime:
    return datetime.now(UTC)


def on_offer(gpu: Gpu, *, price: str = "2.88", devices: int = 8, **values) -> Listing:
    """Return a listing of a server that was heard of just now."""
    return make_listing(gpu=gpu, price=price, devices=devices, now=just_now(), **values)


def renter_with(*, name: str = "Orla Labs B.V.", **units: int) -> Organisation:
    """Return a Dutch business with money by currency, `USD=1000`, and its tax decided."""
    organisation = make_organisation(name=name)
    for currency, amount in (units or {"USD": 1000}).items():
        wallet_of(name, currency=currency, units=amount)
    decide_for(organisation=organisation, now=just_now() - timedelta(days=7))
    return organisation


def rate_of_yesterday() -> None:
    """Store 1.1476 USD per EUR."""
    now = just_now()
    Rate.objects.create(
        day=now.date() - timedelta(days=1), currency="USD", units_per_eur=Decimal("1.1476"), origin="ecb", stored_at=now
    )


def somebody_of(organisation: Organisation, *, role: Role = Role.TRADER) -> Client:
    """Return a client that is signed in."""
    client = Client()
    client.force_login(make_member(organisation=organisation, role=role))
    return client


def placed_by(organisation: Organisation, gpu: Gpu, *, now: datetime | None = None, **values) -> Placed:
    """Place an order without a page."""
    return place_order(organisation_id=organisation.pk, instruction=order_for(gpu, **values), now=now or just_now())


def words(answer, *, part: str = "main") -> str:
    """Return the text of a part of a page, its spaces evened out."""
    html = answer.content.decode()
    if part:
        html = html.split(f"<{part}", 1)[1].split(f"</{part}>", 1)[0].split(">", 1)[1]
    text = unescape(re.sub(r"<[^>]*>", " ", html)).replace("\N{NO-BREAK SPACE}", " ")
    return re.sub(r"\s+([.,;])", r"\1", " ".join(text.split()))


class Form(HTMLParser):
    """What a form sends: the values of its fields as they stand, by the form's address."""

    def __init__(self, answer, *, action: str) -> None:
        super().__init__()
        self.action, self.method = action, ""
        self.fields: dict[str, list[str]] = {}
        self._inside, self._select = False, ""
        self.feed(answer.content.decode())

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if tag == "form":
            self._inside = values.get("action") == self.action
            self.method = values.get("method", "get") if self._inside else self.method
        name = values.get("name") or ""
        if not self._inside:
            return
        if tag == "input" and name and (values.get("type") not in ("radio", "checkbox") or "checked" in values):
            self.fields.setdefault(name, []).append(values.get("value", ""))
        elif tag == "select":
            self._select = name
        elif tag == "option" and "selected" in values:
            self.fields.setdefault(self._select, []).append(values.get("value", ""))
        elif tag == "textarea":
            self.fields.setdefault(name, []).append("")

    def handle_endtag(self, tag):
        if tag == "form":
            self._inside = False

    def filled(self, **changes) -> dict:
        """Return the fields with changes, without the token that a test client does not need."""
        changed = {name: value if isinstance(value, list) else [value] for name, value in changes.items()}
        return {name: value for name, value in {**self.fields, **changed}.items() if name != "csrfmiddlewaretoken"}


TICKET, PLACE = "/market/h100-sxm/order/", "/market/h100-sxm/order/place/"
USUAL = {
    "kind": "best",
    "gpu_count": "8",
    "server_count": "1",
    "term": "lot",
    "hours": "24",
    "wallet": "USD",
    "valid": "24",
    "price": "2.90",
}


def review(who: Client, **changes):
    """Send the ticket of an H100 and return its review."""
    return who.post(TICKET, {**USUAL, **changes})


def confirm(who: Client, reviewed, **changes):
    """Press the button of a review."""
    return who.post(PLACE, Form(reviewed, action=PLACE).filled(**changes))


def nothing_happened() -> bool:
    """Whether no order was placed and nothing is held."""
    return not Order.objects.exists() and not Hold.objects.exists()
