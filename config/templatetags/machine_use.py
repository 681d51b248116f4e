"""Template tags for what a page tells programs: its JSON-LD, its way from the top, its title for those who link to it."""

import json

from django import template
from django.template import Context
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from catalog.structured_data import Crumb, JsonLd, breadcrumbs

register = template.Library()

# So that no text can end the script element or open another one; for JSON they are the same characters.
ESCAPES = {ord("<"): "\\u003C", ord(">"): "\\u003E", ord("&"): "\\u0026"}


@register.filter
def as_json(data: JsonLd) -> SafeString:
    """Print data as JSON that is safe inside a script element."""
    return mark_safe(json.dumps(data, ensure_ascii=False).translate(ESCAPES))  # noqa: S308 - escaped just now


@register.inclusion_tag("parts/json_ld.html", takes_context=True)
def breadcrumb_list(context: Context, href: str, label: str, here: str) -> dict[str, JsonLd]:
    """Print the breadcrumb for programs, from what the visible one is made of; a step without a page is left out."""
    request = context["request"]
    steps = [(_("GPUs"), reverse("catalog:board")), (label, href), (here, request.path)]
    crumbs = [Crumb(name=name, url=request.build_absolute_uri(path)) for name, path in steps if name and path]
    return {"json_ld": breadcrumbs(crumbs)}


@register.simple_block_tag
def keep(content: SafeString) -> SafeString:
    """Keep rendered text for a second use: `{% keep as title %}{% block title %}…{% endblock %}{% endkeep %}`."""
    return mark_safe(content.replace('"', "&quot;"))  # noqa: S308 - rendered and escaped by the template
