"""The same page in every language of the site, for the language switch and for `hreflang`."""

from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import get_language, override


@dataclass(frozen=True, kw_only=True)
class Edition:
    """A page in one language: `name` is the language's own, `href` keeps the query, `url` is whole and has none."""

    code: str
    name: str
    href: str
    url: str
    is_current: bool


def editions(request: HttpRequest) -> list[Edition]:
    """Return this page in every language; empty for a page that exists in one language only."""
    match = request.resolver_match
    if match is None:
        return []
    paths = {code: _path(code, match.view_name, match.args, match.kwargs) for code, _ in settings.LANGUAGES}
    if len(set(paths.values())) < len(paths):
        return []
    query = f"?{request.META['QUERY_STRING']}" if request.META.get("QUERY_STRING") else ""
    return [
        Edition(
            code=code,
            name=name,
            href=paths[code] + query,
            url=request.build_absolute_uri(paths[code]),
            is_current=code == get_language(),
        )
        for code, name in settings.LANGUAGES
    ]


def home_editions() -> list[Edition]:
    """Return the board in every language: where the switch of a page without editions leads."""
    paths = {code: _path(code, "catalog:board", (), {}) for code, _ in settings.LANGUAGES}
    return [
        Edition(code=code, name=name, href=paths[code], url="", is_current=False) for code, name in settings.LANGUAGES
    ]


def _path(language: str, view_name: str, args: tuple[object, ...], kwargs: dict[str, object]) -> str:
    with override(language):
        return reverse(view_name, args=args, kwargs=kwargs)
