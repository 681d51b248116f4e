"""Every language is whole: nothing untranslated, nothing out of date, and each page knows its twins."""

import html
import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from gettext import GNUTranslations
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.pofile import read_po
from django.conf import settings
from django.template import Context, Template
from django.template.loader import render_to_string
from django.utils import translation

from catalog.models import TITLES_IN_WORDS
from catalog.sources import ALL_SOURCES
from config.translations import compile_translations
from tests.pages import TRANSLATED

PROJECT = Path(__file__).resolve().parent.parent.parent
OTHER_LANGUAGES = [code for code, _ in settings.LANGUAGES if code != settings.LANGUAGE_CODE]
# As docs/translating.md says; with these options a file changes only when a word does.
MAKEMESSAGES = ["makemessages", "--no-location", "--no-wrap", "--no-obsolete", "--ignore=tests"]
PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|%%|%s|\{\w+\}|<[^>]+>")
LONGER_THAN_WORDS = 3
# Titles of documents stay as their authors wrote them.
SAME_IN_ALL = {"Hugging Face, model memory anatomy"}

each_language = pytest.mark.parametrize("language", OTHER_LANGUAGES)


def words_of(folder: Path, language: str) -> Catalog:
    with (folder / "locale" / language / "LC_MESSAGES" / "django.po").open("rb") as file:
        return read_po(file, locale=language)


def messages(language: str) -> list[Message]:
    return [message for message in words_of(PROJECT, language) if message.id]


def forms(text: str | tuple[str, ...] | list[str] | None) -> list[str]:
    return [text] if isinstance(text, str) else list(text or ())


@each_language
def test_every_word_is_translated_and_none_is_a_guess(language):
    assert [m.id for m in messages(language) if not all(form.strip() for form in forms(m.string))] == []
    assert [m.id for m in messages(language) if m.fuzzy] == []
    assert not words_of(PROJECT, language).obsolete


@each_language
def test_a_translation_keeps_placeholders_and_tags(language):
    for message in messages(language):
        expected = [sorted(PLACEHOLDER.findall(form)) for form in forms(message.id)]  # one may say less than many
        for form in forms(message.string):
            assert sorted(PLACEHOLDER.findall(form)) in expected, message.id


@each_language
def test_a_translation_begins_and_ends_like_the_original(language):
    for message in messages(language):
        if message.id == "n/p":  # an abbreviation, in other languages with points
            continue
        for form in forms(message.string):
            assert form == form.strip(), message.id
            for mark in (":", ".", "?", ","):
                assert form.endswith(mark) == forms(message.id)[-1].endswith(mark), (message.id, form)


@pytest.mark.parametrize(("language", "count"), [("nl", 2), ("pl", 4)])
def test_a_language_has_all_its_plural_forms(language, count):
    catalogue = words_of(PROJECT, language)
    assert catalogue.num_plurals == count
    assert all(len(forms(m.string)) == count for m in catalogue if isinstance(m.id, tuple))


@pytest.fixture(scope="module")
def extracted(tmp_path_factory):
    """A copy of the project after `makemessages`."""
    if shutil.which("xgettext") is None:
        if os.environ.get("REQUIRE_BROWSER") == "1":
            pytest.fail("xgettext is missing: the tools of the tests were asked for, but gettext was not installed")
        pytest.skip("NO GETTEXT on this machine: whether words are missing was not checked (apt install gettext)")
    copy = tmp_path_factory.mktemp("extracted") / "site"
    skipped = shutil.ignore_patterns(
        ".*", "__pycache__", "tests", "node_modules", "staticfiles", "test-results", "*.mo"
    )
    shutil.copytree(PROJECT, copy, ignore=skipped)
    subprocess.run(
        [sys.executable, "-m", "django", *MAKEMESSAGES, *(f"--locale={code}" for code in OTHER_LANGUAGES)],
        cwd=copy,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings", "PYTHONPATH": str(copy)},
        check=True,
        capture_output=True,
    )
    return copy


@each_language
def test_makemessages_would_change_no_file(extracted, language):
    def known(folder: Path) -> set[tuple[str, ...]]:
        return {tuple(forms(message.id)) for message in words_of(folder, language) if message.id}

    assert known(extracted) - known(PROJECT) == set(), "not in the file: run makemessages and translate"
    assert known(PROJECT) - known(extracted) == set(), "no longer said anywhere: run makemessages"


def english_phrases(language: str) -> set[str]:
    """The English texts, cut at their placeholders, that are longer than a name and are not kept in this language."""
    found = set()
    for message in messages(language):
        kept = " ".join(forms(message.string))
        for form in forms(message.id):
            for piece in PLACEHOLDER.split(form):
                phrase = piece.strip(" .,:;()")
                if len(phrase.split()) > LONGER_THAN_WORDS and phrase not in kept and form not in SAME_IN_ALL:
                    found.add(phrase)
    return found


@pytest.mark.django_db
@pytest.mark.parametrize("path", TRANSLATED)
def test_a_page_in_another_language_says_nothing_in_english(client, site_data, path):
    language = path.split("/")[1]
    page = client.get(path).content.decode()
    assert f'<html lang="{language}">' in page
    spoken = re.sub(r'<(\w+)[^>]*\slang="en"[^>]*>.*?</\1>', " ", page, flags=re.DOTALL)
    text = " ".join(html.unescape(spoken).split())
    assert [phrase for phrase in english_phrases(language) if phrase in text] == []


def test_the_search_for_english_would_find_some():
    assert len(english_phrases("nl")) > 200
    assert "None of our sources lists this GPU today" in english_phrases("pl")


@pytest.mark.parametrize(
    ("number", "polish", "dutch"),
    [
        (0, "chmur", "clouds"),
        (1, "chmura", "cloud"),
        (2, "chmury", "clouds"),
        (5, "chmur", "clouds"),
        (12, "chmur", "clouds"),
        (22, "chmury", "clouds"),
        (25, "chmur", "clouds"),
        (101, "chmur", "clouds"),
        (112, "chmur", "clouds"),
        (1.5, "chmury", "clouds"),
    ],
)
def test_a_noun_follows_its_number(number, polish, dutch):
    for language, noun in (("pl", polish), ("nl", dutch)):
        compile_translations()
        with (PROJECT / "locale" / language / "LC_MESSAGES" / "django.mo").open("rb") as file:
            catalogue = GNUTranslations(file)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # fractions are not asked for by the pages
            text = catalogue.ngettext("%(clouds)s cloud", "%(clouds)s clouds", number)
        assert text == f"%(clouds)s {noun}"


@pytest.mark.parametrize(
    ("number", "text"),
    [(1, "1 miesiąc"), (3, "3 miesiące"), (12, "12 miesięcy"), (22, "22 miesiące"), (36, "36 miesięcy")],
)
def test_a_template_counts_in_polish(number, text):
    source = "{% load i18n %}{% blocktrans trimmed count months=n %}{{ months }} month{% plural %}{{ months }} months{% endblocktrans %}"
    with translation.override("pl"):
        assert Template(source).render(Context({"n": number})) == text


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/", "/gpus/", "/gpus/h100-sxm/", "/clouds/aws/", "/use-cases/llm-training/"])
def test_a_page_names_all_its_versions_in_each_of_them(client, site_data, path):
    urls = {"en": path, **{code: f"/{code}{path}" for code in OTHER_LANGUAGES}}
    expected = {code: f"http://testserver{url}" for code, url in urls.items()}
    expected["x-default"] = expected["en"]
    for code, url in urls.items():
        page = client.get(url).content.decode()
        found = dict(re.findall(r'<link rel="alternate" hreflang="([^"]+)" href="([^"]+)">', page))
        assert found == expected
        assert f'<link rel="canonical" href="{expected[code]}">' in page


@pytest.mark.django_db
def test_the_switch_names_languages_in_their_own_words_and_keeps_the_query(client, site_data):
    page = client.get("/nl/gpus/?vendor=AMD&sort=price").content.decode()
    for code, name, href in (
        ("en", "English", "/gpus/?vendor=AMD&amp;sort=price"),
        ("nl", "Nederlands", "/nl/gpus/?vendor=AMD&amp;sort=price"),
        ("pl", "Polski", "/pl/gpus/?vendor=AMD&amp;sort=price"),
    ):
        current = ' aria-current="true"' if code == "nl" else ""
        assert f'<a href="{href}" hreflang="{code}" lang="{code}"{current}>{name}</a>' in page


@pytest.mark.django_db
def test_the_browser_does_not_choose_the_language(client, site_data):
    page = client.get("/", headers={"accept-language": "pl"})
    assert page.status_code == 200
    assert '<html lang="en">' in page.content.decode()


@pytest.mark.django_db
def test_the_api_speaks_english(client, site_data):
    answer = client.get("/api/v1/gpus/?nonsense=1", headers={"accept-language": "pl"})
    assert "There is no parameter of this name." in json.dumps(answer.json())


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "in_polish"), [("/nl/nothing/", "/pl/"), ("/nl/gpus/no-such-gpu/", "/pl/gpus/no-such-gpu/")]
)
def test_a_missing_page_says_so_in_its_language_and_is_no_version_of_anything(client, path, in_polish):
    answer = client.get(path)
    page = answer.content.decode()
    assert answer.status_code == 404
    assert "Op dit adres is geen pagina." in page
    assert '<link rel="alternate"' not in page
    assert f'<a href="{in_polish}" hreflang="pl" lang="pl">Polski</a>' in page


def test_a_broken_page_speaks_its_language_and_leads_home():
    with translation.override("pl"):
        page = render_to_string("500.html")
    assert '<html lang="pl">' in page
    assert 'href="/pl/"' in page


def test_translations_compile_without_gettext(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    for language in OTHER_LANGUAGES:
        folder = tmp_path / language / "LC_MESSAGES"
        folder.mkdir(parents=True)
        shutil.copy(PROJECT / "locale" / language / "LC_MESSAGES" / "django.po", folder)
    assert len(compile_translations(tmp_path)) == len(OTHER_LANGUAGES)
    assert compile_translations(tmp_path) == [], "nothing is newer now"
    with (tmp_path / "pl" / "LC_MESSAGES" / "django.mo").open("rb") as file:
        assert GNUTranslations(file).gettext("yes") == "tak"


def test_a_file_that_makemessages_marked_as_a_guess_is_compiled_all_the_same(tmp_path):
    folder = tmp_path / "nl" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    header = '#, fuzzy\nmsgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
    guess = '#, fuzzy\nmsgid "no"\nmsgstr "ja"\n'
    (folder / "django.po").write_text(f'{header}\nmsgid "yes"\nmsgstr "ja"\n\n{guess}')
    (compiled,) = compile_translations(tmp_path)
    with compiled.open("rb") as file:
        catalogue = GNUTranslations(file)
    assert catalogue.gettext("yes") == "ja"
    assert catalogue.gettext("no") == "no", "a guess is not shown"


def test_every_title_in_words_is_that_of_a_source():
    assert set(TITLES_IN_WORDS) <= {source.title for source in ALL_SOURCES}
