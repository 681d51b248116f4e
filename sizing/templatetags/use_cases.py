"""Template tag for pages about one GPU: the use cases it is listed in."""

from django import template
from django.utils.functional import Promise

from sizing.use_cases import USE_CASES
from sizing.views.use_case_words import WORDS

register = template.Library()


@register.simple_tag
def uses_of(gpu_slug: str) -> list[tuple[str, str | Promise]]:
    """Return the use cases whose table has the GPU: the name of the page's address, and what it is called."""
    return [(f"sizing:{slug}", WORDS[slug].here) for slug, use in USE_CASES.items() if gpu_slug in use.listed]
