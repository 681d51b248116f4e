"""Checks about all pages at once: no dead link, few queries."""

from html.parser import HTMLParser

import pytest
from django.urls import resolve
from django.utils import translation

from tests.pages import PAGES

pytestmark = pytest.mark.django_db
MOST_QUERIES = 12


class Links(HTMLParser):
    """Collects every address a page points to, and its fragment targets."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.ids: set[str] = set()

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if values.get("id"):
            self.ids.add(values["id"])
        target = values.get("href") or values.get("src") or values.get("action")
        if target:
            self.found.add(target)


def links_of(html: str) -> Links:
    parser = Links()
    parser.feed(html)
    return parser


def kind_of(path: str) -> str:
    """Return what is visited once: the page, in other languages, whose links are the same, the kind of page."""
    if not path.startswith(("/nl/", "/pl/")):
        return path
    with translation.override("en"):
        return f"{path[:4]} {resolve(path[3:]).view_name}"


def test_no_internal_link_leads_nowhere(client, site_data):
    waiting, seen = [*PAGES], set()
    while waiting:
        path = waiting.pop()
        kind = kind_of(path)
        if kind in seen:
            continue
        seen.add(kind)
        answer = client.get(path, follow=True)  # a visitor's ticket leads to signing in
        assert answer.status_code == 200, path
        if not answer["Content-Type"].startswith("text/html"):
            continue
        found = links_of(answer.content.decode())
        for link in found.found:
            target, _, fragment = link.partition("#")
            if fragment and not target:
                assert fragment in found.ids, f"{path} links to #{fragment}"
            is_page = target.startswith("/") and not target.startswith(("/static/", "/admin"))
            is_view_of_a_list = "?" in target
            if is_page and not is_view_of_a_list:
                waiting.append(target)
    assert len(seen) > 115, "every GPU page was visited"


@pytest.mark.parametrize("path", PAGES)
def test_a_page_needs_few_queries(client, site_data, django_assert_max_num_queries, path):
    with django_assert_max_num_queries(MOST_QUERIES):
        client.get(path)
