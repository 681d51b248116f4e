"""App configuration."""

from django.apps import AppConfig


class BillingConfig(AppConfig):
    """The ledger and what moves money."""

    name = "billing"
    default_auto_field = "django.db.models.BigAutoField"
