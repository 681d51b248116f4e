"""The operator's admin: every list and every row can be read, what may not be changed offers no form, strangers get nothing."""

from datetime import UTC, datetime

import pytest
from django.contrib import admin
from django.urls import reverse

from billing import books, holds, ledger
from billing.ledger import Line
from billing.models import TaxDetails
from billing.tax.check_vat_ids import check_due
from billing.tax.vies import SampleRegister
from tests.billing.conftest import wallet_of
from tests.factories import make_organisation
from users.models import User

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)


@pytest.fixture
def rows(site_data):
    """The catalogue, a wallet with an entry and a hold, a VAT number with its answer and the tax decided from it."""
    ana, bo = wallet_of("ana", units=10), wallet_of("bo", units=10)
    ledger.post(key="t", kind="x", lines=[Line(ana.pk, -1), Line(bo.pk, 1)], effective_at=NOW)
    holds.place_hold(key="h", account_id=ana.pk, amount_micros=5)
    books._stop("I2: an example", now=NOW)
    TaxDetails.objects.create(organisation=make_organisation(), vat_id="NL004495445B01", next_check_at=NOW)
    check_due(register=SampleRegister(), now=NOW)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
def test_every_list_and_its_first_row_can_be_read(client, rows, model):
    client.force_login(User.objects.create_superuser("operator@example.org", "a long password"))
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
    assert client.get(reverse(f"{name}_changelist")).status_code == 200
    row = model._default_manager.order_by("pk").first()
    if row is not None:
        assert client.get(reverse(f"{name}_change", args=[row.pk])).status_code == 200


@pytest.mark.parametrize("model", [m for m in MODELS if m._meta.app_label == "billing"], ids=lambda m: m._meta.label)
def test_nothing_of_the_ledger_can_be_added_changed_or_deleted(client, rows, model):
    client.force_login(User.objects.create_superuser("operator@example.org", "a long password"))
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
    row = model._default_manager.order_by("pk").first()
    assert client.get(reverse(f"{name}_add")).status_code == 403
    assert client.post(reverse(f"{name}_change", args=[row.pk]), {}).status_code == 403
    assert client.post(reverse(f"{name}_delete", args=[row.pk]), {"post": "yes"}).status_code == 403


def test_whoever_is_no_operator_is_sent_to_sign_in(client, db):
    client.force_login(User.objects.create_user("ana@example.org", "a long password"))
    for model in MODELS:
        answer = client.get(reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"))
        assert answer.status_code == 302
