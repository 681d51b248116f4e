"""App configuration."""

from django.apps import AppConfig


class FxConfig(AppConfig):
    """Currencies."""

    name = "fx"
    default_auto_field = "django.db.models.BigAutoField"
