"""Figures in a text: `{{ kind:argument.argument }}`. Pure.

>>> values = {"price": "2.88 USD", "spot": None}
>>> fill("At {{ price:h100-sxm }}.", lambda token: values[token.kind])
'At 2.88 USD.'
>>> fill("One.\\n\\nTwo {{ spot:h100-sxm }}.\\n\\n- a {{ price:x }}\\n- b {{ spot:x }}", lambda token: values[token.kind])
'One.\\n\\n- a 2.88 USD'
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

TOKEN = re.compile(r"\{\{\s*(?P<text>[^{}]*?)\s*\}\}")
# A figure and its unit stay on one line.
BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:GB/s|Gb/s|GB|TFLOPS|ms|B|mld|×)(?!\w))")
LINE_OF_MANY = re.compile(r"[-|]|\d+\. ")


@dataclass(frozen=True, kw_only=True)
class Token:
    """A figure's place: which kind, and of what."""

    kind: str
    arguments: tuple[str, ...]


ValueOf = Callable[[Token], str | None]


def tokens_in(text: str) -> list[Token]:
    """Return the tokens of a text in their order."""
    return [_token(found["text"]) for found in TOKEN.finditer(text)]


def _token(text: str) -> Token:
    kind, _, arguments = text.partition(":")
    return Token(kind=kind, arguments=tuple(arguments.split(".")) if arguments else ())


def fill(text: str, value_of: ValueOf) -> str:
    """Put figures in; a paragraph, list item or table row with a figure that is not there today is left out."""
    blocks = (_fill_block(block, value_of) for block in re.split(r"\n\s*\n", text))
    return BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", "\n\n".join(block for block in blocks if block))


def _fill_block(block: str, value_of: ValueOf) -> str:
    lines = block.split("\n")
    if all(LINE_OF_MANY.match(line) for line in lines):
        return "\n".join(filled for line in lines if (filled := _fill_line(line, value_of)) is not None)
    return _fill_line(block, value_of) or ""


def _fill_line(text: str, value_of: ValueOf) -> str | None:
    values = [value_of(token) for token in tokens_in(text)]
    told = [value for value in values if value is not None]
    if len(told) < len(values):
        return None
    remaining = iter(told)
    return TOKEN.sub(lambda _: next(remaining), text)
