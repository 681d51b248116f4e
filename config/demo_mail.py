"""`/demo/mail/`: the demo sends no mail; it writes what it would have sent, and shows it here."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from users.private import private

# How Django's file backend ends a message: a file holds all that one connection sent.
_END = b"\n" + b"-" * 79 + b"\n"
_NAME = re.compile(r"(?P<file>\d{8}-\d{6}-\d+)-(?P<number>\d+)", re.ASCII)
MOST_SHOWN = 200


@dataclass(frozen=True, kw_only=True)
class Mail:
    """A mail as it was written; `name` is its place in the folder."""

    name: str
    subject: str
    to: str
    sent_at: datetime
    text: str


@private
def list_mails(request: HttpRequest) -> HttpResponse:
    """Show the mails, newest first."""
    return render(request, "config/demo_mails.html", {"mails": newest_mails(Path(settings.EMAIL_FILE_PATH))})


@private
def show_mail(request: HttpRequest, name: str) -> HttpResponse:
    """Show one mail, its links clickable."""
    mail = mail_named(Path(settings.EMAIL_FILE_PATH), name)
    if mail is None:
        raise Http404
    return render(request, "config/demo_mail.html", {"mail": mail})


def newest_mails(folder: Path) -> list[Mail]:
    """Return the mails of a folder, newest first, a few hundred at most; none where the folder is missing."""
    files = sorted(folder.glob("*.log"), key=lambda path: path.stat().st_mtime_ns, reverse=True)[:MOST_SHOWN]
    return [mail for path in files for mail in reversed(list(_mails_in(path)))]


def mail_named(folder: Path, name: str) -> Mail | None:
    """Return a mail by its name; None for a name that is none of ours."""
    parts = _NAME.fullmatch(name)
    path = folder / f"{parts['file']}.log" if parts else None
    if path is None or not path.is_file():
        return None
    return next((mail for mail in _mails_in(path) if mail.name == name), None)


def _mails_in(path: Path) -> Iterator[Mail]:
    written_at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    for number, raw in enumerate(part for part in path.read_bytes().split(_END) if part.strip()):
        message = message_from_bytes(raw, _class=EmailMessage, policy=default)
        sent_at = message["date"].datetime if message["date"] else written_at
        body = message.get_body(("plain",))
        yield Mail(
            name=f"{path.stem}-{number}",
            subject=str(message["subject"]),
            to=str(message["to"]),
            sent_at=sent_at,
            text=body.get_content() if body else "",
        )
