"""Mails about an organisation. They leave after the commit: what is rolled back is never announced."""

from collections.abc import Callable, Mapping, Sequence

from django.core.mail import EmailMessage
from django.db import transaction
from django.template.loader import render_to_string
from django.utils.translation import override


def mail_after_commit(
    *,
    template: str,
    context: Mapping[str, object],
    to: Sequence[str],
    language: str,
    is_optional: bool = False,
    headers: Mapping[str, str] | None = None,
) -> None:
    """Send a plain text to each of the addresses once the transaction is committed.

    The template's first line is the subject. When a mail cannot be sent, the error comes out of the commit, which
    stands; with `is_optional` it is logged instead.
    """
    with override(language):
        subject, _, text = render_to_string(template, dict(context)).strip().partition("\n")
    for address in to:
        transaction.on_commit(
            _sending(" ".join(subject.split()), f"{text.strip()}\n", address, headers), robust=is_optional
        )


def _sending(subject: str, text: str, address: str, headers: Mapping[str, str] | None) -> Callable[[], None]:
    def send() -> None:
        EmailMessage(subject, text, None, [address], headers=dict(headers or {})).send()

    return send
