"""Every word of every template is marked for translation; names, units and figures are not words."""

import re
from pathlib import Path

import pytest
from django.template.base import Lexer, TokenType

PROJECT = Path(__file__).resolve().parent.parent.parent
TEMPLATES = sorted((PROJECT / "templates").rglob("*.html"))
BLOCKS = ("blocktrans", "blocktranslate", "comment")
SPOKEN_ATTRIBUTES = re.compile(r"""\s(?:aria-label|title|alt|placeholder)="([^"]*)\"""")
# The same in every language.
NAMES_AND_UNITS = {
    "GPU", "GPUs", "Bourse", "USD", "EUR", "GBP", "GB", "GB/s", "GiB", "TFLOPS", "TOPS", "TB/s", "kW", "BF16", "FP16", "FP8", "FP4",
    "FP32", "FP64", "TF32", "INT8", "API", "CSV", "JSON", "HBM", "NVLink", "PCIe", "SXM", "ECC", "MIG", "TDP", "UTC", "p25", "p75",
}  # fmt: skip


def unmarked_words(source: str) -> list[str]:
    """Return the words that stand outside trans and blocktrans, in text or in an attribute that is read aloud."""
    text, block = [], None
    for token in Lexer(source).tokenize():
        if token.token_type == TokenType.BLOCK:
            name = token.contents.split()[0]
            if name in BLOCKS:
                block = name
            elif block and name == f"end{block}":
                block = None
        elif token.token_type == TokenType.TEXT and block is None:
            text.append(token.contents)
        elif block is None:
            text.append("\x00")  # a figure stood here; keeps tags whole without being a word
    html = re.sub(r"<(script|style|svg|pre)\b.*?</\1>|<!--.*?-->", " ", "".join(text), flags=re.DOTALL)
    spoken = " ".join(SPOKEN_ATTRIBUTES.findall(html))
    visible = re.sub(r"<[^>]*>", " ", html)
    words = re.findall(r"[^\W\d_][\w./-]*", re.sub(r"&\w+;", " ", f"{visible} {spoken}"))
    return [word for word in words if len(word) > 1 and word.strip(".") not in NAMES_AND_UNITS]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(PROJECT)))
def test_a_template_has_no_unmarked_word(path):
    assert unmarked_words(path.read_text()) == []


def test_the_check_itself_sees_a_forgotten_word():
    assert TEMPLATES
    assert unmarked_words("<p>{% trans 'Marked' %} forgotten</p>") == ["forgotten"]
    assert unmarked_words('<a aria-label="forgotten">{{ x }}</a>') == ["forgotten"]
    assert unmarked_words("{% blocktrans %}All marked{% endblocktrans %} 80 GB") == []
