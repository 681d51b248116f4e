"""Customers: a name and an address of e-mail that payments hang on."""

from fake_stripe.form import Form
from fake_stripe.store import Json
from fake_stripe.world import Caller, World


def create_customer(world: World, form: Form, caller: Caller) -> Json:
    """Make a customer."""
    fields = {name: form.maybe(name) for name in ("email", "name", "description", "phone")}
    notes = form.notes()
    form.end()
    customer = world.new(
        "customer",
        **fields,
        metadata=notes,
        address=None,
        balance=0,
        currency=None,
        default_source=None,
        delinquent=False,
        preferred_locales=[],
    )
    world.tell("customer.created", customer, caller=caller)
    return customer


def update_customer(world: World, customer_id: str, form: Form, caller: Caller) -> Json:
    """Change what is named of a customer."""
    customer = world.get("customer", customer_id)
    fields = {name: form.maybe(name) for name in ("email", "name", "description", "phone") if form.has(name)}
    notes = form.notes()
    form.end()
    customer = world.change(customer, **fields, metadata={**customer["metadata"], **notes})
    world.tell("customer.updated", customer, caller=caller)
    return customer
