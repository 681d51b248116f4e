"""The same page in every language of the site, for the language switch and for `hreflang`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import get_language, override


@dataclass(frozen=True, kw_only=True)
class Edition:
    """A page in one language.

    `name` is the language's own and `href` keeps the reader's query. `url` is whole, without query, and blank where
    this is not the same page but the board, because the page exists in one language only (or not at all).
    """

    code: str
    name: str
    href: str
    url: str
    is_current: bool


def editions(request: HttpRequest) -> list[Edition]:
    """Return this page in every language, English first."""
    match = request.resolver_match
    # What has no name cannot be found in another language: the admin's answer to addresses that it does not have.
    paths = _paths(match.view_name, match.args, match.kwargs) if match and match.url_name else {}
    is_translated = len(set(paths.values())) == len(settings.LANGUAGES)
    if not is_translated:
        paths = _paths("catalog:board", (), {})
    query = f"?{request.META['QUERY_STRING']}" if is_translated and request.META.get("QUERY_STRING") else ""
    return [
        Edition(
            code=code,
            name=name,
            href=paths[code] + query,
            url=request.build_absolute_uri(paths[code]) if is_translated else "",
            is_current=is_translated and code == get_language(),
        )
        for code, name in settings.LANGUAGES
    ]


def _paths(view_name: str, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, str]:
    paths = {}
    for code, _ in settings.LANGUAGES:
        with override(code):
            paths[code] = reverse(view_name, args=args, kwargs=dict(kwargs))
    return paths
