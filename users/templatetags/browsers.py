"""Browsers in templates."""

from django import template
from django.utils.translation import gettext as _

from users.browsers import browser_and_system

register = template.Library()


@register.filter
def browser(user_agent: str) -> str:
    """Name a browser and its system: Firefox on Linux."""
    name, system = browser_and_system(user_agent)
    if not name:
        return _("an unknown program")
    return _("%(browser)s on %(system)s") % {"browser": name, "system": system} if system else name
