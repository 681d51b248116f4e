"""App configuration."""

from django.apps import AppConfig


class MarketplaceConfig(AppConfig):
    """The exchange: servers, books, orders, rentals."""

    name = "marketplace"
    default_auto_field = "django.db.models.BigAutoField"
