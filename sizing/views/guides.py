"""`/guides/<slug>/`: texts that explain the tables, with today's figures in them."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from html import unescape

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.html import strip_tags
from django.utils.safestring import SafeString
from django.utils.translation import get_language

from catalog.models import Cloud, Gpu
from catalog.queries import price_table
from catalog.structured_data import JsonLd, article, questions
from catalog.views.kept import kept_page
from fx.chosen import in_chosen_currency
from sizing.guides.document import Document, Part
from sizing.guides.figures import Facts, value_of
from sizing.guides.library import guide_text
from sizing.guides.markdown import to_html
from sizing.guides.tokens import ValueOf, fill, tokens_in

SOURCES = "sources"


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A section or a question as HTML; `notes` stand beside it."""

    id: str
    title: str
    body: SafeString
    notes: SafeString


@kept_page
@in_chosen_currency
def show_guide(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a guide in the language of its address; an unknown one is a 404."""
    document = guide_text(slug, get_language() or "en")
    if document is None:
        raise Http404
    return render(request, "sizing/guide.html", _context(request, document, now=datetime.now(UTC)))


def _context(request: HttpRequest, document: Document, *, now: datetime) -> dict[str, object]:
    value = value_of(facts_for(document, now=now))
    head = {name: fill(text, value) for name, text in document.head.items()}
    sections = [_shown(part, value) for part in document.sections]
    asked = [_shown(part, value) for part in document.questions]
    published_on, updated_on = (date.fromisoformat(head[name]) for name in ("published", "updated"))
    return {
        "head": head,
        "published_on": published_on,
        "updated_on": updated_on,
        "minutes": document.minutes,
        "sections": [section for section in sections if section.id != SOURCES],
        "sources": next((section for section in sections if section.id == SOURCES), None),
        "questions_title": document.questions_title,
        "questions": asked,
        "json_ld": article(
            url=request.build_absolute_uri(request.path),
            site_url=request.build_absolute_uri(reverse("catalog:board")),
            headline=head["title"],
            description=head["description"],
            published_on=published_on,
            updated_on=updated_on,
            cited=_cited(sections),
            language=get_language() or "en",
        ),
        "questions_ld": _questions(asked),
    }


def facts_for(document: Document, *, now: datetime) -> Facts:
    """Read what the figures of a guide are drawn from. Six queries."""
    named = {argument for token in tokens_in(document.markdown) for argument in token.arguments}
    gpus = Gpu.objects.in_bulk(named, field_name="slug")
    return Facts(
        now=now,
        gpus=gpus,
        prices=price_table(now=now, gpu_slugs=list(gpus)),
        clouds=list(Cloud.objects.all()),
        language=get_language() or "en",
    )


def _shown(part: Part, value: ValueOf) -> Shown:
    return Shown(
        id=part.id,
        title=part.title,
        body=to_html(fill(part.body, value), name=part.title),
        notes=to_html(fill(part.notes, value), name=part.title),
    )


def _cited(sections: list[Shown]) -> list[str]:
    """Return the addresses of other sites that a guide links to, each once, in its order."""
    html = "".join(section.body + section.notes for section in sections)
    return list(dict.fromkeys(unescape(url) for url in re.findall(r'href="(https?://[^"]+)"', html)))


def _questions(asked: list[Shown]) -> JsonLd:
    return questions((shown.title, re.sub(r"\s+", " ", unescape(strip_tags(shown.body))).strip()) for shown in asked)
