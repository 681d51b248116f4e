"""What tests do as people do it: sign in by the form, follow a link from a mail, read a page."""

import re
from html import unescape
from typing import Any

from django.core import mail
from django.test import Client

from users.models import User

PASSWORD = "long-enough-1"


def signed_in(user: User, *, browser: str = "", client: Client | None = None) -> Any:
    """Return a client that went through the form; `browser` is what it calls itself."""
    client = client or Client(headers={"user-agent": browser} if browser else None)
    answer = client.post("/account/login/", {"login": user.email, "password": PASSWORD})
    assert answer.status_code == 302, text_of(answer)
    return client


def mails_to(address: str) -> list[str]:
    """Return the subjects of the mails to an address, oldest first."""
    return [str(message.subject) for message in mail.outbox if message.to == [address]]


def link_in_the_last_mail() -> str:
    """Return the first link of the newest mail, without the host."""
    found = re.search(r"https?://[^/\s]+(\S+)", str(mail.outbox[-1].body))
    assert found is not None, mail.outbox[-1].body
    return found[1]


def text_of(answer) -> str:
    """Return what a page says, without its tags."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())).split())


def error_at(answer, field: str) -> str:
    """Return the words at a field; "" where nothing is wrong there."""
    found = re.search(rf'<span class="error" id="id_{field}_error">(.*?)</span>', answer.content.decode())
    return unescape(found[1]) if found else ""
