"""For tests of the calculator's page: how it is asked for, and its pieces."""

import html
import re
from decimal import Decimal
from urllib.parse import urlencode

from common import formats

PATH = "/sizing/"
LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "torch_dtype": "bfloat16",
    "architectures": ["LlamaForCausalLM"],
}


def page(client, **query) -> str:
    answer = client.get(f"{PATH}?{urlencode(query)}" if query else PATH)
    assert answer.status_code == 200
    return answer.content.decode()


def text_of(markup: str) -> str:
    return (
        re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", markup))).replace("\N{NO-BREAK SPACE}", " ").strip()
    )


def part(markup: str, start: str, end: str = "</section>") -> str:
    """Return the piece of a page from the element with an id to an end."""
    return markup[markup.index(f'id="{start}"') :].split(end)[0]


def error_at(markup: str, name: str) -> str:
    (found,) = re.findall(rf'<span class="error" id="id_{name}_error">(.*?)</span>', markup)
    summary = markup.split('role="alert"')[1].split("</div>")[0]
    assert f'href="#id_{name}"' in summary, "the summary on top leads to the field"
    assert f'id="id_{name}"' in markup.replace(summary, "")
    return text_of(found)


def rows_of(section: str) -> list[list[str]]:
    body = section.split("<tbody>")[1].split("</tbody>")[0]
    return [
        [text_of(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)]
        for row in re.findall(r"<tr[^>]*>(.*?)</tr>", body, re.DOTALL)
    ]


def tenths(value: float, language: str = "en") -> str:
    return plain(formats.tenths(Decimal(repr(value)), language=language))


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")
