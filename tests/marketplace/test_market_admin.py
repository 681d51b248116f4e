"""The operator reads every row of the exchange and changes none."""

import pytest
from django.contrib import admin
from django.urls import reverse

from marketplace.models import Rental
from marketplace.orders.place import place_order
from marketplace.quotes import quote_order
from marketplace.rentals.fail_unstarted import fail_start
from marketplace.sweep import note_up
from tests.factories import make_operator
from tests.marketplace.conftest import NOW, make_listing, order_for

pytestmark = pytest.mark.django_db
MODELS = sorted((m for m in admin.site._registry if m._meta.app_label == "marketplace"), key=lambda m: m._meta.label)


@pytest.fixture
def operator(client, h100, renter):
    """An operator who looks at a small exchange."""
    make_listing(gpu=h100, devices=2)
    quote_order(organisation_id=renter.pk, instruction=order_for(h100), now=NOW)
    place_order(
        organisation_id=renter.pk, instruction=order_for(h100, ssh_public_key="ssh-ed25519 AAAAsecret"), now=NOW
    )
    fail_start(rental_id=Rental.objects.get().pk, reason="image_pull_failed", now=NOW)
    note_up(now=NOW)
    client.force_login(make_operator())
    return client


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
def test_every_list_and_row_is_there_to_read_and_none_to_change(operator, model):
    name, row = f"admin:marketplace_{model._meta.model_name}", model._default_manager.first()
    assert operator.get(reverse(f"{name}_changelist")).status_code == 200
    assert operator.get(reverse(f"{name}_add")).status_code == 403
    if row is None:
        return
    page = operator.get(reverse(f"{name}_change", args=[row.pk]))
    assert page.status_code == 200
    assert b'name="_save"' not in page.content
    assert operator.post(reverse(f"{name}_change", args=[row.pk]), {}).status_code == 403
    assert operator.post(reverse(f"{name}_delete", args=[row.pk]), {"post": "yes"}).status_code == 403


def test_what_was_asked_for_its_fills_and_what_became_of_them_are_on_one_page(operator):
    rental = Rental.objects.get()
    page = operator.get(reverse("admin:marketplace_rental_change", args=[rental.pk])).content.decode()
    assert "image_pull_failed" in page
    assert "AAAAsecret" not in page
    order = operator.get(reverse("admin:marketplace_order_change", args=[rental.order_id])).content.decode()
    assert str(rental.listing) in order
