"""Mails about an organisation. They leave after the commit: what is rolled back is never announced."""

from collections.abc import Callable, Mapping, Sequence

from django.core.mail import send_mail
from django.db import transaction
from django.template.loader import render_to_string
from django.utils.translation import override


def mail_after_commit(
    *, template: str, context: Mapping[str, object], to: Sequence[str], language: str, is_optional: bool = False
) -> None:
    """Send a plain text to each of the addresses once the transaction is committed.

    The template's first line is the subject. When a mail cannot be sent, the error comes out of the commit, which
    stands; with `is_optional` it is logged instead.
    """
    with override(language):
        subject, _, text = render_to_string(template, dict(context)).strip().partition("\n")
    for address in to:
        transaction.on_commit(_sending(" ".join(subject.split()), f"{text.strip()}\n", address), robust=is_optional)


def _sending(subject: str, text: str, address: str) -> Callable[[], None]:
    def send() -> None:
        send_mail(subject, text, None, [address])

    return send
