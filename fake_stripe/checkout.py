"""Checkout Sessions: a hosted page for one payment. Paying it is `paying.py`."""

from urllib.parse import urlsplit

from fake_stripe.errors import ApiError
from fake_stripe.form import Form
from fake_stripe.store import Json
from fake_stripe.world import Caller, World

# The least that may be charged, in minor units, and the most.
LEAST = {"eur": 50, "usd": 50, "gbp": 30}
MOST = 99_999_999
LOCALES = ("auto", "en", "nl", "pl")
_SHORTEST_SECONDS = 30 * 60
_LONGEST_SECONDS = 24 * 3600
_MOST_SECONDS_OFF = 60  # clocks differ


def create_session(world: World, form: Form, caller: Caller) -> Json:
    """Make an open session with its page. Raises ApiError for anything Stripe would refuse."""
    if form.text("mode") != "payment":
        raise ApiError("This gateway takes mode=payment only.", param="mode")
    currency, amount, line = _amount(form)
    success_url, cancel_url = _url(form, "success_url"), _url(form, "cancel_url")
    customer = form.maybe("customer")
    if customer:
        world.get("customer", customer, param="customer", status=400)
    locale = form.maybe("locale")
    if locale and locale not in LOCALES:
        raise ApiError(f"Invalid locale: {locale}", param="locale")
    expires_at = _expiry(world, form)
    intent = form.inner("payment_intent_data")
    intent_notes, description = intent.notes(), intent.maybe("description")
    form.inner("adaptive_pricing").maybe("enabled")
    reference, notes, methods = form.maybe("client_reference_id"), form.notes(), form.texts("payment_method_types")
    email, submit_type = form.maybe("customer_email"), form.maybe("submit_type")
    form.end()
    session = world.new(
        "checkout.session",
        mode="payment",
        status="open",
        payment_status="unpaid",
        amount_subtotal=amount,
        amount_total=amount,
        currency=currency,
        client_reference_id=reference,
        customer=customer,
        customer_email=email,
        success_url=success_url,
        cancel_url=cancel_url,
        locale=locale,
        metadata=notes,
        payment_intent=None,
        payment_method_types=methods or ["card", *(["sepa_debit"] if currency == "eur" else [])],
        expires_at=expires_at,
        submit_type=submit_type,
        adaptive_pricing={"enabled": False},
        automatic_tax={"enabled": False, "liability": None, "provider": None, "status": None},
        custom_fields=[],
        custom_text={},
        shipping_options=[],
        ui_mode="hosted_page",
        url=None,
        _line=line,
        _intent={"metadata": intent_notes, "description": description},
    )
    world.set_timer("expire_session", session["id"], at=expires_at)
    return world.change(session, url=f"{world.public_url}/c/pay/{session['id']}")


def expire_session(world: World, session_id: str, caller: Caller) -> Json:
    """Close an open session for good. Raises ApiError when it is not open."""
    session = world.get("checkout.session", session_id)
    if session["status"] != "open":
        raise ApiError(
            f"Only Checkout Sessions with a status in [open] can be expired. This one is {session['status']}.",
            is_kept=True,
        )
    session = world.change(session, status="expired", url=None)
    intent_id = session["payment_intent"]
    if intent_id:
        intent = world.change(
            world.get("payment_intent", intent_id),
            status="canceled",
            canceled_at=world.now(),
            cancellation_reason="automatic",
            next_action=None,
        )
        world.tell("payment_intent.canceled", intent, caller=caller)
    world.tell("checkout.session.expired", session, caller=caller)
    return session


def _amount(form: Form) -> tuple[str, int, str]:
    lines = form.each("line_items")
    if len(lines) != 1:
        raise ApiError("This gateway takes exactly one line item.", param="line_items")
    price = lines[0].inner("price_data")
    currency, unit_amount = price.text("currency").lower(), price.whole("unit_amount")
    product = price.inner("product_data")
    name = product.text("name")
    product.maybe("description")
    amount = unit_amount * lines[0].whole("quantity", 1)
    if currency not in LEAST:
        raise ApiError(f"Invalid currency: {currency}", param="line_items[0][price_data][currency]")
    if amount < LEAST[currency]:
        least = f"{LEAST[currency] / 100:.2f} {currency}"
        raise ApiError(f"The total amount due must be at least {least}.", code="amount_too_small")
    if amount > MOST:
        raise ApiError(f"The total amount due must be no more than {MOST}.", code="amount_too_large")
    return currency, amount, name


def _url(form: Form, name: str) -> str:
    url = form.text(name)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ApiError(f"Not a valid URL: {url}", code="url_invalid", param=name)
    return url


def _expiry(world: World, form: Form) -> int:
    now = world.now()
    at = form.whole("expires_at", now + _LONGEST_SECONDS)
    if not now + _SHORTEST_SECONDS - _MOST_SECONDS_OFF <= at <= now + _LONGEST_SECONDS + _MOST_SECONDS_OFF:
        raise ApiError(
            "The expires_at timestamp must be between 30 minutes and 24 hours from creation.", param="expires_at"
        )
    return at
