"""A guide's file in its parts: head, sections with notes for the margin, questions. Pure.

>>> guide = read_document('''---
... title: T
... ---
... ## First {#one}
... Text.
...
... > Note.
...
... ## Questions {#questions}
... ### Why? {#q-why}
... Because.
... ''')
>>> guide.head["title"], guide.sections[0].id, guide.sections[0].body, guide.sections[0].notes
('T', 'one', 'Text.', 'Note.')
>>> guide.questions[0].title, guide.questions[0].body
('Why?', 'Because.')
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

QUESTIONS = "questions"
WORDS_PER_MINUTE = 220
# Not read as words: figures to be filled in, the addresses of links, names of headings.
SILENT = re.compile(r"\{\{.*?\}\}|\]\([^)]*\)|\{#.*?\}")
HEADING = re.compile(r"^(?P<title>.+?) \{#(?P<id>[a-z][a-z0-9-]*)\}$")


class DocumentError(ValueError):
    """A guide's file is not written as it must be; the message names the line."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """A section or a question in Markdown. `notes` belong beside it, in the margin; blank where there are none."""

    id: str
    title: str
    body: str
    notes: str = ""


@dataclass(frozen=True, kw_only=True)
class Document:
    """A guide in one language. `questions_title` is blank where it asks none."""

    head: Mapping[str, str]
    sections: tuple[Part, ...]
    questions_title: str
    questions: tuple[Part, ...]
    words: int

    @property
    def minutes(self) -> int:
        """How long it takes to read, at least a minute."""
        return max(1, round(self.words / WORDS_PER_MINUTE))

    @property
    def markdown(self) -> str:
        """Everything that may hold figures, in one text."""
        parts = (*self.sections, *self.questions)
        return "\n\n".join([*self.head.values(), *(f"{part.title}\n\n{part.body}\n\n{part.notes}" for part in parts)])


def read_document(text: str) -> Document:
    """Read a guide's file. Raises DocumentError."""
    match text.split("---\n", 2):
        case ["", head, body]:
            sections = [_part(heading, lines) for heading, lines in _split(body, "## ")]
        case _:
            raise DocumentError("the file begins with a head between two lines of ---")
    asked = next((part for part in sections if part.id == QUESTIONS), None)
    return Document(
        head=_head(head),
        sections=tuple(part for part in sections if part.id != QUESTIONS),
        questions_title=asked.title if asked else "",
        questions=tuple(_part(heading, lines) for heading, lines in _split(asked.body if asked else "", "### ")),
        words=len(re.findall(r"[^\W\d]+", SILENT.sub(" ", body))),
    )


def _head(text: str) -> dict[str, str]:
    lines = [line.partition(": ") for line in text.splitlines() if line.strip()]
    if wrong := next((name for name, colon, _ in lines if not colon), None):
        raise DocumentError(f"not a line of the head: {wrong}")
    return {name: value.strip() for name, _, value in lines}


def _split(text: str, mark: str) -> Iterable[tuple[str, str]]:
    """Yield each heading that begins with `mark` and the text below it; nothing may stand above the first."""
    before, *pieces = re.split(rf"^{re.escape(mark)}", text, flags=re.MULTILINE)
    if before.strip():
        raise DocumentError(f"text above the first heading: {before.strip()[:60]}")
    for piece in pieces:
        heading, _, body = piece.partition("\n")
        yield heading, body


def _part(heading: str, text: str) -> Part:
    found = HEADING.fullmatch(heading.strip())
    if found is None:
        raise DocumentError(f"a heading ends with its name, {{#name}}: {heading}")
    lines = text.strip().splitlines()
    return Part(
        id=found["id"],
        title=found["title"],
        body="\n".join(line for line in lines if not line.startswith(">")).strip(),
        notes="\n".join(line[1:].strip() for line in lines if line.startswith(">")),
    )
